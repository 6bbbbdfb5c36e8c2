// The log's tree (RFC 6962, SHA-256), as far as an auditor needs it: hashes of leaves and nodes, and the way from a leaf
// to the root.

export type Hash = Uint8Array<ArrayBuffer>

export async function sha256(...parts: Uint8Array[]): Promise<Hash> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return new Uint8Array(await crypto.subtle.digest('SHA-256', all))
}

export function leafHash(entry: Uint8Array): Promise<Hash> {
  return sha256(Uint8Array.of(0), entry)
}

export function nodeHash(left: Uint8Array, right: Uint8Array): Promise<Hash> {
  return sha256(Uint8Array.of(1), left, right)
}

/** One step on the way up: which side the sibling was on, and what came out. */
export interface Step {
  side: 'left' | 'right'
  sibling: Hash
  result: Hash
}

/** RFC 9162, 2.1.3.2. Nothing when the proof is too long or too short for its place in the tree. */
export async function climb(leaf: Hash, index: number, size: number, siblings: Hash[]): Promise<Step[] | null> {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(size) || index < 0 || index >= size) return null
  const steps: Step[] = []
  let [node, at, last] = [leaf, index, size - 1]
  for (const sibling of siblings) {
    if (last === 0) return null
    const isRight = at % 2 === 1 || at === last
    node = await (isRight ? nodeHash(sibling, node) : nodeHash(node, sibling))
    steps.push({ side: isRight ? 'left' : 'right', sibling, result: node })
    if (isRight) {
      while (at % 2 === 0 && at !== 0) {
        at /= 2
        last = Math.floor(last / 2)
      }
    }
    at = Math.floor(at / 2)
    last = Math.floor(last / 2)
  }
  return last === 0 ? steps : null
}

export function fromBase64(text: string): Hash | null {
  try {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
    // Not every writing of the same bytes is canonical, and only one is accepted.
    return toBase64(bytes) === text ? bytes : null
  } catch {
    return null
  }
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at])
}
