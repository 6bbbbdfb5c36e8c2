// One of a person's tabs holds the connection to the feed, and tells the others. A browser has six connections to a
// service over HTTP/1.1: a stream for each tab would leave none for the seventh.
//
// The tab that holds the lock leads. When a tab closes, the browser gives the lock to the next one. A tab that is frozen lets
// go of it first, and one that hangs is asked in vain and loses it. Two leaders for a moment do no harm: entries have
// numbers, and nobody takes one twice.
import type { Entry } from './api'

export type Message =
  /** Someone wants what came after this, and to know that there is a leader. */
  | { kind: 'hello'; after: number; from: string }
  | { kind: 'here'; isLive: boolean; to: string }
  /** All entries after `after` up to `last`. */
  | { kind: 'entries'; after: number; last: number; entries: Entry[] }
  | { kind: 'status'; isLive: boolean }

export interface Tab {
  /** Holds the connection until told to stop. */
  lead: (stop: AbortSignal) => void
  follow: () => void
  take: (message: Message) => void
  /** The last entry this tab knows. */
  last: () => number
}

export interface Means {
  locks: Pick<LockManager, 'request'>
  channel: Pick<BroadcastChannel, 'postMessage' | 'close' | 'onmessage'>
}

const ASK_MS = 10_000
const ANSWER_MS = 3_000

/** Tabs share by actor and credential: nobody hears what their own credential would not be told. */
export async function shareName(actor: string, role: string, authorization: string | null): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify([actor, role, authorization]))
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  // Half of it tells credentials apart, and does not tell what they are.
  return `pilot-feed-${Array.from(digest.slice(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

export function canShare(): boolean {
  return 'locks' in navigator && 'BroadcastChannel' in globalThis && globalThis.crypto?.subtle !== undefined
}

export class Sharing {
  readonly #name: string
  readonly #tab: Tab
  readonly #means: Means
  readonly #me = Math.random().toString(36).slice(2)
  #stop = new AbortController()
  #leading: AbortController | null = null
  #asking: ReturnType<typeof setInterval> | undefined
  #unanswered: ReturnType<typeof setTimeout> | undefined

  constructor(name: string, tab: Tab, means: Means) {
    this.#name = name
    this.#tab = tab
    this.#means = means
  }

  get isLeading(): boolean {
    return this.#leading !== null
  }

  start(): void {
    this.#means.channel.onmessage = ({ data }) => this.#heard(data as Message)
    this.#stop = new AbortController()
    this.#tab.follow()
    this.#wait(false)
    this.ask()
    this.#asking = setInterval(() => this.ask(), ASK_MS)
  }

  stop(): void {
    this.letGo()
    this.#means.channel.close()
  }

  /** Before the browser freezes the tab: the others go on without it. */
  letGo(): void {
    clearInterval(this.#asking)
    clearTimeout(this.#unanswered)
    this.#stop.abort()
    this.#leading?.abort()
    this.#leading = null
  }

  tell(message: Message): void {
    this.#means.channel.postMessage(message)
  }

  /** Is there a leader, and did something come that we have not got? Nobody who is told otherwise in time waits longer. */
  ask(): void {
    if (this.isLeading || this.#stop.signal.aborted) return
    this.#unanswered ??= setTimeout(() => {
      this.#unanswered = undefined
      if (!this.isLeading) this.#wait(true)
    }, ANSWER_MS)
    this.tell({ kind: 'hello', after: this.#tab.last(), from: this.#me })
  }

  /** Taken from the tab that holds it, if that does not answer. */
  #wait(isTaken: boolean): void {
    const stop = this.#stop.signal
    if (stop.aborted) return
    const options: LockOptions = isTaken ? { steal: true } : { signal: stop }
    const held = this.#means.locks.request(this.#name, options, () => {
      if (stop.aborted || this.isLeading) return
      const leading = new AbortController()
      this.#leading = leading
      this.#tab.lead(leading.signal)
      return new Promise<void>((resolve) => leading.signal.addEventListener('abort', () => resolve()))
    })
    held.catch(() => {
      // Taken from us by a tab that got no answer. It leads now, and we follow.
      if (this.#leading === null || stop.aborted) return
      this.#leading.abort()
      this.#leading = null
      this.#tab.follow()
      this.#wait(false)
      this.ask()
    })
  }

  #heard(message: Message): void {
    if (message.kind === 'here' && message.to !== this.#me) return
    if (!this.isLeading && message.kind !== 'hello') {
      clearTimeout(this.#unanswered)
      this.#unanswered = undefined
    }
    if (message.kind === 'hello' && !this.isLeading) return
    this.#tab.take(message)
  }
}
