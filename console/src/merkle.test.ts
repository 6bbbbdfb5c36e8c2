import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { climb, fromBase64, leafHash, nodeHash, toHex, type Hash } from './merkle'

// The leaves and roots of Certificate Transparency's own tests.
const LEAVES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f']
const ROOTS = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))

/** The tree by its definition, with another implementation of the hash. */
function root(leaves: string[]): Buffer {
  const sha = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest()
  if (leaves.length === 1) return sha(Buffer.of(0), Buffer.from(leaves[0] ?? '', 'hex'))
  let half = 1
  while (half * 2 < leaves.length) half *= 2
  return sha(Buffer.of(1), root(leaves.slice(0, half)), root(leaves.slice(half)))
}

/** RFC 6962, 2.1.1. */
function proof(index: number, leaves: string[]): Hash[] {
  if (leaves.length <= 1) return []
  let half = 1
  while (half * 2 < leaves.length) half *= 2
  const [left, right] = [leaves.slice(0, half), leaves.slice(half)]
  const [within, beside, at] = index < half ? [left, right, index] : [right, left, index - half]
  return [...proof(at, within), new Uint8Array(root(beside))]
}

test('every leaf of every tree leads to the reference root', async () => {
  for (let size = 1; size <= LEAVES.length; size += 1) {
    const leaves = LEAVES.slice(0, size)
    for (let index = 0; index < size; index += 1) {
      const leaf = await leafHash(bytes(leaves[index] ?? ''))
      const steps = await climb(leaf, index, size, proof(index, leaves))
      expect(toHex(steps?.at(-1)?.result ?? leaf), `leaf ${index} of ${size}`).toBe(ROOTS[size - 1])
    }
  }
})

test('a proof that is too long, too short or for another place leads nowhere', async () => {
  const leaf = await leafHash(bytes(LEAVES[2] ?? ''))
  const path = proof(2, LEAVES)
  expect(await climb(leaf, 2, 8, path.slice(1))).toBeNull()
  expect(await climb(leaf, 2, 8, [...path, path[0] ?? leaf])).toBeNull()
  expect(await climb(leaf, 8, 8, path)).toBeNull()
  expect(await climb(leaf, -1, 8, path)).toBeNull()
  expect(toHex((await climb(leaf, 3, 8, path))?.at(-1)?.result ?? leaf)).not.toBe(ROOTS[7])
})

test('leaves and nodes are hashed apart', async () => {
  const [one, other] = [await leafHash(bytes('00')), await leafHash(bytes('10'))]
  const joined = new Uint8Array([...one, ...other])
  expect(toHex(await nodeHash(one, other))).not.toBe(toHex(await leafHash(joined)))
})

test('base64 has one writing', () => {
  expect(fromBase64('AA==')).toEqual(Uint8Array.of(0))
  expect(fromBase64('AB==')).toBeNull()
  expect(fromBase64('AA')).toBeNull()
  expect(fromBase64('%')).toBeNull()
})
