// A small log, made here with other means than the console's, and every way in which a service could lie about an item.
import { createHash } from 'node:crypto'
import { beforeEach, expect, test, vi } from 'vitest'
import type { VerifierKey } from './note'

const sha = (...parts: Uint8Array[]) => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return new Uint8Array(hash.digest())
}
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const digest = (document: object) => `sha256:${createHash('sha256').update(sorted(document)).digest('hex')}`

/** JSON with the names in order: enough of the canonical form for these documents. */
function sorted(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(sorted).join(',')}]`
  return `{${Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)).map(([name, value]) => `${JSON.stringify(name)}:${sorted(value)}`).join(',')}}`
}

const half = (size: number) => 2 ** Math.ceil(Math.log2(size) - 1)
function root(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 1) return leaves[0] as Uint8Array
  const at = half(leaves.length)
  return sha(Uint8Array.of(1), root(leaves.slice(0, at)), root(leaves.slice(at)))
}
function path(index: number, leaves: Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return []
  const at = half(leaves.length)
  return index < at ? [...path(index, leaves.slice(0, at)), root(leaves.slice(at))] : [...path(index - at, leaves.slice(at)), root(leaves.slice(0, at))]
}

const ID = '01a1dd42-2763-7a3c-8834-2bf7ecc117fd'
const NAME = 'log.example.org'
const DEFINITION = `sha256:${'d'.repeat(64)}`
const FIRST = { nonce: 'n1', payload: { operation: 'pay 10', note: null }, title: 'Pay' }
const SECOND = { nonce: 'n2', payload: { operation: 'pay 20', list: [1.5, 'ä'] }, title: 'Pay more' }
const COMMENT = { comment: 'Looks right.', nonce: 'n3' }
const INPUTS = { inputs: { result: 'done' }, nonce: 'n4' }

const keys = (await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])) as CryptoKeyPair
const raw = new Uint8Array(await crypto.subtle.exportKey('raw', keys.publicKey))
const keyId = sha(Buffer.from(`${NAME}\n`), Uint8Array.of(1), raw).slice(0, 4)
const KEY: VerifierKey = { name: NAME, id: keyId, key: raw }

async function checkpoint(leaves: Uint8Array[], by = keys): Promise<string> {
  const text = `${NAME}\n${leaves.length}\n${base64(root(leaves))}\n`
  const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', by.privateKey, new TextEncoder().encode(text)))
  return `${text}\n— ${NAME} ${base64(new Uint8Array([...keyId, ...signature]))}\n`
}

const by = { actor_id: 'ana', role: 'initiator' }
const about = { definition: DEFINITION, item: ID, v: 1 }
const at = (minute: number) => `2026-11-15T09:0${minute}:00Z`
/** Three entries of the item and two of others between them. */
const ENTRIES: Record<string, unknown>[] = [
  { at: at(0), index: 0, type: 'service.started', v: 1 },
  { ...about, ...by, action: 'create', at: at(1), content: digest(FIRST), index: 1, to: 'draft', type: 'item.created', version: 1 },
  { ...about, ...by, action: 'edit', at: at(2), content: digest(SECOND), from: 'draft', index: 2, to: 'draft', type: 'item.edited', version: 2 },
  { at: at(3), index: 3, type: 'access.refused', v: 1 },
  { ...about, ...by, action: 'submit', at: at(4), comment: digest(COMMENT), content: digest(SECOND), from: 'draft', index: 4, inputs: digest(INPUTS), to: 'submitted', type: 'item.transition', version: 3 },
]
const LATER = [...ENTRIES, { at: at(5), index: 5, type: 'service.started', v: 1 }, { at: at(6), index: 6, type: 'service.started', v: 1 }]
const leavesOf = (entries: object[]) => entries.map((entry) => sha(Uint8Array.of(0), Buffer.from(sorted(entry))))

async function honest() {
  const leaves = leavesOf(ENTRIES)
  const later = leavesOf(LATER)
  const own = ENTRIES.filter((entry) => entry.item === ID)
  const texts = (entry: Record<string, unknown>) => (entry.comment === undefined ? { comment: null, comment_nonce: null, inputs: null, inputs_nonce: null } : { comment: COMMENT.comment, comment_nonce: COMMENT.nonce, inputs: INPUTS.inputs, inputs_nonce: INPUTS.nonce })
  return {
    key: KEY,
    item: { id: ID, title: SECOND.title, payload: SECOND.payload as Record<string, unknown>, content_nonce: SECOND.nonce as string | null, content_digest: digest(SECOND), state: 'submitted', version: 3, workflow: { digest: DEFINITION } },
    history: own.map((entry) => ({ ...texts(entry), item_id: ID, entry: entry.index as number, action: entry.action, actor_id: entry.actor_id, role: entry.role, at: entry.at, from: entry.from ?? null, to: entry.to, version: entry.version, content_digest: entry.content })) as Record<string, unknown>[],
    pages: [{ checkpoint: await checkpoint(leaves), proofs: own.map((entry) => ({ index: entry.index as number, leaf_hash: base64(leaves[entry.index as number] as Uint8Array), hashes: path(entry.index as number, leaves).map(base64) })) }],
    newest: await checkpoint(later),
    tiles: later,
    events: structuredClone(LATER),
    contents: { [digest(FIRST)]: FIRST, [digest(SECOND)]: SECOND } as Record<string, object>,
  }
}

let service: Awaited<ReturnType<typeof honest>>
beforeEach(async () => {
  service = await honest()
})

vi.mock('./api', () => {
  class Refused extends Error {
    constructor(readonly problem: { status: number }) {
      super()
    }
  }
  return {
    Refused,
    getItem: () => Promise.resolve(service.item),
    listHistory: () => Promise.resolve(service.history),
    getProofs: () => Promise.resolve(service.pages),
    getNewestCheckpoint: () => Promise.resolve(service.newest),
    getTile: (name: string) => {
      const [, index, , width] = /^0\/(\d{3})(\.p\/(\d+))?$/.exec(name) ?? []
      const wide = Number(width ?? 256)
      return index === '000' && service.tiles.length >= wide ? Promise.resolve(Uint8Array.from(service.tiles.slice(0, wide).flatMap((hash) => [...hash]))) : Promise.reject(new Refused({ status: 404 }))
    },
    listEvents: (after: number | null, limit: number) => Promise.resolve({ events: service.events.filter(({ index }) => (index as number) > (after ?? -1)).slice(0, limit) }),
    getContent: (_: string, wanted: string) => (service.contents[wanted] === undefined ? Promise.reject(new Refused({ status: 404 })) : Promise.resolve(service.contents[wanted])),
  }
})

async function verdict() {
  const { verifyItem } = await import('./verify')
  const steps: import('./verify').Step[] = []
  const findings = await verifyItem(ID, service.key, (step) => steps.push(step))
  return { findings, failed: steps.filter((step) => step.verdict === 'bad').map((step) => step.title), erased: steps.filter((step) => step.verdict === 'erased').map((step) => step.title) }
}

const SHOWN = 'The title and content shown on the item’s page are those of the last entry'
const GROWN = 'From 5 to 7 entries the log has only grown'
const line = (entry: number) => service.history.find((one) => one.entry === entry) as Record<string, unknown>

test('an honest service is verified, and what was verified is counted', async () => {
  const { findings, failed, erased } = await verdict()
  expect({ failed, erased }).toEqual({ failed: [], erased: [] })
  expect(findings).toMatchObject({ log: NAME, size: 5, newest: 7, entries: 3, shown: 'good', contents: { good: 2, erased: 0 }, comments: { good: 1, erased: 0 }, inputs: { good: 1, erased: 0 }, failed: 0 })
})

test('a lie about the content shown is found out', async () => {
  const lies: (() => void)[] = [
    () => (service.item.payload = { ...service.item.payload, operation: 'pay 10' }),
    () => (service.item.title = 'Pay less'),
    () => (service.item.payload = JSON.parse('{"operation":"pay 20","list":[1.5,"ä"],"__proto__":1}')),
    () => (service.item.content_nonce = null),
    () => Object.assign(service.item, { content_nonce: null, payload: {} }),
    // The content it had before, whole and with its own digest.
    () => Object.assign(service.item, { title: FIRST.title, payload: FIRST.payload, content_nonce: FIRST.nonce, content_digest: digest(FIRST) }),
  ]
  for (const lie of lies) {
    service = await honest()
    lie()
    expect((await verdict()).failed, String(lie)).toEqual([SHOWN])
  }
})

test('a lie about a text is found out', async () => {
  const lies: [() => void, string][] = [
    [() => (line(4).comment = 'Looks wrong.'), 'The comment of entry 4 has the digest in it'],
    [() => (line(4).comment_nonce = null), 'The comment of entry 4 has the digest in it'],
    [() => (line(4).inputs = { result: 'undone' }), 'The inputs of entry 4 have the digest in it'],
    [() => Object.assign(line(1), { comment: 'Never said', comment_nonce: 'n' }), 'The comment of entry 1 has the digest in it'],
    [() => (service.contents[digest(FIRST)] = { ...FIRST, title: 'Paid' }), 'The content since entry 1 has the digest in it'],
  ]
  for (const [lie, title] of lies) {
    service = await honest()
    lie()
    expect((await verdict()).failed, String(lie)).toEqual([title])
  }
})

test('a lie about who, what, when or where to is found out', async () => {
  for (const change of [{ actor_id: 'eve' }, { role: 'approver' }, { action: 'approve' }, { at: at(9) }, { to: 'approved' }, { from: null }, { content_digest: digest(FIRST) }, { item_id: 'x' }]) {
    service = await honest()
    Object.assign(line(4), change)
    expect((await verdict()).failed, JSON.stringify(change)).toContain('Entry 4 is in the tree')
  }
  service = await honest()
  Object.assign(service.events[4] as object, { actor_id: 'eve' })
  expect((await verdict()).failed).toContain('Entry 4 is in the tree')
  service = await honest()
  service.item.state = 'approved'
  expect((await verdict()).failed).toEqual(['State, version and definition shown are those of the last entry'])
})

test('an entry that is left out, or one too many, is found out', async () => {
  service.history.splice(1, 1)
  expect((await verdict()).failed).toContain('Each of 2 lines of the timeline has its entry')
  service = await honest()
  service.pages[0]?.proofs.pop()
  expect((await verdict()).failed).toContain('Each of 3 lines of the timeline has its entry')
})

test('a log that was rewritten, cut or signed by someone else is found out', async () => {
  const changed = leavesOf(LATER.map((entry, index) => (index === 3 ? { ...entry, at: at(9) } : entry)))
  service.newest = await checkpoint(changed)
  service.tiles = changed
  expect((await verdict()).failed).toEqual([GROWN])

  service = await honest()
  service.newest = await checkpoint(leavesOf(ENTRIES.slice(0, 4)))
  expect((await verdict()).failed).toEqual(['From 5 to 4 entries the log has only grown'])

  service = await honest()
  service.tiles = []
  expect((await verdict()).failed).toEqual([GROWN])

  service = await honest()
  const stranger = (await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])) as CryptoKeyPair
  service.newest = await checkpoint(leavesOf(LATER), stranger)
  expect((await verdict()).failed).toEqual(['The newest checkpoint, of 7 entries, is signed with the same key'])

  service = await honest()
  service.key = { ...KEY, name: 'another.example.org' }
  expect((await verdict()).failed).toHaveLength(2)
})

test('what was erased is said as such, and does not fail', async () => {
  service.contents = {}
  Object.assign(service.item, { title: '(erased)', payload: {}, content_nonce: null })
  for (const one of service.history) Object.assign(one, { comment: null, comment_nonce: null, inputs: null, inputs_nonce: null })
  const { findings, failed, erased } = await verdict()
  expect(failed).toEqual([])
  expect(erased).toHaveLength(5)
  expect(findings).toMatchObject({ shown: 'erased', contents: { good: 0, erased: 2 }, comments: { good: 0, erased: 1 }, inputs: { good: 0, erased: 1 }, entries: 3 })
})

test('what happens while it is being gathered is no failure', async () => {
  const whole = service.history
  let asked = 0
  Object.defineProperty(service, 'history', { get: () => (asked++ === 0 ? whole.slice(0, 2) : whole) })
  expect((await verdict()).failed).toEqual([])
  expect(asked).toBeGreaterThan(1)
})
