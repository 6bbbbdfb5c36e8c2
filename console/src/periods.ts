// Periods that people ask for by name, and times as a `datetime-local` field holds them.
import type { Zone } from './preferences.svelte'

export type Preset = 'today' | 'week' | 'month' | 'thisMonth'
export const PRESETS: Preset[] = ['today', 'week', 'month', 'thisMonth']

export interface Period {
  from: string
  to: string
}

/** What the field shows, in the zone people have chosen, as a moment; null if it is not a date. */
export function momentOf(field: string, zone: Zone): Date | null {
  const time = new Date(zone === 'utc' ? `${field}Z` : field)
  return field === '' || Number.isNaN(time.getTime()) ? null : time
}

export function fieldOf(time: Date, zone: Zone): string {
  const shifted = zone === 'utc' ? time : new Date(time.getTime() - time.getTimezoneOffset() * 60_000)
  return shifted.toISOString().slice(0, 16)
}

/** Ends with the minute that is under way, so that nothing that has happened is left out. */
export function periodOf(preset: Preset, now: Date, zone: Zone): Period {
  const to = fieldOf(new Date(now.getTime() + 60_000), zone)
  const today = fieldOf(now, zone).slice(0, 10)
  if (preset === 'today') return { from: `${today}T00:00`, to }
  if (preset === 'thisMonth') return { from: `${today.slice(0, 8)}01T00:00`, to }
  const days = preset === 'week' ? 7 : 30
  // By the calendar: a day on which the clocks change is a day.
  const first = new Date(`${today}T00:00Z`)
  first.setUTCDate(first.getUTCDate() - days)
  return { from: `${first.toISOString().slice(0, 10)}${fieldOf(now, zone).slice(10)}`, to }
}
