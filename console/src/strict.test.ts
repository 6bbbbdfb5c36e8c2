import { expect, test } from 'vitest'
import { readStrictly } from './strict'

/** What is wrong, in one line; or the value, as JSON. */
function verdict(text: string): string {
  const read = readStrictly(text)
  if ('value' in read) return JSON.stringify(read.value)
  const { kind, line, column, what, other } = read.fault
  return [`${line}:${column} ${kind}`, what, other].filter((part) => part !== '').join(' ')
}

test('plain JSON is read as everyone reads it', () => {
  for (const text of ['{"a":[1,-2,2.5,"x",null,true,false,{}],"b":{"c":[]}}', '"\\u00e9\\n\\\\"', '0', '-1e-7', '[]', ' \n{ }\t', '{"__proto__":{"a":1}}']) {
    expect(verdict(text)).toBe(JSON.stringify(JSON.parse(text)))
  }
})

test('a name that is given twice is refused, at its second place', () => {
  expect(verdict('{\n  "operation": "a",\n  "b": [{"x": 1, "x": 2}],\n  "operation": "c"\n}')).toBe('3:18 duplicate x 3')
  expect(verdict('{\n  "operation": "a",\n  "operation": "c"\n}')).toBe('3:3 duplicate operation 2')
  // The same name, written differently.
  expect(verdict('{"a":1,"\\u0061":2}')).toBe('1:8 duplicate a 1')
  expect(verdict('{"a":{"a":1},"b":{"a":1}}')).toBe('{"a":{"a":1},"b":{"a":1}}')
  expect(verdict('{"__proto__":1,"__proto__":2}')).toBe('1:16 duplicate __proto__ 1')
})

test('a number that would be stored as another one is refused', () => {
  expect(verdict('9007199254740991')).toBe('9007199254740991')
  expect(verdict('[1,\n 9007199254740993]')).toBe('2:2 beyond 9007199254740993')
  expect(verdict('-9007199254740992')).toBe('1:1 beyond -9007199254740992')
  expect(verdict('1e400')).toBe('1:1 beyond 1e400')
  expect(verdict('0.1234567890123456789')).toBe('1:1 digits 0.1234567890123456789 0.12345678901234568')
  expect(verdict('1e-400')).toBe('1:1 digits 1e-400 0')
  for (const text of ['1.0', '1.50e2', '0.1', '100e-2', '-0', '0.000001', '1E3', '123456.789000', '5e-324']) expect(verdict(text), text).toBe(JSON.stringify(JSON.parse(text)))
})

test('half a character and U+0000 are refused, whole characters are not', () => {
  expect(verdict('{"a": "\\ud83d"}')).toBe('1:7 character U+D83D')
  expect(verdict('["\\u0000"]')).toBe('1:2 character U+0000')
  expect(verdict('"\\ud83d\\ude00"')).toBe('"😀"')
})

test('what is not JSON is refused where it goes wrong', () => {
  expect(verdict('{"a": 1,}')).toBe('1:9 syntax }')
  expect(verdict("{'a': 1}")).toBe("1:2 syntax '")
  expect(verdict('{"a" 1}')).toBe('1:6 syntax 1')
  expect(verdict('{"a": 1')).toBe('1:8 end')
  expect(verdict('{"a": "b')).toBe('1:7 end')
  expect(verdict('"a\nb"')).toBe('1:3 syntax \n')
  expect(verdict('"\\x"')).toBe('1:2 syntax \\')
  expect(verdict('[01]')).toBe('1:3 syntax 1')
  expect(verdict('[1] 2')).toBe('1:5 syntax 2')
  expect(verdict('{"😀😀": nul}')).toBe('1:8 syntax n')
  expect(verdict('')).toBe('1:1 end')
})

test('deep nesting is refused, and a long text is read in one go', () => {
  expect(verdict('['.repeat(100_000))).toBe('1:501 deep')
  const long = JSON.stringify('\\"x'.repeat(2_000_000))
  expect(readStrictly(long)).toEqual({ value: JSON.parse(long) as unknown })
  expect(verdict(long.slice(0, -1))).toBe('1:1 end')
})

test('the strict reader and the usual one agree on what is JSON', () => {
  const pieces = ['{', '}', '[', ']', ',', ':', '"a"', '"b"', '1', '-', '.5', 'e3', 'true', 'null', ' ', '\n', '"', '\\', '0']
  let seed = 7
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  let accepted = 0
  for (let round = 0; round < 30_000; round += 1) {
    const text = Array.from({ length: 1 + next(7) }, () => pieces[next(pieces.length)]).join('')
    let usual: string
    try {
      usual = JSON.stringify(JSON.parse(text))
    } catch {
      usual = 'refused'
    }
    const read = readStrictly(text)
    if ('value' in read) {
      accepted += 1
      expect(JSON.stringify(read.value), text).toBe(usual)
    } else if (read.fault.kind === 'syntax' || read.fault.kind === 'end') expect(usual, text).toBe('refused')
  }
  expect(accepted).toBeGreaterThan(500)
})
