// Entries about credentials, in words: which one, whose, and why.
import type { Entry } from './api'
import { text } from './text'

interface Details {
  cause?: string
  reason?: string
  credential?: { actor_id?: string | null; credential_id?: string; fingerprint?: string }
}

export function isAboutCredential(entry: Entry): boolean {
  return entry.type.startsWith('credential.')
}

/** `ana-2026-11 of ana · it had expired`; whose it is goes without saying when its owner acted. */
export function credentialWords(entry: Entry): string {
  const { cause, reason, credential } = (entry.details ?? {}) as Details
  const id = credential?.credential_id ?? credential?.fingerprint ?? ''
  const actor = credential?.actor_id ?? null
  const named = actor === null || actor === entry.actor_id ? id : text.credentialOf(id, actor)
  const why = text.credentialCauses[reason ?? cause ?? ''] ?? ''
  return [named, why].filter((part) => part !== '').join(' · ')
}

/** Enough of an id to tell two items of the same title apart: ids of the same minute begin alike. */
export function shortId(id: string): string {
  return `${id.slice(0, 8)}…${id.slice(-4)}`
}
