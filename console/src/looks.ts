// What this person saw of an item the last time, so that a decision can show what changed since. Kept in the tab, gone
// with the session.
import type { Item } from './api'
import { diffContent, type Change } from './diff'

const PREFIX = 'pilot.look.'
const KEPT = 40

export interface Look {
  at: string
  version: number
  state: string
  content_digest: string
  title: string
  payload: Record<string, unknown>
}

export function lastLook(id: string): Look | null {
  const stored = sessionStorage.getItem(PREFIX + id)
  return stored === null ? null : (JSON.parse(stored) as Look)
}

export function remember(item: Item): void {
  const { version, state, content_digest, title, payload } = item
  const look: Look = { at: new Date().toISOString(), version, state, content_digest, title, payload }
  const names = Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX) && name !== PREFIX + item.id)
  const at = (name: string) => (JSON.parse(sessionStorage.getItem(name) ?? '{}') as Partial<Look>).at ?? ''
  if (names.length >= KEPT) {
    const oldest = names.sort((one, other) => at(one).localeCompare(at(other))).slice(0, names.length - KEPT + 1)
    for (const name of oldest) sessionStorage.removeItem(name)
  }
  try {
    sessionStorage.setItem(PREFIX + item.id, JSON.stringify(look))
  } catch {
    // Full. A look that is not remembered shows no change, which the page then says.
  }
}

/** Members of the content that are not what they were. */
export function changesSince(look: Look, item: Item): Change[] {
  return diffContent({ title: look.title, payload: look.payload }, { title: item.title, payload: item.payload })
}
