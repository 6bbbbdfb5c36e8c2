import { expect, test } from 'vitest'
import { nextMoment } from './moments'

const at = (minute: number) => new Date(minute * 60_000).toISOString()

test('the next moment is the nearest of opening, closing, lease and deadline that is still to come', () => {
  const item = { window: { not_before: at(10), not_after: at(40) }, lease: null, due_at: at(40) }
  expect(nextMoment(item, 0)).toBe(600_000)
  expect(nextMoment(item, 600_000)).toBe(2_400_000)
  expect(nextMoment({ ...item, lease: { holder: 'eli', expires_at: at(15) } }, 600_000)).toBe(900_000)
  expect(nextMoment(item, 2_400_000)).toBeNull()
  expect(nextMoment({ window: null, lease: null, due_at: null }, 0)).toBeNull()
})
