import { expect, it } from 'vitest'
import type { ItemSummary } from './api'
import { badgeText } from './badge'
import { grouped, matches } from './inbox'

function item(id: string, risk: string | null, workflow: string, title = id): ItemSummary {
  const created_by = { actor_id: 'ana', role: 'initiator' }
  return { id, title, risk, workflow: { name: workflow, digest: '', version: 1 }, created_by, state: 'submitted' } as unknown as ItemSummary
}
const items = [item('1', 'low', 'controlled'), item('2', null, 'emergency'), item('3', 'high', 'controlled'), item('4', 'odd', 'emergency', 'Rotate the key')]

it('every word of a search is found somewhere in the row', () => {
  const all = { q: '', workflow: '', risk: '' }
  const found = (wanted: object) => items.filter((item) => matches(item, { ...all, ...wanted })).map((item) => item.id)
  expect(found({})).toEqual(['1', '2', '3', '4'])
  expect(found({ q: 'KEY rotate' })).toEqual(['4'])
  expect(found({ q: 'key ana nothing' })).toEqual([])
  expect(found({ workflow: 'controlled', risk: 'high' })).toEqual(['3'])
  expect(found({ risk: 'none' })).toEqual(['2'])
})

it('the riskiest group comes first, and the order inside a group stays', () => {
  expect(grouped(items, 'risk').map(({ name, items }) => [name, items.length])).toEqual([['high', 1], ['low', 1], ['other', 1], ['none', 1]])
  expect(grouped(items, 'workflow').map(({ name, items }) => [name, items.map((item) => item.id)])).toEqual([['controlled', ['1', '3']], ['emergency', ['2', '4']]])
  expect(grouped(items, 'none')).toHaveLength(1)
})

it('a number in the icon is at most two characters', () => {
  expect([1, 9, 10, 1_000].map(badgeText)).toEqual(['1', '9', '9+', '9+'])
})
