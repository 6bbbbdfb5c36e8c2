// What is computed from what the API says: addresses, forms, paths, figures.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Entry, Item, Workflow } from './api'
import { nameOf, sizeOf } from './download'
import { byAge, quantile, timesToDecide } from './figures'
import { inputsOf, needsOf } from './inputs'
import { mainLine, picture } from './layout'
import { handOver, pathTaken, rulesFor, spanWords } from './rules'
import { href, segments } from './router.svelte'
import { problems } from './text'
import { fieldOfPointer, fieldsOf, read, typed } from './schema'

const workflow = {
  initial: 'draft',
  states: [
    { name: 'draft', kind: 'open', editable: true },
    { name: 'submitted', kind: 'open' },
    { name: 'executing', kind: 'effect' },
    { name: 'closed', kind: 'terminal' },
    { name: 'rejected', kind: 'terminal' },
  ],
  transitions: [
    { action: 'withdraw', from: ['draft'], to: 'rejected', roles: ['initiator'], own: 'creator' },
    { action: 'submit', from: ['draft'], to: 'submitted', roles: ['initiator'], own: 'creator' },
    { action: 'reject', from: ['submitted'], to: 'rejected', roles: ['approver'], comment_required: true },
    { action: 'start', from: ['submitted'], to: 'executing', roles: ['executor'] },
    { action: 'reconcile', from: ['executing'], to: 'closed', roles: ['approver'], when: { input: 'outcome', equals: 'good' } },
    { action: 'reconcile', from: ['executing'], to: 'rejected', roles: ['approver'], when: { input: 'outcome', equals: 'bad' } },
  ],
  timers: [{ from: ['submitted'], after: '72h', to: 'rejected' }],
  hold: { roles: ['approver'], release_roles: ['security_admin'], blocks: [] },
} as unknown as Workflow

test('an address is taken apart and put together again', () => {
  expect(segments('/console/items/a%2Fb')).toEqual(['items', 'a/b'])
  expect(segments('/')).toEqual([])
  expect(segments('/console')).toEqual([])
  expect(segments('/console/%zz')).toEqual(['%zz'])
  expect(href(['items', 'a/b'], { q: 'x y', state: '', cursor: null })).toBe('/console/items/a%2Fb?q=x+y')
  expect(href(['items'])).toBe('/console/items')
})

test('the usual way leads over the effect to the nearest end', () => {
  expect(mainLine(workflow)).toEqual(['draft', 'submitted', 'executing', 'closed'])
})

test('the picture has the path, the present state and where it can go', () => {
  const { nodes, edges } = picture(workflow, ['draft', 'submitted'])
  const said = nodes.map(({ name, column, isVisited, isNow, isNext }) => [name, column, isVisited, isNow, isNext])
  expect(said).toContainEqual(['submitted', 0, true, true, false])
  expect(said).toContainEqual(['executing', 0, false, false, true])
  expect(said).toContainEqual(['rejected', 1, false, false, true])
  expect(edges.find(({ from, to }) => from.name === 'draft' && to.name === 'submitted')?.kind).toBe('taken')
  const places = nodes.map(({ column, row }) => `${column} ${row}`)
  expect(new Set(places).size).toBe(places.length)
})

test('a path leaves out what stayed in place', () => {
  const history = [{ from: null, to: 'draft' }, { from: 'draft', to: 'draft' }, { from: 'draft', to: 'submitted' }, { from: null, to: null }]
  expect(pathTaken(history, { state: 'submitted' } as Item)).toEqual(['draft', 'submitted'])
})

test('rules say what an action needs', () => {
  expect(handOver(workflow, 'draft')).toBe('submit')
  expect(handOver(workflow, 'submitted')).toBeNull()
  const reconcile = needsOf(rulesFor(workflow, 'reconcile', 'executing'))
  expect(reconcile.choice).toEqual({ input: 'outcome', values: ['good', 'bad'] })
  expect(needsOf(rulesFor(workflow, 'hold', 'draft')).comment).toBe(true)
  expect(spanWords('72h')).toBe('72 hours')
  expect(spanWords('1d')).toBe('1 day')
  const given = { notBefore: '', notAfter: '', result: ' ', progress: '', artifacts: [], choice: 'good' }
  expect(inputsOf(reconcile, given)).toEqual({ outcome: 'good' })
  expect(inputsOf({ ...reconcile, choice: null, result: true }, given)).toBeUndefined()
})

