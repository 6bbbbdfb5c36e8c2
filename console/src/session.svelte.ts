// Who is signed in, in this tab and no other. The token is in the tab's session storage and nowhere else: not in a
// variable that outlives a call, not in a cookie, an address or a log.
import type { Mechanism, Role, Session as Me } from './api'
import { connection } from './connection.svelte'
import { leaveFor, ProviderError, renew, revoke, type Grant, type Provider, type Return } from './provider'
import { claimTyped, gatherTyped, storeTyped } from './typed'

const TOKEN = 'pilot.token'
const ACTOR = 'pilot.actor'
const ACTIVE = 'pilot.active'
const TAB = 'pilot.tab'
const EXPIRES = 'pilot.expires'
const LIFETIME = 'pilot.lifetime'
const REFRESH = 'pilot.refresh'
const WARNING_MS = 60_000
const MINUTE_MS = 60_000
/** A token is renewed when a third of its life is left, or this much, and spoken of when it cannot be. */
const RENEW_MS = 60_000
const ENDS_SOON_MS = 120_000
const RETRY_MS = 5_000

export type Ending = 'signed_out' | 'idle' | 'refused' | 'copied' | 'expired' | 'over' | 'other' | 'unasked'

/** What the service says of whoever asks: who that is, and when the credential ends, if it does. */
export interface Standing {
  me: Me
  end: string | null
}

/** 32 to 256 printable ASCII bytes without a space, or a longer one that an identity provider signed. */
export function isTokenShaped(text: string): boolean {
  return /^[\x21-\x7e]{32,256}$/.test(text) || (text.length <= 8_192 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text))
}

class Session {
  me = $state.raw<Me | null>(null)
  ending = $state.raw<Ending | null>(null)
  /** Milliseconds until the tab forgets the token, once it is less than a minute. */
  idleLeft = $state.raw<number | null>(null)
  idleMinutes = $state.raw(15)
  /** Milliseconds until the token expires, once that is soon and it could not be renewed. */
  expiresLeft = $state.raw<number | null>(null)
  /** When the credential itself ends, in milliseconds since 1970; nothing when it has no end or renews itself. */
  endsAt = $state.raw<number | null>(null)
  mechanism = $state.raw<Mechanism>('credential_file')
  /** Where people sign in, when that is not only with a token. */
  provider = $state.raw<Provider | null>(null)
  /** Someone has just come back from there. */
  returned: Return | null = null
  /** Whose sign-in is being renewed. */
  #renewing: Me | null = null
  /** When renewing last failed; zero when it did not. */
  #failedAt = 0
  #lastActive = 0
  #forgetful: (() => void)[] = []
  #timer: ReturnType<typeof setInterval> | undefined

  /**
   * Takes up the session of this tab after a reload, unless the tab is a copy of another that is still there.
   * `whoIsShown` asks whose certificate the browser shows: a browser that was closed may show another one now.
   */
  async resume(whoIsShown: () => Promise<Me | null>): Promise<void> {
    const stored = sessionStorage.getItem(ACTOR)
    if (stored === null) return
    if (await isCopy()) {
      this.end('copied')
      return
    }
    if (this.#idleFor() >= this.idleMinutes * MINUTE_MS) {
      this.end('idle')
      return
    }
    const me = JSON.parse(stored) as Me
    // Not by the mechanism: when the service could not be asked for it, nobody knows it.
    const trouble = this.authorization() === null ? await troubleWith(me, whoIsShown) : null
    if (trouble !== null) {
      this.end(trouble)
      return
    }
    claimTyped(me.actor_id)
    this.me = me
    this.#watch()
  }

  async begin(grant: Grant, me: Me): Promise<void> {
    this.#store(grant)
    sessionStorage.setItem(ACTOR, JSON.stringify(me))
    claimTyped(me.actor_id)
    await claimTab(crypto.getRandomValues(new Uint32Array(4)).join('-'))
    this.ending = null
    this.me = me
    this.#lastActive = 0
    this.#failedAt = 0
    this.active()
    this.#watch()
  }

