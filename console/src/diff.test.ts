import { expect, test } from 'vitest'
import { diffContent, diffText, mergePatch } from './diff'

const line = (before: string, after: string) =>
  diffText(before, after).map(({ kind, text }) => ({ same: text, gone: `[-${text}-]`, new: `{+${text}+}` })[kind]).join('')

test('a text is compared by words', () => {
  expect(line('deploy version one now', 'deploy version two now')).toBe('deploy version [-one-]{+two+} now')
  expect(line('', 'new')).toBe('{+new+}')
  expect(line('old', '')).toBe('[-old-]')
  expect(line('a  b\nc', 'a b\nc')).toBe('a[-  -]{+ +}b\nc')
  expect(diffText('', '')).toEqual([])
})

test('taking the new away gives the old, and taking the old away gives the new, whatever the texts', () => {
  let seed = 7
  const next = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
  const text = () => Array.from({ length: next(30) }, () => ['a', 'b', 'c d', '\n'][next(4)]).join(' ')
  for (let round = 0; round < 300; round += 1) {
    const [before, after] = [text(), text()]
    const pieces = diffText(before, after)
    const without = (kind: string) => pieces.filter((piece) => piece.kind !== kind).map((piece) => piece.text).join('')
    expect(without('new')).toBe(before)
    expect(without('gone')).toBe(after)
  }
})

test('a very long text is shown whole instead of compared', () => {
  const long = 'word '.repeat(5_000)
  expect(diffText(long, `${long}x`).map((piece) => piece.kind)).toEqual(['gone', 'new'])
})

test('content is compared member by member, with pointers', () => {
  const before = { title: 'a', payload: { risk: 'low', 'a/b': 1, list: [1, 2], deep: { x: 1 } } }
  const after = { title: 'a', payload: { risk: 'high', 'a/b': 2, list: [2, 1], deep: { x: 1, y: 2 } } }
  expect(diffContent(before, after).map((change) => change.pointer)).toEqual([
    '/payload/a~1b',
    '/payload/deep/y',
    '/payload/list',
    '/payload/risk',
  ])
  expect(diffContent(before, before)).toEqual([])
})

test('a merge patch removes with null, merges objects and replaces the rest', () => {
  expect(mergePatch({ a: 1, b: { c: 1, d: 2 }, e: [1] }, { b: { c: 1, d: 3 }, e: [2], f: 'x' })).toEqual({
    a: null,
    b: { d: 3 },
    e: [2],
    f: 'x',
  })
  expect(mergePatch({ a: 'text' }, { a: { b: 1 } })).toEqual({ a: { b: 1 } })
})
