// Items this tab showed lately, newest first. In the tab, and gone with the session.
const PLACE = 'pilot.recent'
const KEPT = 8

export interface Recent {
  id: string
  title: string
}

export function recentItems(): Recent[] {
  try {
    const stored: unknown = JSON.parse(sessionStorage.getItem(PLACE) ?? '[]')
    return Array.isArray(stored) ? (stored as Recent[]) : []
  } catch {
    return []
  }
}

export function rememberItem(item: Recent): void {
  const others = recentItems().filter(({ id }) => id !== item.id)
  try {
    sessionStorage.setItem(PLACE, JSON.stringify([item, ...others].slice(0, KEPT)))
  } catch {
    // Full: what people write and look at is worth more than this.
  }
}
