// That a log has only grown: the tree of an older checkpoint is the beginning of the tree of a newer one (RFC 6962,
// 2.1.2). What proves it is computed here from the tree's tiles (C2SP tlog-tiles).
import { nodeHash, same, type Hash } from './merkle'

const TILE_WIDTH = 256
const TILE_LEVELS = 8

/** Gives the hashes of a tile, as many as asked for. */
export type Tiles = (level: number, index: number, width: number) => Promise<Hash[]>

interface Range {
  start: number
  end: number
}

/** `0/x001/234.p/17`: three digits at a time, and the width of a tile that is not full. */
export function tilePath(level: number, index: number, width: number): string {
  const groups = [String(index % 1_000).padStart(3, '0')]
  for (let rest = Math.floor(index / 1_000); rest > 0; rest = Math.floor(rest / 1_000)) groups.unshift(`x${String(rest % 1_000).padStart(3, '0')}`)
  return `${level}/${groups.join('/')}${width < TILE_WIDTH ? `.p/${width}` : ''}`
}

/** Whether the tree with root `older` of `olderSize` leaves is the beginning of the other one. */
export async function hasOnlyGrown(older: Hash, olderSize: number, newer: Hash, newerSize: number, tiles: Tiles): Promise<boolean> {
  if (olderSize < 1 || olderSize > newerSize || !Number.isSafeInteger(newerSize)) return false
  const tree = new Tree(newerSize, tiles)
  const proof: Hash[] = []
  for (const range of provingRanges(olderSize, 0, newerSize, true)) proof.push(await tree.hashOf(range))
  return isConsistent(older, olderSize, newer, newerSize, proof)
}

/** RFC 6962, 2.1.2: SUBPROOF. */
export function provingRanges(older: number, start: number, end: number, isWhole: boolean): Range[] {
  const size = end - start
  if (older === size) return isWhole ? [] : [{ start, end }]
  const half = halfOf(size)
  if (older <= half) return [...provingRanges(older, start, start + half, isWhole), { start: start + half, end }]
  return [...provingRanges(older - half, start + half, end, false), { start, end: start + half }]
}

/** The largest power of two below `size`. */
function halfOf(size: number): number {
  let half = 1
  while (half * 2 < size) half *= 2
  return half
}

/** RFC 9162, 2.1.4.2. Numbers may be larger than what bitwise operators take. */
export async function isConsistent(older: Hash, olderSize: number, newer: Hash, newerSize: number, proof: Hash[]): Promise<boolean> {
  if (olderSize === newerSize) return proof.length === 0 && same(older, newer)
  const path = olderSize === halfOf(olderSize + 1) ? [older, ...proof] : proof
  const [first, ...rest] = path
  if (first === undefined || proof.length === 0) return false
  let [at, last] = [olderSize - 1, newerSize - 1]
  const up = () => {
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  while (at % 2 === 1) up()
  let [one, other] = [first, first]
  for (const next of rest) {
    if (last === 0) return false
    if (at % 2 === 1 || at === last) {
      one = await nodeHash(next, one)
      other = await nodeHash(next, other)
      while (at % 2 === 0 && at !== 0) up()
    } else other = await nodeHash(other, next)
    up()
  }
  return last === 0 && same(one, older) && same(other, newer)
}

class Tree {
  readonly #size: number
  readonly #tiles: Tiles
  readonly #known = new Map<string, Promise<Hash[]>>()

  constructor(size: number, tiles: Tiles) {
    this.#size = size
    this.#tiles = tiles
  }

  async hashOf({ start, end }: Range): Promise<Hash> {
    const size = end - start
    if (size === halfOf(size + 1)) return this.#full(start, size)
    const half = halfOf(size)
    return nodeHash(await this.#full(start, half), await this.hashOf({ start: start + half, end }))
  }

  /** The hash over a power of two leaves, from the tile that holds it or what it is made of. */
  async #full(start: number, size: number): Promise<Hash> {
    const level = Math.floor(Math.round(Math.log2(size)) / TILE_LEVELS)
    const covered = TILE_WIDTH ** level
    const [first, count] = [start / covered, size / covered]
    const tile = await this.#tile(level, Math.floor(first / TILE_WIDTH))
    let row = tile.slice(first % TILE_WIDTH, (first % TILE_WIDTH) + count)
    while (row.length > 1) row = await pairs(row)
    const [top] = row
    if (top === undefined) throw new RangeError('the tile is shorter than it was said to be')
    return top
  }

  #tile(level: number, index: number): Promise<Hash[]> {
    const width = Math.min(TILE_WIDTH, Math.floor(this.#size / TILE_WIDTH ** level) - index * TILE_WIDTH)
    const name = `${level} ${index}`
    const known = this.#known.get(name) ?? this.#tiles(level, index, width)
    this.#known.set(name, known)
    return known
  }
}

function pairs(row: Hash[]): Promise<Hash[]> {
  const joined: Promise<Hash>[] = []
  for (let at = 0; at + 1 < row.length; at += 2) joined.push(nodeHash(row[at] as Hash, row[at + 1] as Hash))
  return Promise.all(joined)
}
