// What a person is writing. Closing a dialog, leaving a page, being idle or signing out does not take it along: it waits
// in the tab for the same person, until it was sent or thrown away on purpose, and is gone when someone else signs in.

const TYPED = 'pilot.typed'
/** A working day: what is found the next morning was left. */
const KEPT_MS = 12 * 3_600_000

interface Kept {
  actor: string
  at: number
  texts: Record<string, unknown>
}

const writing = new Map<string, () => unknown>()

/** `read` gives what is being written at a place of the console, or nothing. When the place goes away, it is kept. */
export function keepTyped(place: string, read: () => unknown): () => void {
  writing.set(place, read)
  return () => {
    if (writing.get(place) !== read) return
    writing.delete(place)
    keepText(place, read())
  }
}

function isNothing(text: unknown): boolean {
  return text === undefined || text === null || text === ''
}

/** Whose texts these are; nobody's before the sign-in. */
let actor: string | null = null

/** Keeps this in the tab, or forgets what was there. */
function keepText(place: string, text: unknown): void {
  storeTyped(withTexts([[place, text]]))
}

function withTexts(changed: [string, unknown][]): string | null {
  const kept = readKept()
  if (actor === null) return kept === null ? null : JSON.stringify(kept)
  const texts: Record<string, unknown> = kept?.actor === actor ? { ...kept.texts } : {}
  for (const [place, text] of changed) {
    if (isNothing(text)) delete texts[place]
    else texts[place] = text
  }
  return Object.keys(texts).length === 0 ? null : JSON.stringify({ actor, at: Date.now(), texts } satisfies Kept)
}

/** Before the screens go away: what is being written, and what was kept before. */
export function gatherTyped(): string | null {
  const gathered = withTexts([...writing].map(([place, read]) => [place, read()]))
  actor = null
  return gathered
}

/** Before the page goes away, to be loaded again. */
export function flushTyped(): void {
  if (actor !== null) storeTyped(withTexts([...writing].map(([place, read]) => [place, read()])))
}

export function storeTyped(kept: string | null): void {
  if (kept === null) {
    sessionStorage.removeItem(TYPED)
    return
  }
  try {
    sessionStorage.setItem(TYPED, kept)
  } catch {
    // The tab's store is full: what is on the screen stays there, and nothing else is lost for it.
  }
}

/** Someone signed in: is it theirs? */
export function claimTyped(signedIn: string): void {
  actor = signedIn
  const kept = readKept()
  if (kept !== null && (kept.actor !== actor || Date.now() - kept.at > KEPT_MS)) sessionStorage.removeItem(TYPED)
}

/** What was kept for this place. It stays kept until it is forgotten. */
export function typedAt(place: string): unknown {
  const kept = readKept()
  return kept !== null && Object.hasOwn(kept.texts, place) ? kept.texts[place] : undefined
}

/** It was sent, or thrown away on purpose. */
export function forgetTyped(place: string): void {
  writing.delete(place)
  keepText(place, null)
}

function readKept(): Kept | null {
  const stored = sessionStorage.getItem(TYPED)
  return stored === null ? null : (JSON.parse(stored) as Kept)
}
