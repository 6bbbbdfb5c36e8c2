import { expect, test } from 'vitest'
import { diffContent, diffLines, diffText } from './diff'

const line = (before: string, after: string) =>
  diffText(before, after).map(({ kind, text }) => ({ same: text, gone: `[-${text}-]`, new: `{+${text}+}` })[kind]).join('')

test('a text is compared by words', () => {
  expect(line('deploy version one now', 'deploy version two now')).toBe('deploy version [-one-]{+two+} now')
  expect(line('', 'new')).toBe('{+new+}')
  expect(line('old', '')).toBe('[-old-]')
  expect(line('a  b\nc', 'a b\nc')).toBe('a [- -]b\nc')
  expect(line('pay(100);', 'pay(1000);')).toBe('pay([-100-]{+1000+});')
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

test('a very long text that changed everywhere is shown whole instead of compared', () => {
  const [one, other] = ['a b '.repeat(5_000), 'c d '.repeat(5_000)]
  expect(diffText(one, other).map((piece) => piece.kind)).toEqual(['gone', 'new'])
  expect(diffText(one, `${one}x`).map((piece) => piece.kind)).toEqual(['same', 'new'])
})

const review = (before: string, after: string) =>
  diffLines(before, after).map((line) => (line === null ? '…' : `${line.before ?? ' '} ${line.after ?? ' '} ${{ same: ' ', gone: '-', new: '+' }[line.kind]}${line.pieces.map(({ kind, text }) => (kind === 'same' ? text : `[${text}]`)).join('')}`))

test('lines are numbered on both sides, changed ones compared by words, and unchanged ones left out', () => {
  const long = Array.from({ length: 12 }, (_, at) => `line ${at + 1}`)
  const changed = long.map((line, at) => (at === 9 ? 'line ten' : line))
  expect(review(long.join('\n'), changed.join('\n'))).toEqual(['…', '7 7  line 7', '8 8  line 8', '9 9  line 9', '10   -line [10]', '  10 +line [ten]', '11 11  line 11', '12 12  line 12'])
  expect(review('a', 'a\nb')).toEqual(['1 1  a', '  2 +b'])
})

test('content is compared member by member', () => {
  const before = { title: 'a', payload: { risk: 'low', 'a/b': 1, list: [1, 2], deep: { x: 1 } } }
  const after = { title: 'a', payload: { risk: 'high', 'a/b': 2, list: [2, 1], deep: { x: 1, y: 2 } } }
  expect(diffContent(before, after).map((change) => change.path)).toEqual([['payload', 'a/b'], ['payload', 'deep', 'y'], ['payload', 'list'], ['payload', 'risk']])
  expect(diffContent(before, before)).toEqual([])
})
