// The verifier for browsers gives the answer that the program gives, to the byte. The bundles and the program's answers
// are those of `crates/pilot-verify/tests/command_line.rs`, which checks them against the program.
import { createHash, generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { verifyBundle, type Settings } from './program'
import { inOrder, placeOf, questions, readAnswer, type Fault, type ItemVerdict, type Verdict } from './verdict'

const BUNDLES = new URL('../../../crates/pilot-verify/tests/bundles/', import.meta.url)
const text = (name: string) => readFileSync(new URL(name, BUNDLES), 'utf8')
const bundle = (name: string) => new Blob([Buffer.from(text(`${name}.base64`), 'base64')])
const settings: Settings = { key: text('log.pub').trim(), witness_keys: [], witnesses: null }

/** A well-formed key that signed nothing. */
function otherKey(): string {
  const name = settings.key.split('+')[0] ?? ''
  const key = Buffer.concat([Buffer.from([1]), generateKeyPairSync('ed25519').publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)])
  const id = createHash('sha256').update(`${name}\n`).update(key).digest('hex').slice(0, 8)
  return `${name}+${id}+${key.toString('base64')}`
}

let program: WebAssembly.Module
beforeAll(async () => {
  program = await WebAssembly.compile(readFileSync(new URL('pilot_verifier.wasm', import.meta.url)))
})

const verdictOn = async (name: string) => readAnswer(await verifyBundle(program, bundle(name), settings)) as Verdict

describe('the answer', () => {
  test.each([
    ['whole', 'holds'],
    ['redacted', 'holds_as_far_as_checked'],
    ['changed', 'does_not_hold'],
    ['forged', 'does_not_hold'],
  ])('about a %s bundle is the one of the program', async (name, verdict) => {
    const answer = await verifyBundle(program, bundle(name), settings)
    expect(answer).toBe(text(`${name}.json`))
    expect((readAnswer(answer) as Verdict).verdict).toBe(verdict)
  })

  test('is the same however often it is asked for', async () => {
    const [first, second] = [await verifyBundle(program, bundle('whole'), settings), await verifyBundle(program, bundle('whole'), settings)]
    expect(first).toBe(second)
  })

  test('about what is not a bundle is a verdict too', async () => {
    for (const file of [new Blob([]), new Blob(['PK']), new Blob([new Uint8Array(100_000)])]) {
      const { verdict, faults } = readAnswer(await verifyBundle(program, file, settings)) as Verdict
      expect(verdict).toBe('does_not_hold')
      expect(faults).toHaveLength(1)
    }
  })

  test('with another key of a log of the same name is that nothing is signed with it', async () => {
    const { verdict, about, faults } = readAnswer(await verifyBundle(program, bundle('whole'), { ...settings, key: otherKey() })) as Verdict
    expect([verdict, about, faults.map(({ rule }) => rule)]).toEqual(['does_not_hold', undefined, ['manifest']])
  })

  test('says which setting keeps it from starting', async () => {
    const refused = async (change: Partial<Settings>) => readAnswer(await verifyBundle(program, bundle('whole'), { ...settings, ...change }))
    expect(await refused({ key: 'log.pub' })).toHaveProperty('refused.option', 'key')
    expect(await refused({ witness_keys: ['nobody'] })).toHaveProperty('refused.option', 'witness-key')
    expect(await refused({ witnesses: 1 })).toHaveProperty('refused.option', 'witnesses')
  })

  test('comes from a program that asks for nothing', () => {
    expect(WebAssembly.Module.imports(program)).toEqual([])
    const names = WebAssembly.Module.exports(program).map(({ name }) => name)
    expect(names.filter((name) => !name.startsWith('__'))).toEqual(['memory', 'pilot_answer', 'pilot_room', 'pilot_verify'])
  })
})

test('open questions are listed once for each kind, with their entries', async () => {
  const { unasked } = await verdictOn('redacted')
  const listed = questions(unasked)
  expect(listed.reduce((sum, { entries }) => sum + entries.length, 0)).toBe(unasked.length)
  expect(new Set(listed.map(({ question }) => question)).size).toBe(listed.length)
  expect(listed.length).toBeGreaterThan(2)
})

test('a fault says where it is', async () => {
  const words = { entry: (index: number) => `entry ${index}`, item: (id: string) => `item ${id}`, bundle: 'the bundle' }
  const [fault] = (await verdictOn('forged')).faults
  expect(placeOf(fault as Fault, words)).toMatch(/^entries\/.*, entry \d+, item [\w-]{36}$/)
  expect(placeOf({ rule: 'container', what: '' }, words)).toBe('the bundle')
})

test('items that fail come first', () => {
  const items = (['holds', 'not_checked', 'fails', 'holds'] as const).map((outcome, at) => ({ id: String(at), outcome }) as ItemVerdict)
  expect(inOrder(items).map(({ id }) => id)).toEqual(['2', '1', '0', '3'])
})
