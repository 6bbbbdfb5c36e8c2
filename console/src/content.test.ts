import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { boundTo, canonical, contentDigest } from './content'
import { sha256Hex } from './sha256'

test('SHA-256 is that of everyone else, around every border of a block', () => {
  for (const length of [0, 1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1_000, 65_536]) {
    const text = 'aß€😀'.repeat(length).slice(0, length)
    expect(sha256Hex(text), `${length} characters`).toBe(createHash('sha256').update(text).digest('hex'))
  }
})

test('the canonical form sorts names by UTF-16 and writes numbers as JavaScript does', () => {
  const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '😀': 5, a: [1e21, 1.0, -0, 1e-7, { c: null, b: true }], s: '\u2028"\\\u001f' }
  expect(canonical(value)).toBe('{"\\r":2,"1":4,"a":[1e+21,1,0,1e-7,{"b":true,"c":null}],"s":"\u2028\\"\\\\\\u001f","€":1,"😀":5,"\ufb33":3}')
})

test('a member called __proto__ is a member', () => {
  const payload = JSON.parse('{"__proto__":{"a":1}}') as Record<string, unknown>
  expect(canonical(payload)).toBe('{"__proto__":{"a":1}}')
})

test('one changed character, in the title, a name or a value, is another content', () => {
  const shown = { title: 't', payload: { operation: 'pay 10' } }
  const digest = contentDigest(shown, 'n')
  expect(boundTo(shown, 'n', digest)).toBe('matches')
  expect(boundTo({ ...shown, title: 't ' }, 'n', digest)).toBe('differs')
  expect(boundTo({ ...shown, payload: { operation: 'pay 100' } }, 'n', digest)).toBe('differs')
  expect(boundTo({ ...shown, payload: { 'operation\u200b': 'pay 10' } }, 'n', digest)).toBe('differs')
  expect(boundTo(shown, 'm', digest)).toBe('differs')
  expect(boundTo(shown, null, digest)).toBe('erased')
})