test('a form is made from a schema, and what is typed comes back as it was', () => {
  const schema = {
    required: ['purpose', 'risk'],
    properties: {
      risk: { type: 'string', enum: ['low', 'high'] },
      links: { type: 'array', items: { type: 'string' } },
      purpose: { type: 'string', description: 'why' },
      operation: { anyOf: [{ type: 'string' }, { type: 'object' }] },
      size: { type: 'integer' },
      rest: { type: 'object' },
    },
  }
  const fields = fieldsOf(schema)
  expect(fields.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
    'purpose text',
    'risk choice',
    'links lines',
    'operation text_or_object',
    'size number',
    'rest json',
  ])
  const payload: Record<string, unknown> = { purpose: ' x\n', risk: 'low', links: ['a', 'b'], operation: { c: 1 }, size: 3, rest: { d: [] } }
  for (const field of fields) expect(read(field, typed(field, payload[field.name])), field.name).toEqual({ value: payload[field.name] })
  const [, , , operation, size] = fields
  if (operation === undefined || size === undefined) throw new Error('both are there')
  expect(read(operation, { text: '{"c": 1', isObject: true })).toEqual({ fault: 'json' })
  expect(read(operation, { text: '[1]', isObject: true })).toEqual({ fault: 'json' })
  expect(read(size, { text: 'three', isObject: false })).toEqual({ fault: 'number' })
  expect(fieldOfPointer('/payload/a~1b/0')).toBe('a/b')
  expect(fieldOfPointer('/title')).toBe('title')
  expect(fieldOfPointer('/query/q')).toBeNull()
})

test('figures are what one would count by hand', () => {
  const entry = (index: number, action: string, actor_id: string, at: string): Entry => ({ index, action, actor_id, at, item: 'i', type: 'item.transition', v: 1 })
  const entries = [
    entry(2, 'approve', 'ben', '2026-01-01T01:00:00Z'),
    entry(1, 'submit', 'ana', '2026-01-01T00:00:00Z'),
    entry(3, 'clear', 'sol', '2026-01-01T09:00:00Z'),
  ]
  expect(timesToDecide(entries)).toEqual([3_600_000])
  expect([quantile([1, 2, 3, 4], 0.5), quantile([1, 2, 3, 4], 1), quantile([], 0.5)]).toEqual([2, 4, null])
  const now = Date.parse('2026-01-08T00:00:00Z')
  const items = ['2026-01-07T23:30:00Z', '2025-12-01T00:00:00Z'].map((created_at) => ({ created_at }) as Item)
  expect(byAge(items, now, ['a', 'b', 'c', 'd', 'e']).map((bar) => bar.value)).toEqual([1, 0, 0, 0, 1])
})

test('a downloaded file has a plain name', () => {
  expect(nameOf('attachment; filename="evidence-1.zip"')).toBe('evidence-1.zip')
  expect(nameOf('attachment; filename="../../etc/passwd"')).toBe('.._.._etc_passwd')
  expect(nameOf('attachment; filename=".."')).toBeNull()
  expect(nameOf(null)).toBeNull()
  expect([sizeOf(999), sizeOf(1_500), sizeOf(2_500_000)]).toEqual(['999 B', '1.5 kB', '2.5 MB'])
})

test('every problem the service can answer with has words for people', () => {
  const document = JSON.parse(readFileSync('../docs/reference/openapi.json', 'utf8')) as { components: { schemas: { Code: { enum: string[] } } } }
  const codes = document.components.schemas.Code.enum
  expect(codes.length).toBeGreaterThan(15)
  expect(codes.filter((code) => !(code in problems))).toEqual([])
})
