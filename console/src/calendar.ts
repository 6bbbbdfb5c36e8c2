// Execution windows on a calendar: which fall into a week, how they are stacked, and which of them could get in each
// other's way. Pure, so that it can be checked.
import type { ItemSummary } from './api'
import type { Zone } from './preferences.svelte'

export interface Span {
  item: ItemSummary
  from: number
  to: number
}

export interface Bar {
  span: Span
  /** In percent of the week. */
  left: number
  width: number
  lane: number
  /** Whether it began before the week, or goes on after it. */
  isCutLeft: boolean
  isCutRight: boolean
}

/** Monday at midnight, in the zone people read times in. */
export function weekOf(time: number, zone: Zone): Date {
  const day = new Date(time)
  if (zone === 'utc') {
    day.setUTCHours(0, 0, 0, 0)
    day.setUTCDate(day.getUTCDate() - ((day.getUTCDay() + 6) % 7))
  } else {
    day.setHours(0, 0, 0, 0)
    day.setDate(day.getDate() - ((day.getDay() + 6) % 7))
  }
  return day
}

/** By the calendar and not by hours: a week in which the clocks change is an hour shorter or longer. */
export function addDays(day: Date, number: number, zone: Zone): Date {
  const other = new Date(day)
  if (zone === 'utc') other.setUTCDate(other.getUTCDate() + number)
  else other.setDate(other.getDate() + number)
  return other
}

/** `2026-11-16`, as it stands in the address. */
export function dateOf(day: Date, zone: Zone): string {
  const [year, month, date] = zone === 'utc' ? [day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate()] : [day.getFullYear(), day.getMonth(), day.getDate()]
  return `${year}-${String(month + 1).padStart(2, '0')}-${String(date).padStart(2, '0')}`
}

export function parseDate(text: string | null, zone: Zone): number | null {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text ?? '')
  if (found === null) return null
  const [year, month, date] = found.slice(1).map(Number) as [number, number, number]
  const time = zone === 'utc' ? Date.UTC(year, month - 1, date) : new Date(year, month - 1, date).getTime()
  return Number.isNaN(time) ? null : time
}

export function spansOf(items: ItemSummary[]): Span[] {
  return items
    .flatMap((item) => {
      if (item.window === null) return []
      const [from, to] = [Date.parse(item.window.not_before), Date.parse(item.window.not_after)]
      return from < to ? [{ item, from, to }] : []
    })
    .sort((one, other) => one.from - other.from || one.to - other.to)
}

export function within(spans: Span[], start: Date, end: Date): Span[] {
  return spans.filter((span) => span.from < end.getTime() && span.to > start.getTime())
}

/** Each in the first lane that is free when it begins. */
export function barsOf(spans: Span[], start: Date, end: Date): Bar[] {
  const [first, last] = [start.getTime(), end.getTime()]
  const ends: number[] = []
  return within(spans, start, end).map((span) => {
    const [from, to] = [Math.max(span.from, first), Math.min(span.to, last)]
    const free = ends.findIndex((end) => end <= from)
    const lane = free < 0 ? ends.length : free
    ends[lane] = to
    return {
      span,
      lane,
      left: ((from - first) / (last - first)) * 100,
      width: ((to - from) / (last - first)) * 100,
      isCutLeft: span.from < first,
      isCutRight: span.to > last,
    }
  })
}

/** Items whose windows have a moment in common with another's; only their targets have to be compared. */
export function meeting(spans: Span[]): ItemSummary[] {
  let latest = -Infinity
  // Sorted by their beginning: an earlier one still runs, or the next one begins in time.
  return spans
    .filter(({ from, to }, at) => {
      const isMet = from < latest || (spans[at + 1]?.from ?? Infinity) < to
      latest = Math.max(latest, to)
      return isMet
    })
    .map((span) => span.item)
}

export interface Clash {
  with: ItemSummary
  targets: string[]
}

/** For each item the others whose windows meet its own and which touch a target of its own. */
export function clashes(spans: Span[], targets: ReadonlyMap<string, string[]>): Map<string, Clash[]> {
  const found = new Map<string, Clash[]>()
  const add = (id: string, clash: Clash) => found.set(id, [...(found.get(id) ?? []), clash])
  // Those without a target clash with nothing, and are most of them.
  const aimed = spans.filter(({ item }) => (targets.get(item.id) ?? []).length > 0)
  aimed.forEach((one, at) => {
    const mine = new Set(targets.get(one.item.id) ?? [])
    for (const other of aimed.slice(at + 1)) {
      if (other.from >= one.to) break
      const both = (targets.get(other.item.id) ?? []).filter((target) => mine.has(target))
      if (both.length === 0) continue
      add(one.item.id, { with: other.item, targets: both })
      add(other.item.id, { with: one.item, targets: both })
    }
  })
  return found
}

/** As the built-in workflows name them. A payload may contain anything. */
export function targetsOf(payload: Record<string, unknown>): string[] {
  const { targets } = payload
  return Array.isArray(targets) ? [...new Set(targets.filter((target): target is string => typeof target === 'string'))] : []
}
