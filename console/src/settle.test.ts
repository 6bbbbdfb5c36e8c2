import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { settling } from './settle'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

it('a burst is answered once, when it is quiet', async () => {
  const run = vi.fn(() => Promise.resolve())
  const { poke } = settling(run, 250, 1_000)
  for (let at = 0; at < 3; at += 1) {
    poke()
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(run).toHaveBeenCalledTimes(0)
  await vi.advanceTimersByTimeAsync(200)
  expect(run).toHaveBeenCalledTimes(1)
})

it('finding 13: a burst without an end is answered all the same', async () => {
  const run = vi.fn(() => Promise.resolve())
  const { poke } = settling(run, 250, 1_000)
  for (let at = 0; at < 100; at += 1) {
    poke()
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(9)
  expect(run.mock.calls.length).toBeLessThanOrEqual(11)
})

it('a slow answer is waited for, and what changed meanwhile is asked for afterwards', async () => {
  let answer = () => {}
  const run = vi.fn(() => new Promise<void>((resolve) => (answer = resolve)))
  const { poke } = settling(run, 100, 300)
  for (let at = 0; at < 20; at += 1) {
    poke()
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(run).toHaveBeenCalledTimes(1)
  answer()
  await vi.advanceTimersByTimeAsync(100)
  expect(run).toHaveBeenCalledTimes(2)
  answer()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(run).toHaveBeenCalledTimes(2)
})

it('a clock that is set back delays nothing, and what is stopped runs no more', async () => {
  const run = vi.fn(() => Promise.resolve())
  const { poke, stop } = settling(run, 250, 1_000)
  poke()
  vi.setSystemTime(-3_600_000)
  poke()
  await vi.advanceTimersByTimeAsync(250)
  expect(run).toHaveBeenCalledTimes(1)
  poke()
  stop()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(run).toHaveBeenCalledTimes(1)
})
