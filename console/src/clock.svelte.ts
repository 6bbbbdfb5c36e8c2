// Times as people read them: in their own zone or in UTC, in the language the console speaks.
import { preferences } from './preferences.svelte'
import { locale, text } from './text'

/** Less than this may be the way of an answer, and the seconds that its header leaves out. */
const SAME_MS = 5_000

/** The service's time: it decides when a lease ends or a window opens, so this machine's clock does not count. */
class Clock {
  #ahead = 0
  now = $state.raw(Date.now())

  start(): void {
    setInterval(() => this.#tick(), 1_000)
  }

  /** What the service says the time is, in the `Date` of an answer. */
  hear(date: string | null): void {
    const ahead = Date.parse(date ?? '') - Date.now()
    if (Number.isNaN(ahead) || Math.abs(ahead - this.#ahead) < SAME_MS) return
    this.#ahead = Math.abs(ahead) < SAME_MS ? 0 : ahead
    this.#tick()
  }

  #tick(): void {
    this.now = Date.now() + this.#ahead
  }
}

export const clock = new Clock()

const STYLES = {
  full: { dateStyle: 'medium', timeStyle: 'medium' },
  short: { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' },
  day: { month: 'short', day: 'numeric' },
  date: { day: 'numeric', month: 'long' },
  weekday: { weekday: 'long' },
  shortWeekday: { weekday: 'short' },
  hour: { hour: '2-digit', minute: '2-digit' },
} satisfies Record<string, Intl.DateTimeFormatOptions>

const formats = new Map<string, Intl.DateTimeFormat>()

/** Making one costs more than using it a thousand times. */
function format(style: keyof typeof STYLES, time: Date): string {
  const { zone } = preferences
  const name = `${style} ${zone}`
  let found = formats.get(name)
  if (found === undefined) {
    found = new Intl.DateTimeFormat(locale(), { ...STYLES[style], ...(zone === 'utc' ? { timeZone: 'UTC' } : {}) })
    formats.set(name, found)
  }
  return found.format(time)
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

export function localTime(time: string): string {
  return preferences.zone === 'utc' ? utcTime(time) : format('full', new Date(time))
}

export function shortTime(time: string): string {
  const shown = format('short', new Date(time))
  return preferences.zone === 'utc' ? `${shown} UTC` : shown
}

export function dayName(time: Date): string {
  return format('day', time)
}

/** `Mon` */
export function weekdayName(time: Date): string {
  return format('shortWeekday', time)
}

/** `3 December` */
export function dateName(time: Date): string {
  return format('date', time)
}

/** `Sunday at 23:30`, for what is less than a week away. */
export function hourName(time: Date): string {
  return text.hourOn(format('weekday', time), format('hour', time))
}

/** `20:23` on the same day, otherwise with its day. */
export function nearTime(time: string, now: number): string {
  const at = new Date(time)
  return format('day', at) === format('day', new Date(now)) ? format('hour', at) : shortTime(time)
}

/** `2026-11-15 05:10:48 UTC` */
export function utcTime(time: string): string {
  return `${new Date(time).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

let spans: Intl.RelativeTimeFormat | undefined

/** `in 3 days`, `5 minutes ago`: rounded to the unit of which there is at least one, so that 72 hours are 3 days. */
export function fromNow(time: string, now: number): string {
  const distance = Date.parse(time) - now
  const [unit, count] = inUnits(distance)
  spans ??= new Intl.RelativeTimeFormat(locale(), { numeric: 'always', style: 'long' })
  return unit === 'second' && Math.abs(count) < 10 ? text.justNow(distance > 0) : spans.format(count, unit)
}

function inUnits(distance: number): [Intl.RelativeTimeFormatUnit, number] {
  for (const [at, [unit, length]] of UNITS.entries()) {
    const count = Math.round(distance / length)
    const larger = UNITS[at - 1]
    if (Math.abs(count) < 1) continue
    // 59.6 minutes are an hour, and not 60 minutes.
    if (larger !== undefined && Math.abs(count) * length >= larger[1]) return [larger[0], Math.sign(distance)]
    return [unit, count]
  }
  return ['second', 0]
}

/** A span in its two largest units: `2 d 4 h`, `3 min 20 s`. */
export function spanOf(milliseconds: number): string {
  const parts: string[] = []
  let rest = Math.max(0, milliseconds)
  UNITS.forEach(([, length], at) => {
    const count = Math.floor(rest / length)
    rest -= count * length
    if (count > 0) parts.push(`${count} ${text.units[at]}`)
  })
  return parts.slice(0, 2).join(' ') || text.lessThanASecond
}

/** A countdown: `14:59`, `1:02:03`. */
export function countdown(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1_000))
  const two = (number: number) => String(number).padStart(2, '0')
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}
