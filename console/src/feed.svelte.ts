// The ledger as it grows. One stream for all tabs of a person; it resumes where it was cut off, so nothing is missed and
// nothing comes twice.
import { createParser } from 'eventsource-parser'
import { Refused, getCheckpoint, listEvents, open, type Entry } from './api'
import { connection } from './connection.svelte'
import { session } from './session.svelte'
import { canShare, shareName, Sharing, type Message } from './sharing'

const KEPT = 500
const BACKLOG = 100
const PAGE = 200
const FIRST_PAUSE_MS = 500
const LAST_PAUSE_MS = 15_000
/** A proxy that holds a stream back does so before its first byte. */
const HEADERS_MS = 10_000

type Listener = (entry: Entry) => void

export class Feed {
  /** Newest first. */
  entries = $state.raw<Entry[]>([])
  isLive = $state.raw(false)
  /** Whether it is known where the feed begins. What is loaded before that may miss an entry in between. */
  hasBegun = $state.raw(false)
  #listeners = new Set<Listener>()
  #stop: AbortController | null = null
  #reading: AbortController | null = null
  #sharing: Sharing | null = null
  #last: number | null = null
  /** Entries up to here were there before us, and are no news. */
  #known = -1
  /** `entries` has every entry after this one. */
  #from = -1
  #isFilling = false

