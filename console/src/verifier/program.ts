// The verifier's three functions, as `crates/pilot-verify-web/src/exports.rs` describes them. Here and in the tests it is
// the same file for every caller.

interface Exports {
  memory: WebAssembly.Memory
  pilot_room(which: 0 | 1, length: number): number
  pilot_verify(): number
  pilot_answer(): number
}

export interface Settings {
  key: string
  witness_keys: string[]
  /** How many of them must have signed; all of them if null. */
  witnesses: number | null
}

/** The verifier has addresses of 32 bits, and the bundle is only a part of what it keeps. */
export class OutOfMemory extends Error {}
/** The file went away, or was changed, while it was read. */
export class Unreadable extends Error {}

/** What the verifier says about a bundle: the same text that `pilot-verify --output json` prints. */
export async function verifyBundle(program: WebAssembly.Module, bundle: Blob, settings: Settings): Promise<string> {
  // It imports nothing: no clock, no network, no randomness.
  const { memory, ...call } = (await WebAssembly.instantiate(program, {})).exports as unknown as Exports
  const room = (which: 0 | 1, length: number): Uint8Array => {
    // An address beyond the middle of the memory looks negative to the page.
    const at = call.pilot_room(which, length) >>> 0
    if (at === 0) throw new OutOfMemory()
    return new Uint8Array(memory.buffer, at, length)
  }
  const words = new TextEncoder().encode(JSON.stringify(settings))
  room(0, words.length).set(words)
  // An empty file has no first byte to point at, and is not a bundle: the verifier says so.
  await fill(room(1, bundle.size), bundle)
  const length = call.pilot_verify() >>> 0
  return new TextDecoder().decode(new Uint8Array(memory.buffer, call.pilot_answer() >>> 0, length))
}

/** Piece by piece, so that a large file is in memory once. */
async function fill(place: Uint8Array, bundle: Blob): Promise<void> {
  const reader = bundle.stream().getReader()
  let at = 0
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new Unreadable()
    })
    if (done) break
    if (at + value.length > place.length) throw new Unreadable()
    place.set(value, at)
    at += value.length
  }
  if (at !== place.length) throw new Unreadable()
}
