import { expect, test } from 'vitest'
import { canonical } from './content'
import { isObject } from './diff'
import { patchTo } from './patch'

type Members = Record<string, unknown>
const json = (text: string) => JSON.parse(text) as Members

/** RFC 7396, section 2, as written there. */
function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const members = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name)
    else members.set(name, merged(members.get(name), value))
  }
  return Object.fromEntries(members)
}

test('nulls that a patch cannot bring are found, with their path', () => {
  const unreachable: [string, string, string[]][] = [
    ['{}', '{"n":null}', ['n']],
    ['{"n":1}', '{"n":null}', ['n']],
    ['{}', '{"m":{"a":null}}', ['m', 'a']],
    ['{"m":[1]}', '{"m":{"x":{"a":null}}}', ['m', 'x', 'a']],
    ['{"m":{"a":1}}', '{"m":{"a":null}}', ['m', 'a']],
  ]
  for (const [before, after, path] of unreachable) expect(patchTo(json(before), json(after)), after).toEqual({ unreachable: path })
})

test('nulls that are there already, go away or are in lists are no obstacle', () => {
  const reachable: [string, string, string][] = [
    ['{"n":null,"a":1}', '{"n":null,"a":2}', '{"a":2}'],
    ['{"m":{"a":null,"b":1}}', '{"m":{"a":null,"b":2}}', '{"m":{"b":2}}'],
    ['{"n":null}', '{}', '{"n":null}'],
    ['{"n":null}', '{"n":1}', '{"n":1}'],
    ['{}', '{"l":[null,{"a":null}]}', '{"l":[null,{"a":null}]}'],
    ['{"m":{"a":1}}', '{"m":{}}', '{"m":{"a":null}}'],
    ['{}', '{"m":{}}', '{"m":{}}'],
    ['{"a":{"b":1,"c":2}}', '{"a":{"c":2,"b":1}}', '{}'],
    ['{"__proto__":1,"constructor":2}', '{"__proto__":{"x":1}}', '{"constructor":null,"__proto__":{"x":1}}'],
  ]
  for (const [before, after, patch] of reachable) {
    const found = patchTo(json(before), json(after))
    expect(JSON.stringify(found), after).toBe(`{"patch":${patch}}`)
  }
})

test('for any two contents the patch leads exactly to the second, or no patch can', () => {
  let seed = 11
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const value = (depth: number): unknown => {
    const kind = next(depth > 2 ? 3 : 5)
    if (kind === 0) return next(3)
    if (kind === 1) return null
    if (kind === 2) return 'x'
    if (kind === 3) return Array.from({ length: next(3) }, () => value(depth + 1))
    return members(depth + 1)
  }
  const members = (depth: number): Members => Object.fromEntries(Array.from({ length: next(4) }, () => [['a', 'b', '__proto__', 'c'][next(4)] ?? '', value(depth)]))
  let refused = 0
  for (let round = 0; round < 5_000; round += 1) {
    const [before, after] = [members(0), members(0)]
    const found = patchTo(before, after)
    if ('patch' in found) expect(canonical(merged(before, JSON.parse(JSON.stringify(found.patch))))).toBe(canonical(after))
    else refused += 1
  }
  expect(refused).toBeGreaterThan(100)
  expect(refused).toBeLessThan(4_500)
})