  start(): void {
    if (this.#stop !== null) return
    this.#stop = new AbortController()
    void this.#begin(this.#stop.signal)
  }

  /** For tabs that cannot share: lets go of the connection, and goes on from there later. */
  pause(): void {
    if (this.#sharing !== null) return
    this.#halt()
  }

  stop(): void {
    this.#halt()
    this.entries = []
    this.hasBegun = false
    this.#last = null
    this.#known = -1
    this.#from = -1
  }

  /** The tab is about to be frozen, or was just woken. */
  freeze(): void {
    this.#halt()
  }

  /** Someone looks at the tab: a leader that is gone is noticed now. */
  look(): void {
    this.#sharing?.ask()
  }

  #halt(): void {
    this.#stop?.abort()
    this.#stop = null
    this.#reading?.abort()
    this.#reading = null
    this.#sharing?.stop()
    this.#sharing = null
    this.isLive = false
  }

  /** Tells of entries that came in since the sign-in. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #begin(signal: AbortSignal): Promise<void> {
    await this.#findBeginning(signal)
    const me = session.me
    if (signal.aborted || me === null) return
    if (!canShare()) {
      this.#read(signal)
      return
    }
    const name = await shareName(me.actor_id, me.role, session.authorization()).catch(() => null)
    if (signal.aborted) return
    if (name === null) {
      this.#read(signal)
      return
    }
    const tab = {
      lead: (stop: AbortSignal) => this.#read(either(signal, stop)),
      follow: () => void (this.isLive = false),
      take: (message: Message) => this.#hear(message),
      last: () => this.#last ?? -1,
    }
    this.#sharing = new Sharing(name, tab, { locks: navigator.locks, channel: new BroadcastChannel(name) })
    this.#sharing.start()
  }

  /** Where the ledger ends now, before anything is loaded from it: from there on every entry is news. */
  async #findBeginning(signal: AbortSignal): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (this.#last === null && !signal.aborted) {
      try {
        const size = Number((await getCheckpoint()).split('\n')[1])
        if (signal.aborted) return
        this.#known = size - 1
        this.#last = this.#from = Math.max(-1, size - 1 - BACKLOG)
        // What was shown meanwhile was loaded without knowing this.
        if (this.hasBegun) connection.returns += 1
      } catch {
        this.hasBegun = true
        await later(pause, signal)
        pause = Math.min(pause * 2, LAST_PAUSE_MS)
      }
    }
    if (!signal.aborted) this.hasBegun = true
  }

  #read(signal: AbortSignal): void {
    this.#reading?.abort()
    const mine = new AbortController()
    this.#reading = mine
    void this.#run(either(signal, mine.signal))
  }

  async #run(signal: AbortSignal): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (!signal.aborted) {
      try {
        await this.#stream(signal, () => (pause = FIRST_PAUSE_MS))
      } catch (error) {
        // The token may be about to be renewed; when it is not, the session has ended and so has this.
        if (error instanceof Refused && error.problem.status === 401 && session.me === null) return
      }
      if (signal.aborted) return
      this.#setLive(false)
      // A proxy may let everything through but streams. Then entries come when they are asked for.
      if (!connection.isLost) await this.#fill(signal).catch(() => {})
      await later(pause, signal)
      pause = Math.min(pause * 2, LAST_PAUSE_MS)
    }
  }

  async #stream(signal: AbortSignal, isConnected: () => void): Promise<void> {
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (this.#last !== null && this.#last >= 0) headers['Last-Event-ID'] = String(this.#last)
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), HEADERS_MS)
    const whole = either(signal, late.signal)
    const response = await open('/v1/events', headers, whole).finally(() => clearTimeout(timer))
    this.#setLive(true)
    isConnected()
    let batch: Entry[] = []
    const parser = createParser({ onEvent: (event) => batch.push(JSON.parse(event.data) as Entry) })
    const reader = (response.body as ReadableStream<Uint8Array>).getReader()
    const decoder = new TextDecoder()
    for (;;) {
      const { done, value } = await reader.read()
      if (done || signal.aborted) return
      parser.feed(decoder.decode(value, { stream: true }))
      this.#take(batch)
      batch = []
    }
  }

  /** What came after the last entry, page by page. */
  async #fill(signal: AbortSignal): Promise<void> {
    if (this.#isFilling) return
    this.#isFilling = true
    try {
      for (;;) {
        const after = this.#last ?? -1
        const page = await listEvents(after < 0 ? null : after, PAGE)
        if (signal.aborted) return
        this.#take(page.events)
        if (page.events.length < PAGE) return
      }
    } finally {
      this.#isFilling = false
    }
  }

  /** From the service, or from the tab that leads. What is already here is dropped. */
  #take(given: Entry[]): void {
    const before = this.#last ?? -1
    const batch = given.filter((entry) => entry.index > before)
    const last = batch.at(-1)?.index
    if (last === undefined || session.me === null) return
    this.#last = last
    const all = [...batch.toReversed(), ...this.entries]
    this.#from = all[KEPT]?.index ?? this.#from
    this.entries = all.slice(0, KEPT)
    if (this.#sharing?.isLeading) this.#sharing.tell({ kind: 'entries', after: before, last, entries: batch })
    for (const entry of batch) {
      if (entry.index > this.#known) for (const listener of this.#listeners) listener(entry)
    }
    if (connection.isLost) void connection.ask()
  }

  #setLive(isLive: boolean): void {
    this.isLive = isLive
    if (this.#sharing?.isLeading) this.#sharing.tell({ kind: 'status', isLive })
  }

  #hear(message: Message): void {
    const sharing = this.#sharing
    if (sharing === null) return
    if (message.kind === 'hello') {
      sharing.tell({ kind: 'here', isLive: this.isLive, to: message.from })
      const last = this.#last ?? -1
      if (message.after >= last || message.after < this.#from) return this.#point(message.after, last)
      const entries = this.entries.filter((entry) => entry.index > message.after).toReversed()
      sharing.tell({ kind: 'entries', after: message.after, last, entries })
    } else if (sharing.isLeading) return
    else if (message.kind === 'entries') this.#follow(message)
    else {
      this.isLive = message.isLive
      // The tab that leads has lost it; whether the service is gone is for each to find out.
      if (!message.isLive) void connection.suspect()
    }
  }

  /** Older than what a leader keeps: the tab that asked gets it from the service. */
  #point(after: number, last: number): void {
    if (after < last) this.#sharing?.tell({ kind: 'entries', after: last, last, entries: [] })
  }

  #follow({ after, last, entries }: Extract<Message, { kind: 'entries' }>): void {
    const mine = this.#last ?? -1
    if (after <= mine) this.#take(entries)
    // Something in between was told while we did not listen.
    else if (last > mine && this.#stop !== null) void this.#fill(this.#stop.signal).catch(() => {})
  }
}

function later(pause: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, pause)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Not every browser that the console is for has `AbortSignal.any`. */
function either(one: AbortSignal, other: AbortSignal): AbortSignal {
  const both = new AbortController()
  for (const signal of [one, other]) {
    if (signal.aborted) both.abort()
    signal.addEventListener('abort', () => both.abort(), { once: true, signal: both.signal })
  }
  return both.signal
}

export const feed = new Feed()
