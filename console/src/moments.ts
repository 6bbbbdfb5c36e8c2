// The times at which an item changes what it offers although nothing is written to the ledger.
import type { Item } from './api'

type Timed = Pick<Item, 'window' | 'lease' | 'due_at'>

/** A little later: the service's clock decides, and it may be behind this one. */
const LATER_MS = 400
const LONGEST_MS = 2_147_000_000

/** The next one after `now`, in milliseconds of the clock; none if nothing is to come. */
export function nextMoment({ window, lease, due_at }: Timed, now: number): number | null {
  const times = [window?.not_before, window?.not_after, lease?.expires_at, due_at]
  const ahead = times.flatMap((time) => (time ? [Date.parse(time)] : [])).filter((time) => time > now)
  return ahead.length === 0 ? null : Math.min(...ahead)
}

/** Calls back when the next of these moments has come. */
export function atNextMoment(items: Timed[], now: number, call: () => void): () => void {
  const moments = items.map((item) => nextMoment(item, now)).filter((moment) => moment !== null)
  if (moments.length === 0) return () => {}
  const timer = setTimeout(call, Math.min(Math.min(...moments) - now + LATER_MS, LONGEST_MS))
  return () => clearTimeout(timer)
}
