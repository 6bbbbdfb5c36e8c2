// What nobody would see is shown, and nothing else is touched.
import { readdirSync, readFileSync } from 'node:fs'
import { parse } from 'svelte/compiler'
import { expect, test } from 'vitest'
import { countHidden, jsonPieces, pieces, visible } from './hidden'

/** A deadline for a busy machine. */
const SLOW = { timeout: 60_000 }

test('a command that reads backwards is shown as it is', () => {
  expect(pieces('rm /\u202epmt\u202c # a\u00a0b')).toEqual([
    { text: 'rm /' },
    { text: '⟨U+202E⟩', hidden: 'right-to-left override' },
    { text: 'pmt' },
    { text: '⟨U+202C⟩', hidden: 'pop directional formatting' },
    { text: ' # a' },
    { text: '⟨U+00A0⟩', hidden: 'no-break space' },
    { text: 'b' },
  ])
  expect(visible('user \u202egnp.exe\n\t\u{e0061}')).toBe('user ⟨U+202E⟩gnp.exe⟨U+000A⟩⟨U+0009⟩⟨U+E0061⟩')
})

test('ordinary text of any language stays as it is, with its line ends', () => {
  for (const text of ['', 'a\tb\n  c', 'Ärger, naïve, Łódź', 'Привет', 'שלום עולם', '日本語。', 'नमस्ते', '한국어', '👍🏽 ☕ ©', '❤\ufe0f']) {
    expect(pieces(text)).toEqual([{ text }])
    expect(countHidden(text)).toBe(0)
  }
})

test('a variation selector is hidden unless it follows what has variations', () => {
  expect(visible('❤\ufe0f operation\ufe00 ❤\ufe0f\u{e0101} \ufe0f')).toBe('❤\ufe0f operation⟨U+FE00⟩ ❤\ufe0f⟨U+E0101⟩ ⟨U+FE0F⟩')
})

test('hidden characters are counted in names, values and lists', () => {
  expect(countHidden(['t\u200b', { 'operation\u200b': ['\u202ea\u202c', 'b'], nested: { n: 1, none: null, yes: true, s: '\ud800' } }])).toBe(5)
})

test('a text made of nothing else is marked to its end, with elements for a part of it', () => {
  const found = pieces('\u200b'.repeat(3_000))
  expect(found.filter(({ hidden }) => hidden !== undefined)).toHaveLength(1_000)
  expect(found.map(({ text }) => text).join('')).toBe('⟨U+200B⟩'.repeat(3_000))
})

test('in JSON only what is inside of a string can have a direction of its own', () => {
  const value = { a: 'שלום', 'b"\\': ['plain "', 'x\u202e'] }
  const found = jsonPieces(value)
  expect(found.map(({ text }) => text).join('')).toBe(JSON.stringify(value, null, 2))
  expect(found.filter(({ isString }) => isString).map(({ text }) => text)).toEqual(['שלום', 'x\u202e'])
  expect(jsonPieces([1, 'plain', true])).toHaveLength(1)
})

test('every character that Unicode calls invisible, a space, a control or private is in the tables', SLOW, () => {
  const unseen = /\p{Default_Ignorable_Code_Point}|\p{Bidi_Control}|\p{Z}|\p{Cc}|\p{Co}|\p{Cs}|\p{Noncharacter_Code_Point}/u
  const missing: string[] = []
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const character = String.fromCodePoint(code)
    if (unseen.test(character) && !' \n\t'.includes(character) && countHidden(character) === 0) missing.push(code.toString(16))
  }
  expect(missing).toEqual([])
})

test('no screen shows what someone wrote but through the part that marks it', SLOW, () => {
  const written = /\b(title|description|detail|comment|actor_id|credential_id|pointer|holder|payload|inputs)\b/
  const found: string[] = []
  let looked = 0
  for (const folder of ['src/parts', 'src/screens']) {
    for (const file of readdirSync(folder)) {
      const source = readFileSync(`${folder}/${file}`, 'utf8')
      const shown = (node: object): void => {
        const { type, start, end } = node as { type?: string; start: number; end: number }
        if (type === 'Attribute' || type === 'Script') return
        if (type === 'ExpressionTag') {
          looked += 1
          const expression = source.slice(start, end)
          // Sentences of our own are not what someone wrote, but what is put into them is; and what is asked is not shown.
          const rest = expression.replace(/\b(say|text)(\.\w+)+|[\w.]+( === '')? \? /g, '')
          if (written.test(rest) && !expression.startsWith('{visible(')) found.push(`${file}: ${expression}`)
        }
        for (const child of Object.values(node)) if (typeof child === 'object' && child !== null) shown(child as object)
      }
      shown(parse(source, { modern: true }).fragment)
    }
  }
  expect(looked).toBeGreaterThan(100)
  expect(found).toEqual([])
})
