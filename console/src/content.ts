// What people decide on, and the digest that names it. Computed here over exactly what is shown, so that no one between
// the service and the screen can show one thing and have another decided.
import { isObject } from './diff'
import { sha256Hex } from './sha256'

/** RFC 8785. Its order of names and its numbers are those of JavaScript. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value)
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`
}

function digestOf(document: Record<string, unknown>): string {
  return `sha256:${sha256Hex(canonical(document))}`
}

export interface Shown {
  title: string
  payload: Record<string, unknown>
}

export function contentDigest({ title, payload }: Shown, nonce: string): string {
  return digestOf({ nonce, payload, title })
}

export function commentDigest(comment: string, nonce: string): string {
  return digestOf({ comment, nonce })
}

export function inputsDigest(inputs: unknown, nonce: string): string {
  return digestOf({ inputs, nonce })
}

/** Whether what is shown is what the digest names. `erased`: the text is gone, and with it what could be compared. */
export type Bound = 'matches' | 'differs' | 'erased'

export function boundTo(shown: Shown, nonce: string | null, digest: string): Bound {
  if (nonce === null) return 'erased'
  return contentDigest(shown, nonce) === digest ? 'matches' : 'differs'
}
