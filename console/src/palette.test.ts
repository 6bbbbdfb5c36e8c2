import { expect, it } from 'vitest'
import { fits, narrowed, step } from './palette'

it('beginnings of words in any order are enough', () => {
  expect(fits('New item', 'it ne')).toBe(true)
  expect(fits('Theme: dark', 'dark')).toBe(true)
  expect(fits('Übersicht', 'über')).toBe(true)
  expect(fits('New item', 'old')).toBe(false)
  expect(fits('anything', '  ')).toBe(true)
})

it('a section without a match is left out, and the way through the rest is a circle', () => {
  const run = () => {}
  const sections = [{ name: 'Screens', choices: [{ id: 'a', label: 'Inbox', run }] }, { name: 'Commands', choices: [{ id: 'b', label: 'Sign out', run }] }]
  expect(narrowed(sections, 'sig').map(({ name }) => name)).toEqual(['Commands'])
  expect([step(3, 2, 1), step(3, 0, -1), step(0, -1, 1)]).toEqual([0, 2, -1])
})
