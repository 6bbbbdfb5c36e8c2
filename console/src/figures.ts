// The service's figures as bars and sums. Pure, so that they can be checked.
import type { Figures } from './api'
import { href } from './router.svelte'
import { text, words } from './text'

export interface Bar {
  label: string
  value: number
  /** Where the same items are listed. */
  href?: string
}

export const PERIODS = [7, 14, 30, 90]

export function stateBars({ open }: Figures): Bar[] {
  return largest(open).map(([state, value]) => ({ label: words(state), value, href: href(['items'], { state }) }))
}

export function ageBars({ open_by_age }: Figures): Bar[] {
  const order = ['hour', 'day', 'three_days', 'week', 'older'] as const
  return order.map((age) => ({ label: text.overview.ages[age], value: open_by_age[age] }))
}

export function refusalBars({ refusals }: Figures): Bar[] {
  return largest(refusals ?? {}).map(([code, value]) => ({ label: text.refusals[code] ?? words(code), value }))
}

export function dayBars({ days }: Figures, of: 'decisions' | 'created' | 'refused', name: (day: Date) => string): Bar[] {
  return days.map((day) => ({ label: name(new Date(`${day.day}T00:00:00Z`)), value: day[of] ?? 0 }))
}

export function sum(figures: Figures, of: 'decisions' | 'created' | 'refused'): number {
  return figures.days.reduce((total, day) => total + (day[of] ?? 0), 0)
}

export function openTotal({ open }: Figures): number {
  return Object.values(open).reduce((total, number) => total + number, 0)
}

function largest(counts: Record<string, number>): [string, number][] {
  return Object.entries(counts)
    .filter(([, value]) => value > 0)
    .sort(([, one], [, other]) => other - one)
}
