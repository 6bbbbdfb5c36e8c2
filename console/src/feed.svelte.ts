// The ledger as it grows. One stream for the whole console; it resumes where it was cut off, so nothing is missed and
// nothing comes twice.
import { createParser } from 'eventsource-parser'
import { Refused, getCheckpoint, open, type Entry } from './api'
import { connection } from './connection.svelte'
import { session } from './session.svelte'

const KEPT = 500
const BACKLOG = 100
const FIRST_PAUSE_MS = 500
const LAST_PAUSE_MS = 15_000

type Listener = (entry: Entry) => void

class Feed {
  /** Newest first. */
  entries = $state.raw<Entry[]>([])
  isLive = $state.raw(false)
  #listeners = new Set<Listener>()
  #stop: AbortController | null = null
  #last: number | null = null
  /** Entries up to here were there before us, and are no news. */
  #known = -1

  start(): void {
    if (this.#stop !== null) return
    this.#stop = new AbortController()
    void this.#run(this.#stop.signal)
  }

  /** Lets go of the connection, of which a browser has only a few for each service, and goes on from there later. */
  pause(): void {
    this.#stop?.abort()
    this.#stop = null
    this.isLive = false
  }

  stop(): void {
    this.pause()
    this.entries = []
    this.#last = null
    this.#known = -1
  }

  /** Tells of entries that came in since the sign-in. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #run(signal: AbortSignal): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (!signal.aborted) {
      try {
        await this.#read(signal, () => (pause = FIRST_PAUSE_MS))
      } catch (error) {
        // The token may be about to be renewed; when it is not, the session has ended and so has this.
        if (error instanceof Refused && error.problem.status === 401 && session.me === null) return
      }
      this.isLive = false
      await later(pause, signal)
      pause = Math.min(pause * 2, LAST_PAUSE_MS)
    }
  }

  async #read(signal: AbortSignal, isConnected: () => void): Promise<void> {
    if (this.#last === null) {
      const size = Number((await getCheckpoint()).split('\n')[1])
      this.#known = size - 1
      this.#last = Math.max(-1, size - 1 - BACKLOG)
    }
    const headers: Record<string, string> = { Accept: 'text/event-stream' }
    if (this.#last >= 0) headers['Last-Event-ID'] = String(this.#last)
    const response = await open('/v1/events', headers, signal)
    this.isLive = true
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

  #take(batch: Entry[]): void {
    if (batch.length === 0 || session.me === null) return
    this.#last = batch[batch.length - 1]?.index ?? this.#last
    this.entries = [...batch.reverse(), ...this.entries].slice(0, KEPT)
    for (const entry of batch.reverse()) {
      if (entry.index > this.#known) for (const listener of this.#listeners) listener(entry)
    }
    if (connection.isLost) void connection.ask()
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

export const feed = new Feed()
