// The service's clock counts, not this machine's.
import { beforeEach, expect, it, vi } from 'vitest'
import { clock } from './clock.svelte'

const HERE = Date.UTC(2026, 0, 1, 12)
const header = (ahead: number) => new Date(Date.now() + ahead).toUTCString()

vi.useFakeTimers({ now: HERE })
clock.start()

function ahead(): number {
  vi.advanceTimersByTime(1_000)
  return clock.now - Date.now()
}

beforeEach(() => clock.hear(header(0)))

it.each([
  ['as late as here', 0, 0],
  ['a moment behind, as an answer is,', -3_000, 0],
  ['twelve minutes behind', -720_000, -720_000],
  ['a year ahead', 31_536_000_000, 31_536_000_000],
])('a service that is %s is believed', (_, said, expected) => {
  clock.hear(header(said))
  expect(ahead()).toBe(expected)
})

it('what is heard later counts, and a second more or less changes nothing', () => {
  for (const [said, expected] of [[-720_000, -720_000], [-721_000, -720_000], [60_000, 60_000], [1_000, 0]] as const) {
    clock.hear(header(said))
    expect(ahead()).toBe(expected)
  }
})

it.each([null, '', 'yesterday'])('an answer with the date %j says nothing about the time', (date) => {
  clock.hear(header(-720_000))
  clock.hear(date)
  expect(ahead()).toBe(-720_000)
})
