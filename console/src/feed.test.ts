// Tabs of one person share a stream: each entry reaches each tab once, whichever of them holds the connection.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Entry } from './api'

/** The ledger, and who is connected to it. */
let ledger: Entry[] = []
let streams: { push: (entry: Entry) => void; end: () => void }[] = []
let isBlocked = false

const encoder = new TextEncoder()
const line = (entry: Entry) => encoder.encode(`id: ${entry.index}\ndata: ${JSON.stringify(entry)}\n\n`)

vi.mock('./api', () => ({
  Refused: class extends Error {},
  getCheckpoint: () => Promise.resolve(`log\n${ledger.length}\nroot\n`),
  listEvents: (after: number | null, limit: number) =>
    Promise.resolve({ events: ledger.filter((entry) => entry.index > (after ?? -1)).slice(0, limit), next_after: null }),
  open: (_: string, headers: Record<string, string>, signal: AbortSignal) => {
    if (isBlocked) return Promise.reject(new Error('a proxy'))
    const after = Number(headers['Last-Event-ID'] ?? -1)
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const entry of ledger) if (entry.index > after) controller.enqueue(line(entry))
        const stream = { push: (entry: Entry) => controller.enqueue(line(entry)), end: () => controller.close() }
        streams.push(stream)
        signal.addEventListener('abort', () => {
          streams = streams.filter((other) => other !== stream)
          controller.error(new Error('aborted'))
        })
      },
    })
    return Promise.resolve(new Response(body))
  },
}))
let me: object | null = { actor_id: 'ana', role: 'initiator' }
let authorization = 'Bearer one'
vi.mock('./session.svelte', () => ({ session: { get me() { return me }, authorization: () => authorization, onEnd: () => {} } }))
vi.mock('./connection.svelte', () => ({ connection: { isLost: false, returns: 0, ask: () => {}, suspect: () => Promise.resolve() } }))

/** Locks as browsers have them: for each name one holder, a queue, and taking by force. */
function locks() {
  interface Held { end: (error: Error) => void }
  const holders = new Map<string, Held>()
  const queues = new Map<string, (() => void)[]>()
  return {
    request(name: string, { signal, steal }: { signal?: AbortSignal; steal?: boolean }, use: () => Promise<void> | undefined) {
      const queue = queues.get(name) ?? []
      queues.set(name, queue)
      return new Promise<void>((resolve, reject) => {
        const grant = () => {
          const mine: Held = { end: reject }
          holders.set(name, mine)
          void Promise.resolve(use()).then(() => {
            resolve()
            if (holders.get(name) !== mine) return
            holders.delete(name)
            queue.shift()?.()
          })
        }
        if (steal === true) {
          holders.get(name)?.end(new Error('stolen'))
          grant()
        } else if (!holders.has(name)) grant()
        else {
          queue.push(grant)
          signal?.addEventListener('abort', () => {
            if (queue.includes(grant)) queue.splice(queue.indexOf(grant), 1)
            reject(new Error('aborted'))
          })
        }
      })
    },
  }
}

const { Feed } = await import('./feed.svelte')
const { Sharing, shareName } = await import('./sharing')
type Sharing = InstanceType<typeof Sharing>
type Tab = InstanceType<typeof Feed>
let tabs: Tab[] = []

function write(): Entry {
  const entry = { index: ledger.length, type: 'item.comment', at: '' } as unknown as Entry
  ledger.push(entry)
  for (const stream of streams) stream.push(entry)
  return entry
}

function tab(): { feed: Tab; heard: number[] } {
  const feed = new Feed()
  const heard: number[] = []
  feed.listen((entry) => heard.push(entry.index))
  feed.start()
  tabs.push(feed)
  return { feed, heard }
}

async function until(is: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(is()).toBe(true), { timeout: 5_000, interval: 5 })
}

beforeEach(() => {
  ledger = []
  streams = []
  tabs = []
  isBlocked = false
  authorization = 'Bearer one'
  me = { actor_id: 'ana', role: 'initiator' }
  vi.stubGlobal('navigator', { locks: locks() })
  for (let at = 0; at < 5; at += 1) write()
})
afterEach(() => {
  for (const feed of tabs) feed.stop()
  vi.useRealTimers()
})

