import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import table from '../hidden.json'
import { german } from './de'
import { english, type Words } from './en'
import { german as germanVerifier } from './verifier/de'
import { english as englishVerifier } from './verifier/en'

const others: Record<string, Words> = { German: german }
/** Words that come with their own screens. */
const later: Record<string, typeof englishVerifier> = { German: germanVerifier }

/** The same in both languages: names, symbols, codes and words that German has too. */
const ALIKE = new Set([
  'Pilot', 'Webhooks', '–', 'd', 'h', 'min', 's', '< 1 s', 'live', 'Live', 'API', 'UTC', 'SHA-256', 'Name', 'Bytes', 'Text', 'Version', 'JSON',
])
/** Keys of the keyboard are what is printed on them. */
const isKey = (path: string) => /^text\.help\.keys\.\d+\.0$/.test(path)
/** Tables whose names are data: one language may say what another leaves as it is. */
const OPEN = ['names', 'descriptions', 'certificateEndings']

type Leaf = string | ((...given: never[]) => string)

function leaves(value: unknown, path: string[] = []): [string, Leaf][] {
  if (typeof value === 'string' || typeof value === 'function') return [[path.join('.'), value as Leaf]]
  return Object.entries(value as object).flatMap(([name, member]) => leaves(member, [...path, name]))
}

function saidOf(say: (...given: never[]) => string, given: (string | number)[]): string | null {
  try {
    return String(say(...(given as never[])))
  } catch {
    return null
  }
}

const isClosed = ([path]: [string, Leaf]) => !OPEN.includes(path.split('.')[0] ?? '')
const closed = (words: Words) => leaves(words).filter(isClosed)

/** Definitions that come with the service. */
const WORKFLOWS = new URL('../../../workflows/', import.meta.url)
const definitions = readdirSync(WORKFLOWS).filter((name) => name.endsWith('.toml')).map((name) => readFileSync(new URL(name, WORKFLOWS), 'utf8'))

function valuesOf(pattern: RegExp): string[] {
  return [...new Set(definitions.flatMap((definition) => [...definition.matchAll(pattern)].map(([, value]) => value ?? '')))]
}

describe.each(Object.entries(others))('%s', (_, words) => {
  test('says everything that English says, and nothing else', () => {
    expect(closed(words).map(([path]) => path).sort()).toEqual(closed(english).map(([path]) => path).sort())
  })

  test('takes the same parts in every sentence', () => {
    const arities = (all: Words) => Object.fromEntries(closed(all).map(([path, leaf]) => [path, typeof leaf === 'function' ? leaf.length : 0]))
    expect(arities(words)).toEqual(arities(english))
  })

  test('leaves nothing in English', () => {
    const known = new Map(leaves(english))
    const left = leaves(words).filter(([path, leaf]) => typeof leaf === 'string' && !isKey(path) && !ALIKE.has(leaf) && leaf === known.get(path))
    expect(left).toEqual([])
    const untouched = Object.entries({ ...words.names, ...words.descriptions }).filter(([name, said]) => said === name.replaceAll('_', ' '))
    expect(untouched).toEqual([])
  })

  test('has a sentence for every part it is given', () => {
    // Each part is told from the others, so that none is lost and none is said in the place of another.
    const known = new Map(leaves(english))
    for (const [path, leaf] of closed(words)) {
      const other = known.get(path)
      if (typeof leaf !== 'function' || typeof other !== 'function') continue
      const numbers = Array.from({ length: leaf.length }, (_, at) => 7_001 + at)
      const uses = (said: string) => numbers.filter((part) => said.replaceAll(/[.,](?=\d{3})/g, '').includes(String(part)))
      // Some take numbers and some take texts; one that takes neither is left to the types.
      const given = [numbers, numbers.map(String)].find((parts) => [leaf, other].every((say) => saidOf(say, parts) !== null))
      if (given !== undefined) expect(uses(saidOf(leaf, given) ?? ''), path).toEqual(uses(saidOf(other, given) ?? ''))
    }
  })

  test('knows every title and description of the definitions that come with the service', () => {
    const found = valuesOf(/^(?:title|description) = "(.*)"$/gm)
    expect(found.length).toBeGreaterThan(40)
    expect(found.filter((text) => words.descriptions[text] === undefined)).toEqual([])
    expect(Object.keys(words.descriptions).filter((text) => !found.includes(text))).toEqual([])
  })

  test('knows every state, action and member of those definitions', () => {
    const found = [
      ...valuesOf(/^\[\[state\]\]\nname = "(.*)"$/gm),
      ...valuesOf(/^action = "(.*)"$/gm),
      ...valuesOf(/^\[payload_schema\.properties\.(\w+)\]$/gm),
      ...valuesOf(/^enum = \[(.*)\]$/gm).flatMap((list) => [...list.matchAll(/"(\w+)"/g)].map(([, value]) => value ?? '')),
      ...['hold', 'release', 'edit', 'create', 'comment', 'permit', 'outcome', 'result', 'progress', 'artifacts', 'not_before', 'not_after'],
    ]
    expect(found.length).toBeGreaterThan(50)
    expect(found.filter((name) => words.names[name] === undefined)).toEqual([])
  })

  test('tells every state, and every action, from all the others', () => {
    for (const pattern of [/^\[\[state\]\]\nname = "(.*)"$/gm, /^action = "(.*)"$/gm]) {
      const said = valuesOf(pattern).map((name) => words.names[name])
      expect(new Set(said).size).toBe(said.length)
    }
  })

  test('knows every kind of hidden character', () => {
    const kinds = [...table.hidden, ...table.selectors].map(([, , name]) => String(name))
    expect([...new Set(kinds)].filter((kind) => words.names[kind] === undefined)).toEqual([])
  })
})

describe.each(Object.entries(later))('%s for bundles', (_, words) => {
  const open = new Set(['names', 'questions', 'inEnglish'])
  const closed = (all: typeof englishVerifier) => leaves(all).filter(([path]) => !open.has(path.split('.')[0] ?? ''))

  test('says everything that English says, with the same parts, and leaves nothing in English', () => {
    const shape = (all: typeof englishVerifier) => closed(all).map(([path, leaf]) => [path, typeof leaf === 'function' ? leaf.length : 0]).sort()
    expect(shape(words)).toEqual(shape(englishVerifier))
    const known = new Map(leaves(englishVerifier))
    expect(closed(words).filter(([path, leaf]) => typeof leaf === 'string' && !ALIKE.has(leaf) && leaf === known.get(path))).toEqual([])
  })

  test('has a word for every check and control that English has one for', () => {
    expect(Object.keys(englishVerifier.names).filter((name) => !Object.hasOwn(words.names, name))).toEqual([])
  })
})
