import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { hasOnlyGrown, isConsistent, provingRanges, tilePath, type Tiles } from './consistency'
import type { Hash } from './merkle'

const sha = (...parts: Uint8Array[]): Hash => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return new Uint8Array(hash.digest())
}
const node = (left: Uint8Array, right: Uint8Array) => sha(Uint8Array.of(1), left, right)
const leaves = (size: number, seed: string): Hash[] => Array.from({ length: size }, (_, at) => sha(Uint8Array.of(0), Buffer.from(`${seed} ${at}`)))

/** The tree by its definition. Full subtrees are kept: the same ones are in every larger tree. */
const kept = new WeakMap<Hash[], Map<string, Hash>>()
function root(all: Hash[], end = all.length, start = 0): Hash {
  const size = end - start
  if (size === 1) return all[start] as Hash
  const known = kept.get(all) ?? new Map<string, Hash>()
  kept.set(all, known)
  const found = known.get(`${start} ${end}`)
  if (found !== undefined) return found
  let half = 1
  while (half * 2 < size) half *= 2
  const hash = node(root(all, start + half, start), root(all, end, start + half))
  if (half * 2 === size) known.set(`${start} ${end}`, hash)
  return hash
}

/** The tiles of a log, each as wide as it was asked for, and what was asked. */
function log(all: Hash[]): { tiles: Tiles; asked: string[] } {
  const levels = [all]
  for (let level = 1; 256 ** level <= all.length; level += 1) {
    const below = levels[level - 1] ?? []
    levels.push(Array.from({ length: Math.floor(below.length / 256) }, (_, at) => root(below, at * 256 + 256, at * 256)))
  }
  const asked: string[] = []
  const tiles: Tiles = (level, index, width) => {
    asked.push(tilePath(level, index, width))
    const found = levels[level]?.slice(index * 256, index * 256 + width) ?? []
    return found.length === width && width > 0 ? Promise.resolve(found) : Promise.reject(new Error(`no tile ${tilePath(level, index, width)}`))
  }
  return { tiles, asked }
}

let seed = 3
function dice(below: number): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
  return Math.floor((seed / 2_147_483_648) * below)
}

test('every tree is the beginning of every larger one', async () => {
  const all = leaves(40, 'a')
  for (let newer = 1; newer <= all.length; newer += 1) {
    for (let older = 1; older <= newer; older += 1) {
      const { tiles } = log(all.slice(0, newer))
      const isGood = await hasOnlyGrown(root(all, older), older, root(all, newer), newer, tiles)
      expect(isGood, `${older} in ${newer}`).toBe(true)
    }
  }
})

test('trees of several levels of tiles are followed with few of them', async () => {
  const all = leaves(66_300, 'b')
  const { tiles, asked } = log(all)
  const newer = root(all)
  for (const older of [1, 255, 256, 257, 511, 65_535, 65_536, 65_537, 66_299, 66_300, ...Array.from({ length: 8 }, () => 1 + dice(66_300))]) {
    asked.length = 0
    expect(await hasOnlyGrown(root(all, older), older, newer, all.length, tiles), String(older)).toBe(true)
    expect(asked.length, `tiles for ${older}: ${asked.join(' ')}`).toBeLessThanOrEqual(8)
  }
}, 60_000)

test('a log that changed what it had is found out', async () => {
  for (let round = 0; round < 30; round += 1) {
    const size = 2 + dice(400)
    const older = 1 + dice(size - 1)
    const before = leaves(size, 'c')
    const changed = before.slice()
    changed[dice(older)] = sha(Buffer.from('rewritten'))
    const was = root(before, older)
    // What it shows now fits together, but not with what it signed before.
    expect(await hasOnlyGrown(was, older, root(changed), size, log(changed).tiles), `${older} in ${size}`).toBe(false)
    // Neither does it help to give out the old hashes under the new root.
    expect(await hasOnlyGrown(was, older, root(changed), size, log(before).tiles)).toBe(false)
  }
}, 60_000)

test('a proof of the wrong length, or between sizes that cannot be, proves nothing', async () => {
  const all = leaves(13, 'd')
  const [older, newer] = [root(all, 6), root(all)]
  const proof = provingRanges(6, 0, 13, true).map(({ start, end }) => root(all, end, start))
  expect(await isConsistent(older, 6, newer, 13, proof)).toBe(true)
  expect(await isConsistent(older, 6, newer, 13, proof.slice(1))).toBe(false)
  expect(await isConsistent(older, 6, newer, 13, [...proof, older])).toBe(false)
  expect(await isConsistent(older, 6, newer, 13, [])).toBe(false)
  expect(await isConsistent(older, 13, older, 13, [older])).toBe(false)
  const { tiles } = log(all)
  expect(await hasOnlyGrown(newer, 13, older, 6, tiles)).toBe(false)
  expect(await hasOnlyGrown(older, 0, newer, 13, tiles)).toBe(false)
  expect(await hasOnlyGrown(older, 13, newer, 13, tiles)).toBe(false)
})

test('tiles have the paths that the specification gives them', () => {
  expect(tilePath(0, 0, 256)).toBe('0/000')
  expect(tilePath(0, 1_234_067, 256)).toBe('0/x001/x234/067')
  expect(tilePath(1, 0, 17)).toBe('1/000.p/17')
  expect(tilePath(2, 1_000, 1)).toBe('2/x001/000.p/1')
})
