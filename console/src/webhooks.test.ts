import { expect, test } from 'vitest'
import type { Webhook } from './api'
import { byUrgency } from './webhooks'

function webhook(name: string, state: Webhook['state']): Webhook {
  return {
    name,
    state,
    host: `${name}.example`,
    paused_because: null,
    next: 7,
    lag: 0,
    failing_since: null,
    last_answer: null,
    last_answer_at: null,
    delivered_at: null,
  }
}

test('endpoints that need someone come first', () => {
  const sorted = byUrgency([webhook('b', 'delivering'), webhook('d', 'failing'), webhook('a', 'delivering'), webhook('c', 'paused')])
  expect(sorted.map(({ name }) => name)).toEqual(['c', 'd', 'a', 'b'])
})