it('finding 26: seven tabs of one person hold one connection, and each hears every entry once', async () => {
  const seven = Array.from({ length: 7 }, tab)
  await until(() => seven.every(({ feed }) => feed.hasBegun && feed.isLive))
  expect(streams).toHaveLength(1)
  for (let at = 0; at < 20; at += 1) write()
  const expected = Array.from({ length: 20 }, (_, at) => at + 5)
  await until(() => seven.every(({ heard }) => heard.length >= 20))
  for (const { heard } of seven) expect(heard).toEqual(expected)
  expect(seven[6]?.feed.entries.map((entry) => entry.index)).toEqual(seven[0]?.feed.entries.map((entry) => entry.index))
})

it('when the tab with the connection closes, another goes on: nothing is missed, nothing comes twice', async () => {
  const [first, second, third] = [tab(), tab(), tab()]
  await until(() => [first, second, third].every(({ feed }) => feed.isLive))
  write()
  await until(() => third.heard.length === 1 && second.heard.length === 1)
  first.feed.stop()
  write()
  await until(() => streams.length === 1 && third.heard.length === 2 && second.heard.length === 2)
  write()
  await until(() => third.heard.length === 3)
  expect([second.heard, third.heard]).toEqual([[5, 6, 7], [5, 6, 7]])
})

it('a tab that is frozen hears afterwards what it slept through', async () => {
  const [first, second] = [tab(), tab()]
  await until(() => first.feed.isLive && second.feed.isLive)
  first.feed.freeze()
  for (let at = 0; at < 700; at += 1) write()
  await until(() => second.heard.length === 700)
  first.feed.start()
  await until(() => first.heard.length === 700)
  expect(first.heard).toEqual(second.heard)
  expect(streams).toHaveLength(1)
})

it('tabs of different people, or with different credentials, share nothing', async () => {
  const one = tab()
  await until(() => one.feed.isLive)
  authorization = 'Bearer two'
  const other = tab()
  await until(() => other.feed.isLive)
  me = { actor_id: 'ben', role: 'approver' }
  const third = tab()
  await until(() => third.feed.isLive)
  expect(streams).toHaveLength(3)
  write()
  await until(() => [one, other, third].every(({ heard }) => heard.length === 1))
  expect(await shareName('ana', 'initiator', 'Bearer secret')).not.toContain('secret')
})

it('a tab that leads and does not answer loses the lead, and follows when it wakes', async () => {
  vi.useFakeTimers()
  const shared = locks()
  const channels: { onmessage: ((event: MessageEvent) => void) | null }[] = []
  const leads: string[] = []
  let isHung = true
  function sharing(name: string) {
    const channel = {
      onmessage: null as ((event: MessageEvent) => void) | null,
      close: () => {},
      postMessage: (data: unknown) => channels.forEach((other) => other !== channel && other.onmessage?.({ data } as MessageEvent)),
    }
    channels.push(channel)
    const made: Sharing = new Sharing(
      name,
      {
        lead: () => leads.push(name),
        follow: () => {},
        last: () => -1,
        take: (message) => message.kind === 'hello' && !(name === 'hung' && isHung) && made.tell({ kind: 'here', isLive: true, to: message.from }),
      },
      { locks: { request: (_: string, ...rest: unknown[]) => (shared.request as (...all: unknown[]) => Promise<void>)('lock', ...rest) } as never, channel: channel as never },
    )
    made.start()
    return made
  }
  const hung = sharing('hung')
  const other = sharing('other')
  await vi.advanceTimersByTimeAsync(2_900)
  expect(leads).toEqual(['hung'])
  await vi.advanceTimersByTimeAsync(200)
  expect(leads).toEqual(['hung', 'other'])
  expect([hung.isLeading, other.isLeading]).toEqual([false, true])
  isHung = false
  await vi.advanceTimersByTimeAsync(60_000)
  expect(leads).toEqual(['hung', 'other'])
  other.stop()
  await vi.advanceTimersByTimeAsync(0)
  expect(hung.isLeading).toBe(true)
  hung.stop()
})

it('an entry between the beginning and the first list is told', async () => {
  const { feed, heard } = tab()
  await until(() => feed.hasBegun)
  const { index } = write()
  await until(() => heard.length === 1)
  expect(heard).toEqual([index])
})

it('finding 33: where streams are blocked, entries come all the same', async () => {
  isBlocked = true
  const { feed, heard } = tab()
  await until(() => feed.hasBegun)
  write()
  await until(() => heard.length === 1)
  expect(feed.isLive).toBe(false)
})
