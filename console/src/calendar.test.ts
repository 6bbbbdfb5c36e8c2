import { expect, it } from 'vitest'
import type { ItemSummary } from './api'
import { addDays, barsOf, clashes, dateOf, meeting, parseDate, spansOf, targetsOf, weekOf } from './calendar'

function item(id: string, not_before: string | null, not_after: string): ItemSummary {
  return { id, window: not_before === null ? null : { not_before: `2026-11-${not_before}:00Z`, not_after: `2026-11-${not_after}:00Z` } } as ItemSummary
}
const monday = new Date('2026-11-16T00:00:00Z')
const spans = spansOf([item('late', '18T12:00', '19T12:00'), item('early', '10T00:00', '17T00:00'), item('none', null, ''), item('overlaps', '18T18:00', '30T00:00')])

it('a week begins on Monday, and goes into the address and back', () => {
  expect(weekOf(Date.parse('2026-11-22T23:59:00Z'), 'utc')).toEqual(monday)
  expect(weekOf(monday.getTime(), 'utc')).toEqual(monday)
  expect(dateOf(addDays(monday, 7, 'utc'), 'utc')).toBe('2026-11-23')
  expect(parseDate('2026-11-16', 'utc')).toBe(monday.getTime())
  for (const wrong of [null, '', 'yesterday', '2026-11-16T00:00']) expect(parseDate(wrong, 'utc')).toBeNull()
})

it('a bar is where its window is, cut where the week ends, and none lies on another', () => {
  const bars = barsOf(spans, monday, addDays(monday, 7, 'utc'))
  expect(bars.map(({ span, lane, isCutLeft, isCutRight }) => [span.item.id, lane, isCutLeft, isCutRight])).toEqual([
    ['early', 0, true, false],
    ['late', 0, false, false],
    ['overlaps', 1, false, true],
  ])
  expect(bars[0]?.left).toBe(0)
  expect(bars[0]?.width).toBeCloseTo(100 / 7)
  expect((bars[2]?.left ?? 0) + (bars[2]?.width ?? 0)).toBeCloseTo(100)
})

it('windows clash when they meet and touch the same target, and not otherwise', () => {
  expect(meeting(spans).map(({ id }) => id)).toEqual(['late', 'overlaps'])
  const targets = new Map([['late', ['db-1', 'db-2']], ['overlaps', ['db-2']], ['early', ['db-1', 'db-2']]])
  const found = clashes(spans, targets)
  expect(found.get('late')?.map((clash) => [clash.with.id, clash.targets])).toEqual([['overlaps', ['db-2']]])
  expect(found.get('overlaps')?.map((clash) => clash.with.id)).toEqual(['late'])
  expect(found.has('early')).toBe(false)
})

it('targets are texts in a list, whatever else a payload says', () => {
  expect(targetsOf({ targets: ['a', 1, null, 'a', 'b'] })).toEqual(['a', 'b'])
  for (const targets of ['a', {}, undefined, 3]) expect(targetsOf({ targets })).toEqual([])
})

it('of ten thousand windows, those that meet are found in one pass', () => {
  const many = spansOf(Array.from({ length: 10_000 }, (_, at) => item(String(at), `${String(1 + (at % 28)).padStart(2, '0')}T00:00`, `${String(1 + (at % 28)).padStart(2, '0')}T00:30`)))
  expect(meeting(many).length).toBe(10_000)
})
