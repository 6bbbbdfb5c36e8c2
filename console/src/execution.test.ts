import { expect, test } from 'vitest'
import type { Transition } from './api'
import { lastAttempt } from './execution'

function line(entry: number, action: string, from: string, to: string, inputs: Record<string, unknown> | null = null): Transition {
  return { item_id: 'i', version: entry, action, from, to, actor_id: 'eli', role: 'executor', at: '2026-11-17T02:00:00.000000Z', comment: null, inputs, entry } as Transition
}

const started = [line(1, 'clear', 'approved', 'cleared'), line(2, 'start', 'cleared', 'executing')]

test('while an attempt runs, its last progress is shown', () => {
  const beats = [line(3, 'heartbeat', 'executing', 'executing', { progress: 'one' }), line(4, 'heartbeat', 'executing', 'executing', { progress: 'two' })]
  expect(lastAttempt([...started, ...beats])).toMatchObject({ progress: { words: 'two' }, end: null, result: null, artifacts: [] })
})

test('an attempt that ended shows its result and its artifacts, and the next one begins without them', () => {
  const failed = line(3, 'fail', 'executing', 'failed', { result: 'no', artifacts: [{ name: 'output' }] })
  expect(lastAttempt([...started, failed])).toMatchObject({ progress: null, end: { action: 'fail' }, result: 'no', artifacts: [{ name: 'output' }] })
  expect(lastAttempt([...started, failed, line(4, 'retry', 'failed', 'executing')])).toMatchObject({ end: null, result: null, artifacts: [] })
})

test('an item that was never started has no attempt', () => {
  expect(lastAttempt(started.slice(0, 1))).toBeNull()
})
