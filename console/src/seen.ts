// What this person last decided on or looked at, as the service keeps it for them, and what changed since.
import { getContent, Refused, type WholeItem } from './api'
import { boundTo, type Shown } from './content'
import { diffContent, type Change } from './diff'

export type Since =
  | { kind: 'first' }
  | { kind: 'same'; at: string; how: 'decided' | 'looked' }
  | { kind: 'changed'; at: string; how: 'decided' | 'looked'; changes: Change[] }
  /** It changed, and the earlier text was erased or cannot be had. */
  | { kind: 'unknown'; at: string; how: 'decided' | 'looked' }

/** Earlier contents are asked for once: a digest names one for good. */
const contents = new Map<string, Promise<Shown | null>>()
const KEPT = 20

export function earlierContent(id: string, digest: string): Promise<Shown | null> {
  const known = contents.get(digest)
  if (known !== undefined) return known
  const [oldest] = contents.keys()
  if (contents.size >= KEPT && oldest !== undefined) contents.delete(oldest)
  const asked = ask(id, digest)
  contents.set(digest, asked)
  asked.catch(() => contents.delete(digest))
  return asked
}

/** Nothing if it was erased. What does not have the digest it was asked for by is not shown as what was seen. */
async function ask(id: string, digest: string): Promise<Shown | null> {
  try {
    const { title, payload, nonce } = await getContent(id, digest)
    return boundTo({ title, payload }, nonce, digest) === 'matches' ? { title, payload } : null
  } catch (error) {
    if (error instanceof Refused && error.problem.status === 404) return null
    throw error
  }
}

export async function changesSinceSeen(item: WholeItem): Promise<Since> {
  if (item.seen === null) return { kind: 'first' }
  const { content_digest, at, how } = item.seen
  if (content_digest === item.content_digest) return { kind: 'same', at, how }
  const before = await earlierContent(item.id, content_digest)
  if (before === null) return { kind: 'unknown', at, how }
  return { kind: 'changed', at, how, changes: diffContent(before, { title: item.title, payload: item.payload }) }
}
