// The one table of screens: what the sidebar, the palette and the keys lead to.
import type { Role } from './api'
import { text } from './text'

export type ScreenName = 'inbox' | 'items' | 'new' | 'calendar' | 'live' | 'overview' | 'workflows' | 'evidence' | 'actors'

interface Screen {
  path: ScreenName
  name: string
  /** Whose screen it is; everyone's if absent. */
  only?: Role[]
}

/** Asked when it is shown: the words are those of the language in use. */
export function screensFor(role: Role | null): Screen[] {
  const { nav } = text
  const all: Screen[] = [
    { path: 'inbox', name: nav.inbox },
    { path: 'items', name: nav.items },
    { path: 'new', name: nav.create, only: ['initiator'] },
    { path: 'calendar', name: nav.calendar },
    { path: 'live', name: nav.live },
    { path: 'overview', name: nav.overview },
    { path: 'workflows', name: nav.workflows },
    { path: 'evidence', name: nav.evidence },
    { path: 'actors', name: nav.actors, only: ['security_admin', 'auditor'] },
  ]
  return all.filter(({ only }) => only === undefined || (role !== null && only.includes(role)))
}
