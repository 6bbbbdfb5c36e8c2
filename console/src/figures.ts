// Figures for the overview, from entries and items as the API gives them. Pure, so that they can be checked.
import type { Entry, Item } from './api'

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Signs of life, not decisions. */
const NO_DECISION = new Set(['heartbeat', 'create', 'edit', 'comment', 'permit', 'timer'])

export interface Bar {
  label: string
  value: number
}

export function byState(items: Item[]): Bar[] {
  const counts = new Map<string, number>()
  for (const { state } of items) counts.set(state, (counts.get(state) ?? 0) + 1)
  return [...counts].map(([label, value]) => ({ label, value })).sort((one, other) => other.value - one.value)
}

/** How long items have been as they are; the last group is open-ended. */
export function byAge(items: Item[], now: number, labels: string[]): Bar[] {
  const limits = [HOUR, DAY, 3 * DAY, 7 * DAY]
  const values = labels.map(() => 0)
  for (const item of items) {
    const age = now - Date.parse(item.created_at)
    const group = limits.findIndex((limit) => age < limit)
    const at = group < 0 ? labels.length - 1 : group
    values[at] = (values[at] ?? 0) + 1
  }
  return labels.map((label, at) => ({ label, value: values[at] ?? 0 }))
}

export function isDecision(entry: Entry): boolean {
  return entry.type === 'item.transition' && entry.actor_id !== undefined && !NO_DECISION.has(entry.action ?? '')
}

/** One bar a day, the last `days` days, by local midnight. */
export function perDay(entries: Entry[], weight: (entry: Entry) => number, now: number, days: number, name: (day: Date) => string): Bar[] {
  const midnight = new Date(now)
  midnight.setHours(0, 0, 0, 0)
  const starts = Array.from({ length: days }, (_, at) => {
    const day = new Date(midnight)
    day.setDate(day.getDate() - (days - 1 - at))
    return day
  })
  const values = starts.map(() => 0)
  for (const entry of entries) {
    const at = starts.findLastIndex((start) => Date.parse(entry.at) >= start.getTime())
    if (at >= 0) values[at] = (values[at] ?? 0) + weight(entry)
  }
  return starts.map((start, at) => ({ label: name(start), value: values[at] ?? 0 }))
}

/** From each `submit` to the first thing another person did to that item; milliseconds, ascending. */
export function timesToDecide(entries: Entry[]): number[] {
  const submitted = new Map<string, Entry>()
  const times: number[] = []
  for (const entry of [...entries].sort((one, other) => one.index - other.index)) {
    if (!isDecision(entry) || entry.item === undefined) continue
    const before = submitted.get(entry.item)
    if (entry.action === 'submit') submitted.set(entry.item, entry)
    else if (before !== undefined && entry.actor_id !== before.actor_id) {
      times.push(Date.parse(entry.at) - Date.parse(before.at))
      submitted.delete(entry.item)
    }
  }
  return times.sort((one, other) => one - other)
}

/** The value that this share of all values does not exceed. */
export function quantile(ascending: number[], share: number): number | null {
  return ascending[Math.max(0, Math.ceil(ascending.length * share) - 1)] ?? null
}

/** An entry about refusals stands for as many attempts as it counted. */
export function attempts(entry: Entry): number {
  const count = (entry.details as { count?: unknown } | undefined)?.count
  return typeof count === 'number' ? count : 1
}

export function byReason(entries: Entry[]): Bar[] {
  const counts = new Map<string, number>()
  for (const entry of entries) {
    const code = (entry.details as { code?: unknown } | undefined)?.code
    const label = typeof code === 'string' ? code : entry.type
    counts.set(label, (counts.get(label) ?? 0) + attempts(entry))
  }
  return [...counts].map(([label, value]) => ({ label, value })).sort((one, other) => other.value - one.value)
}
