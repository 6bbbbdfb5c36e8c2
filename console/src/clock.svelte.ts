// Times as people read them: in their own zone, with UTC beside it for whoever compares.
import { text } from './text'

class Clock {
  now = $state.raw(Date.now())

  start(): void {
    setInterval(() => (this.now = Date.now()), 1_000)
  }
}

export const clock = new Clock()

const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const short = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' })
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const date = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'long' })
const weekday = new Intl.DateTimeFormat(undefined, { weekday: 'long' })
const hour = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
const span = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'long' })

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

export function localTime(time: string): string {
  return full.format(new Date(time))
}

export function shortTime(time: string): string {
  return short.format(new Date(time))
}

export function dayName(time: Date): string {
  return day.format(time)
}

/** `3 December` */
export function dateName(time: Date): string {
  return date.format(time)
}

/** `Sunday at 23:30`, for what is less than a week away. */
export function hourName(time: Date): string {
  return text.hourOn(weekday.format(time), hour.format(time))
}

/** `2026-11-15 05:10:48 UTC` */
export function utcTime(time: string): string {
  return `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** `in 3 hours`, `5 minutes ago`: the largest unit of which there is at least one. */
export function fromNow(time: string, now: number): string {
  const distance = Date.parse(time) - now
  const [unit, length] = UNITS.find(([, length]) => Math.abs(distance) >= length) ?? ['second', 1_000]
  return span.format(Math.trunc(distance / length), unit)
}

/** A span in its two largest units: `2 d 4 h`, `3 min 20 s`. */
export function spanOf(milliseconds: number): string {
  const names = ['d', 'h', 'min', 's']
  const parts: string[] = []
  let rest = Math.max(0, milliseconds)
  UNITS.forEach(([, length], at) => {
    const count = Math.floor(rest / length)
    rest -= count * length
    if (count > 0) parts.push(`${count} ${names[at]}`)
  })
  return parts.slice(0, 2).join(' ') || '< 1 s'
}
