// Who is signed in, in this tab and no other. The token is in the tab's session storage and nowhere else: not in a
// variable that outlives a call, not in a cookie, an address or a log.
import type { Role, Session as Me } from './api'

const TOKEN = 'pilot.token'
const ACTOR = 'pilot.actor'
const ACTIVE = 'pilot.active'
const TAB = 'pilot.tab'
const WARNING_MS = 60_000
const MINUTE_MS = 60_000

export type Ending = 'signed_out' | 'idle' | 'refused' | 'copied'

/** The seed's limits: 32 to 256 printable ASCII bytes without a space. */
export function isTokenShaped(text: string): boolean {
  return /^[\x21-\x7e]{32,256}$/.test(text)
}

class Session {
  me = $state.raw<Me | null>(null)
  ending = $state.raw<Ending | null>(null)
  /** Milliseconds until the tab forgets the token, once it is less than a minute. */
  idleLeft = $state.raw<number | null>(null)
  idleMinutes = $state.raw(15)
  #lastActive = 0
  #forgetful: (() => void)[] = []
  #timer: ReturnType<typeof setInterval> | undefined

  /** Takes up the session of this tab after a reload, unless the tab is a copy of another that is still there. */
  async resume(): Promise<void> {
    const stored = sessionStorage.getItem(ACTOR)
    if (sessionStorage.getItem(TOKEN) === null || stored === null) return
    if (await isCopy()) {
      this.end('copied')
      return
    }
    this.me = JSON.parse(stored) as Me
    if (this.#idleFor() >= this.idleMinutes * MINUTE_MS) this.end('idle')
    else this.#watch()
  }

  async begin(token: string, me: Me): Promise<void> {
    sessionStorage.setItem(TOKEN, token)
    sessionStorage.setItem(ACTOR, JSON.stringify(me))
    await claimTab(crypto.getRandomValues(new Uint32Array(4)).join('-'))
    this.ending = null
    this.me = me
    this.#lastActive = 0
    this.active()
    this.#watch()
  }

  /** Everything this tab knew of the session is gone afterwards, also what was looked at. */
  end(why: Ending): void {
    sessionStorage.clear()
    clearInterval(this.#timer)
    this.me = null
    this.idleLeft = null
    this.ending = why
    for (const forget of this.#forgetful) forget()
  }

  /** For whoever keeps something of what the signed-in person may see. */
  onEnd(forget: () => void): void {
    this.#forgetful.push(forget)
  }

  /** For one request's header; nobody keeps it. */
  authorization(): string | null {
    const token = sessionStorage.getItem(TOKEN)
    return token === null ? null : `Bearer ${token}`
  }

  is(...roles: Role[]): boolean {
    return this.me !== null && roles.includes(this.me.role)
  }

  /** A person did something. */
  active(): void {
    if (this.me === null) return
    const now = Date.now()
    // Wheels and keys come in bursts; a second more or less is no matter.
    if (this.idleLeft === null && now - this.#lastActive < 1_000) return
    this.#lastActive = now
    sessionStorage.setItem(ACTIVE, String(now))
    this.idleLeft = null
  }

  #idleFor(): number {
    return Date.now() - Number(sessionStorage.getItem(ACTIVE) ?? 0)
  }

  #watch(): void {
    clearInterval(this.#timer)
    this.#timer = setInterval(() => this.look(), 1_000)
  }

  /** Also called when a sleeping machine wakes up, before anything is shown. */
  look(): void {
    if (this.me === null) return
    const left = this.idleMinutes * MINUTE_MS - this.#idleFor()
    if (left <= 0) this.end('idle')
    else this.idleLeft = left <= WARNING_MS ? left : null
  }
}

/**
 * Browsers copy session storage when a tab is duplicated. Each tab holds a lock under its own name for as long as it
 * lives; whoever finds the name in use is the copy. A reloaded tab may have to wait a moment for its former self.
 */
async function isCopy(): Promise<boolean> {
  const name = sessionStorage.getItem(TAB)
  return name === null || !(await claimTab(name))
}

async function claimTab(name: string): Promise<boolean> {
  sessionStorage.setItem(TAB, name)
  // Outside of a secure context there are no locks, and no way to tell.
  if (!('locks' in navigator)) return true
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(700)
    const held = navigator.locks.request(`pilot-tab-${name}`, { signal }, () => {
      resolve(true)
      return new Promise<never>(() => {})
    })
    held.catch(() => resolve(false))
  })
}

export const session = new Session()
