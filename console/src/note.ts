// Signed notes and checkpoints (C2SP signed-note, tlog-checkpoint), Ed25519 alone.
import { fromBase64, same, sha256, toHex, type Hash } from './merkle'

const ED25519 = 1

export interface VerifierKey {
  name: string
  id: Uint8Array
  key: Hash
}

export interface Checkpoint {
  origin: string
  size: number
  root: Hash
  /** What was signed: everything up to the empty line. */
  text: string
  signatures: { name: string; id: Uint8Array; signature: Hash }[]
}

/** `name+hash+base64`, whose hash must be that of its own name and key: a slip of the pen does not verify anything. */
export async function readVerifierKey(line: string): Promise<VerifierKey | null> {
  const [, name, id, encoded] = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(line.trim()) ?? []
  const key = fromBase64(encoded ?? '')
  if (name === undefined || id === undefined || key === null || key.length !== 33 || key[0] !== ED25519) return null
  const expected = (await sha256(new TextEncoder().encode(`${name}\n`), key)).slice(0, 4)
  return toHex(expected) === id ? { name, id: expected, key: key.slice(1) } : null
}

export function readCheckpoint(note: string): Checkpoint | null {
  const end = note.lastIndexOf('\n\n')
  if (end < 0) return null
  const text = note.slice(0, end + 1)
  const [origin, size, root] = text.split('\n')
  const hash = fromBase64(root ?? '')
  if (!origin || !/^(0|[1-9]\d{0,15})$/.test(size ?? '') || hash === null || hash.length !== 32) return null
  const signatures = []
  for (const line of note.slice(end + 2).split('\n').filter((line) => line !== '')) {
    const [, name, encoded] = /^\u2014 (\S+) (\S+)$/.exec(line) ?? []
    const bytes = fromBase64(encoded ?? '')
    if (name === undefined || bytes === null || bytes.length < 5) return null
    signatures.push({ name, id: bytes.slice(0, 4), signature: bytes.slice(4) })
  }
  return { origin, size: Number(size), root: hash, text, signatures }
}

/** Whether this key has signed; lines of other keys count neither way. */
export async function isSigned(checkpoint: Checkpoint, by: VerifierKey): Promise<boolean> {
  const ours = checkpoint.signatures.filter(({ name, id }) => name === by.name && same(id, by.id))
  const key = await crypto.subtle.importKey('raw', by.key, 'Ed25519', false, ['verify'])
  const text = new TextEncoder().encode(checkpoint.text)
  for (const { signature } of ours) {
    if (!(await crypto.subtle.verify('Ed25519', key, signature, text))) return false
  }
  return ours.length > 0
}
