import { expect, test } from 'vitest'
import type { Item, Problem, Workflow } from './api'
import { Draft } from './draft.svelte'

const workflow = (...names: string[]) => ({ payload_schema: { required: names, properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) } }) as unknown as Workflow
const item = (payload: Record<string, unknown>, title = 't') => ({ title, payload }) as Item
const problem = (...errors: [string, string][]) => ({ code: 'invalid_request', errors: errors.map(([pointer, detail]) => ({ pointer, detail })) }) as unknown as Problem

function type(draft: Draft, name: string, text: string) {
  const member = draft.members.find(({ field }) => field.name === name)
  if (member === undefined) throw new Error(`there is a field ${name}`)
  member.typed.text = text
}

test('another workflow keeps every member that its form has too, and the rest among the others', () => {
  const draft = new Draft(workflow('purpose', 'incident'), null)
  draft.title = 'kept'
  type(draft, 'purpose', 'why')
  type(draft, 'incident', 'I-7')
  draft.others = '{"ticket": 1}'
  expect(draft.moveTo(workflow('purpose', 'ticket'))).toBe(true)
  expect(draft.title).toBe('kept')
  expect(draft.members.map(({ field, typed }) => [field.name, typed.text])).toEqual([['purpose', 'why'], ['ticket', '1']])
  expect(JSON.parse(draft.others)).toEqual({ incident: 'I-7' })
  expect(draft.moveTo(workflow('purpose', 'incident'))).toBe(true)
  expect(draft.payload()).toEqual({ purpose: 'why', incident: 'I-7', ticket: 1 })
})

test('what cannot be read is not taken into another workflow or out of JSON', () => {
  const draft = new Draft(workflow('purpose'), null)
  draft.others = '{"a": '
  expect(draft.moveTo(workflow('incident'))).toBe(false)
  expect(draft.turn(true)).toBe(false)
  expect(draft.wrongAt('others')).toHaveLength(1)
  expect(draft.others).toBe('{"a": ')
})

test('a fault is gone as soon as its field is changed, and only that one', () => {
  const draft = new Draft(workflow('purpose', 'incident'), null)
  draft.place(problem(['/payload/incident', 'is required'], ['/title', 'must have 1 to 200 characters'], ['/payload/purpose', 'is required']))
  expect(draft.wrong.map(({ at }) => at)).toEqual(['title', 'payload/purpose', 'payload/incident'])
  type(draft, 'purpose', 'x')
  expect(draft.wrong.map(({ at }) => at)).toEqual(['title', 'payload/incident'])
  expect(draft.wrongAt('title')).toEqual(['This is required.'])
})

test('a fault of the whole is not put under the other members', () => {
  const draft = new Draft(workflow('purpose'), null)
  draft.place(problem(['/payload', 'is larger than 65536 bytes'], ['/payload/ticket', 'is required']))
  expect(draft.wrong.map(({ at, sentence }) => [at, sentence.slice(0, 30)])).toEqual([[null, 'Content: This is larger than t'], [null, 'ticket: This is required.']])
  expect(draft.wrongAt('others')).toEqual([])
})

test('a member that has a field is not written among the others', () => {
  const draft = new Draft(workflow('purpose'), null)
  draft.others = '{"purpose": "sneaked in"}'
  expect(draft.payload()).toBeNull()
  expect(draft.wrongAt('others')).toEqual(['“purpose” has a field of its own: Purpose. Write it there.'])
})

test('the same value written differently is not a change', () => {
  const draft = new Draft(workflow('purpose'), item({ purpose: 'p', b: 1, a: 2 }))
  expect(draft.isChanged).toBe(false)
  draft.others = '{ "a": 2, "b": 1 }'
  expect(draft.isChanged).toBe(false)
  draft.turn(true)
  expect(draft.isChanged).toBe(false)
  draft.raw = '{"purpose": "q"}'
  expect(draft.isChanged).toBe(true)
})

test('after a save the form shows what is stored, unless someone went on typing', () => {
  const draft = new Draft(workflow('purpose'), null)
  type(draft, 'purpose', 'p')
  draft.others = '{"a":1.0}'
  const sent = draft.sendable
  draft.settle(item({ purpose: 'p', a: 1 }, ''), sent)
  expect(draft.others).toBe('{\n  "a": 1\n}')
  expect(draft.isChanged).toBe(false)
  const again = draft.sendable
  type(draft, 'purpose', 'pq')
  draft.settle(item({ purpose: 'p', a: 1 }, ''), again)
  expect(draft.payload()).toEqual({ purpose: 'pq', a: 1 })
  expect(draft.isChanged).toBe(true)
})

test('a member called __proto__ is a member, with a field and without', () => {
  const payload = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, unknown>
  for (const form of [workflow('purpose'), { payload_schema: JSON.parse('{"properties": {"__proto__": {"type": "string"}}}') } as unknown as Workflow]) {
    const draft = new Draft(form, item(payload))
    expect(JSON.stringify(draft.payload())).toContain('"__proto__":"x"')
    draft.turn(true)
    expect(JSON.stringify(draft.payload())).toContain('"__proto__":"x"')
    const again = new Draft(form, null)
    again.resume(JSON.parse(JSON.stringify(draft.written())))
    expect(JSON.stringify(again.payload())).toContain('"__proto__":"x"')
  }
})
