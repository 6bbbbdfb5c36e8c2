// Filters that someone uses again and again, under a name of their own. Kept in this browser, for each actor apart.
import { session } from './session.svelte'

export interface View {
  name: string
  /** As in the address: `state=submitted&sort=due`. */
  query: string
}

export const NAME_MAX = 40
const VIEWS_MAX = 30

function place(): string {
  return `pilot.views.${session.me?.actor_id ?? ''}`
}

function isView(value: unknown): value is View {
  const view = value as Partial<View> | null
  return typeof view === 'object' && typeof view?.name === 'string' && typeof view.query === 'string'
}

function read(): View[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(place()) ?? '[]')
    return Array.isArray(stored) ? stored.filter(isView).slice(0, VIEWS_MAX) : []
  } catch {
    return []
  }
}

class Views {
  all = $state.raw<View[]>([])

  /** Another tab of the same person may have changed them. */
  load(): void {
    this.all = read()
  }

  /** A name that is there already gets the new filters. */
  keep(name: string, query: string): void {
    const clean = name.trim().slice(0, NAME_MAX)
    if (clean === '') return
    this.#write([...read().filter((view) => view.name !== clean), { name: clean, query }].slice(-VIEWS_MAX))
  }

  remove(name: string): void {
    this.#write(read().filter((view) => view.name !== name))
  }

  #write(views: View[]): void {
    this.all = views
    if (views.length === 0) localStorage.removeItem(place())
    else localStorage.setItem(place(), JSON.stringify(views))
  }
}

export const views = new Views()
session.onEnd(() => (views.all = []))