  #store({ token, expiresAt, refresh }: Grant): void {
    if (token !== null) sessionStorage.setItem(TOKEN, token)
    if (expiresAt === null) sessionStorage.removeItem(EXPIRES)
    else {
      sessionStorage.setItem(EXPIRES, String(expiresAt))
      sessionStorage.setItem(LIFETIME, String(expiresAt - Date.now()))
    }
    // A provider may give the same means again by saying nothing.
    if (refresh !== null) sessionStorage.setItem(REFRESH, refresh)
    this.expiresLeft = null
  }

  /** Everything this tab knew of the session is gone afterwards, except what was being written. In a copy of a tab that
      belongs to the other one. */
  end(why: Ending): void {
    const typed = why === 'copied' ? null : gatherTyped()
    this.#giveBack(why)
    sessionStorage.clear()
    storeTyped(typed)
    clearInterval(this.#timer)
    this.me = null
    this.idleLeft = null
    this.expiresLeft = null
    this.endsAt = null
    this.ending = why
    for (const forget of this.#forgetful) forget()
  }

  /** What the provider gave for this tab is ended there too, when someone leaves; not when the tab is a copy, whose tokens
      another tab uses. A token that was typed in is not the provider's to end. */
  #giveBack(why: Ending): void {
    const refresh = sessionStorage.getItem(REFRESH)
    const isFromProvider = refresh !== null || sessionStorage.getItem(EXPIRES) !== null
    if (this.me === null || this.provider === null || !isFromProvider || (why !== 'signed_out' && why !== 'idle')) return
    revoke(this.provider, { refresh_token: refresh, access_token: sessionStorage.getItem(TOKEN) })
  }

  /** The service no longer knows the token. Near its end that is no surprise: two clocks are never quite the same. */
  refused(): void {
    if (this.me === null) return
    const expires = sessionStorage.getItem(EXPIRES)
    const isNearEnd = expires !== null && Number(expires) - Date.now() < RENEW_MS
    const isOver = this.endsAt !== null && this.endsAt - Date.now() < RENEW_MS
    if (isNearEnd && this.#canRenew()) void this.#renew()
    else this.end(isNearEnd ? 'expired' : isOver ? 'over' : 'refused')
  }

  /** Whoever is shown must be who acts. Throws what asking throws. */
  async check(ask: () => Promise<Standing>): Promise<void> {
    const me = this.me
    const standing = await ask()
    // The answer is about a session that is over.
    if (me === null || this.me !== me) return
    if (isSame(standing.me, me)) this.#ends(standing.end)
    else this.end('other')
  }

  /** A provider's sign-in has a watch of its own. */
  #ends(at: string | null): void {
    const isWatched = sessionStorage.getItem(EXPIRES) !== null || sessionStorage.getItem(REFRESH) !== null
    this.endsAt = at === null || isWatched ? null : Date.parse(at)
  }

  #canRenew(): boolean {
    return this.provider !== null && sessionStorage.getItem(REFRESH) !== null
  }

  /** For whoever keeps something of what the signed-in person may see. */
  onEnd(forget: () => void): void {
    this.#forgetful.push(forget)
  }

  /** For one request's header; nobody keeps it. Nothing where the browser shows a certificate. */
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
    else {
      this.idleLeft = left <= WARNING_MS ? left : null
      this.#lookAtExpiry()
    }
  }

  #lookAtExpiry(): void {
    const expires = sessionStorage.getItem(EXPIRES)
    if (expires === null) return
    const left = Number(expires) - Date.now()
    const canRenew = this.#canRenew()
    // After a sleep the time may be up long since, and the means to go on still good.
    if (left <= 0 && (!canRenew || this.#failedAt > 0)) {
      this.end('expired')
      return
    }
    if (canRenew && left <= Math.min(RENEW_MS, Number(sessionStorage.getItem(LIFETIME)) / 3)) void this.#renew()
    // While it will be renewed by itself there is nothing to say, until that has failed.
    const isSaid = canRenew ? this.#failedAt > 0 : left <= ENDS_SOON_MS
    this.expiresLeft = isSaid ? left : null
  }

  async #renew(): Promise<void> {
    const me = this.me
    const refresh = sessionStorage.getItem(REFRESH)
    if (me === null || this.#renewing === me || this.provider === null || refresh === null) return
    if (Date.now() - this.#failedAt < RETRY_MS) return
    this.#renewing = me
    const wasOver = Number(sessionStorage.getItem(EXPIRES)) <= Date.now()
    try {
      const grant = await renew(this.provider, refresh)
      // Signed out while we waited: what came is nobody's, least of all of whoever signed in since.
      if (this.me !== me) return
      this.#store(grant)
      this.#failedAt = 0
      // What was refused meanwhile is asked for again.
      if (wasOver) connection.returns += 1
    } catch (error) {
      if (this.me !== me) return
      this.#failedAt = Date.now()
      if (error instanceof ProviderError && error.trouble !== 'unreachable') sessionStorage.removeItem(REFRESH)
    } finally {
      if (this.#renewing === me) this.#renewing = null
    }
  }

  /** To the provider and back to this very screen, with what was being written. */
  async signInAgain(): Promise<void> {
    const address = location.pathname + location.search
    if (this.me !== null) this.end('expired')
    if (this.provider !== null) await leaveFor(this.provider, address)
  }
}

function isSame(one: Me, other: Me): boolean {
  return one.actor_id === other.actor_id && one.role === other.role
}

/** Why the session of someone with a certificate cannot go on, if it cannot. */
async function troubleWith(me: Me, whoIsShown: () => Promise<Me | null>): Promise<Ending | null> {
  try {
    const shown = await whoIsShown()
    return shown !== null && isSame(shown, me) ? null : 'other'
  } catch {
    return 'unasked'
  }
}

/** A busy machine takes seconds to let go of a page that was reloaded; signing people out for that would be wrong. */
const FORMER_SELF_MS = 5_000

/**
 * Browsers copy session storage when a tab is duplicated. Each tab holds a lock under its own name for as long as it
 * lives; a tab that finds the name in use is the copy. A reloaded tab may have to wait for its former self.
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
    const signal = AbortSignal.timeout(FORMER_SELF_MS)
    const held = navigator.locks.request(`pilot-tab-${name}`, { signal }, () => {
      resolve(true)
      return new Promise<never>(() => {})
    })
    held.catch(() => resolve(false))
  })
}

export const session = new Session()
