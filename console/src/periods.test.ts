import { expect, test } from 'vitest'
import { fieldOf, momentOf, periodOf, PRESETS } from './periods'

const NOW = new Date('2026-03-31T10:20:30Z')

test('a period ends with the minute that is under way', () => {
  expect(PRESETS.map((preset) => periodOf(preset, NOW, 'utc'))).toEqual([
    { from: '2026-03-31T00:00', to: '2026-03-31T10:21' },
    { from: '2026-03-24T10:20', to: '2026-03-31T10:21' },
    { from: '2026-03-01T10:20', to: '2026-03-31T10:21' },
    { from: '2026-03-01T00:00', to: '2026-03-31T10:21' },
  ])
})

test('what a field shows is the moment that was meant, in either zone', () => {
  for (const zone of ['utc', 'local'] as const) expect(momentOf(fieldOf(NOW, zone), zone)?.toISOString()).toBe('2026-03-31T10:20:00.000Z')
  expect(momentOf('2026-03-31T10:20', 'utc')?.toISOString()).toBe('2026-03-31T10:20:00.000Z')
  expect(momentOf('', 'local')).toBeNull()
  expect(momentOf('2026-02-31T99:00', 'utc')).toBeNull()
})
