// What a person is writing. A session that ends by itself does not take it along: it waits in the tab for the same
// person to sign in again, and is gone when someone else does, or when it was left alone.

const TYPED = 'pilot.typed'

interface Kept {
  actor: string
  at: number
  texts: Record<string, unknown>
}

const writing = new Map<string, () => unknown>()

/** `read` gives what is being written at a place of the console, or nothing. */
export function keepTyped(place: string, read: () => unknown): () => void {
  writing.set(place, read)
  return () => writing.delete(place)
}

/** Before the screens go away. */
export function gatherTyped(actor: string): string | null {
  const texts: Record<string, unknown> = {}
  for (const [place, read] of writing) {
    const text = read()
    if (text !== undefined && text !== null && text !== '') texts[place] = text
  }
  const kept: Kept = { actor, at: Date.now(), texts }
  return Object.keys(texts).length === 0 ? null : JSON.stringify(kept)
}

export function storeTyped(kept: string | null): void {
  if (kept !== null) sessionStorage.setItem(TYPED, kept)
}

/** Someone signed in: is it theirs? */
export function claimTyped(actor: string, ageMax: number): void {
  const kept = readKept()
  if (kept !== null && (kept.actor !== actor || Date.now() - kept.at > ageMax)) sessionStorage.removeItem(TYPED)
}

/** What was kept for this place, once. */
export function takeTyped(place: string): unknown {
  const kept = readKept()
  if (kept === null || !(place in kept.texts)) return undefined
  const { [place]: text, ...texts } = kept.texts
  if (Object.keys(texts).length === 0) sessionStorage.removeItem(TYPED)
  else sessionStorage.setItem(TYPED, JSON.stringify({ ...kept, texts }))
  return text
}

function readKept(): Kept | null {
  const stored = sessionStorage.getItem(TYPED)
  return stored === null ? null : (JSON.parse(stored) as Kept)
}
