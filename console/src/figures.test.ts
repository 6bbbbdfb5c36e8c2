import { expect, it } from 'vitest'
import type { Figures } from './api'
import { ageBars, dayBars, openTotal, refusalBars, stateBars, sum } from './figures'

const figures: Figures = {
  at: '2026-11-17T00:00:00Z',
  entries: 2_400,
  open: { draft: 2, submitted: 9, approved: 0 },
  open_by_age: { hour: 1, day: 2, three_days: 3, week: 4, older: 1 },
  days: [
    { day: '2026-11-16', decisions: 0, created: 1, refused: null },
    { day: '2026-11-17', decisions: 1_353, created: 2, refused: 4 },
  ],
  time_to_decide: { count: 0, median_s: null, p90_s: null, max_s: null },
  refusals: null,
}

it('finding 12: a day has as many decisions as the service counted, and a quiet day none', () => {
  const name = (day: Date) => day.toISOString().slice(0, 10)
  expect(dayBars(figures, 'decisions', name)).toEqual([{ label: '2026-11-16', value: 0 }, { label: '2026-11-17', value: 1_353 }])
  expect([sum(figures, 'decisions'), sum(figures, 'created'), sum(figures, 'refused'), openTotal(figures)]).toEqual([1_353, 3, 4, 11])
})

it('bars of states lead to their items, the largest first, and what is empty is left out', () => {
  expect(stateBars(figures)).toEqual([
    { label: 'submitted', value: 9, href: '/console/items?state=submitted' },
    { label: 'draft', value: 2, href: '/console/items?state=draft' },
  ])
  expect(ageBars(figures).map((bar) => bar.value)).toEqual([1, 2, 3, 4, 1])
  expect(refusalBars(figures)).toEqual([])
})
