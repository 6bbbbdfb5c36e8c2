// What is computed from what the API says: addresses, forms, paths.
import { readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import type { Item, Workflow } from './api'
import { nameOf, sizeOf } from './download'
import { inputsOf, needsOf } from './inputs'
import { mainLine, picture } from './layout'
import { handOver, pathTaken, rulesFor, spanWords } from './rules'
import { href, segments } from './router.svelte'
import { problems } from './text'

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

test('a downloaded file has a plain name', () => {
  vi.stubGlobal('navigator', { languages: ['en-GB'] })
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
