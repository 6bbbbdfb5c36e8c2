// Addresses are the console's state that others may be sent: which screen, which item, which filters.
// A token is never part of one.

export const ROOT = '/console'

export interface Address {
  path: string
  query: URLSearchParams
}

/** What is left of a path below the console's root: `/console/items/1` → `['items', '1']`. */
export function segments(path: string): string[] {
  const below = path === ROOT || path.startsWith(`${ROOT}/`) ? path.slice(ROOT.length) : path
  return below.split('/').filter((part) => part !== '').map(decode)
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** The address of a screen; empty values are left out, so that equal filters have equal addresses. */
export function href(parts: string[], query: Record<string, string | null | undefined> = {}): string {
  const path = [ROOT, ...parts.map(encodeURIComponent)].join('/')
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) pairs.set(name, value)
  const text = pairs.toString()
  return text === '' ? path : `${path}?${text}`
}

class Router {
  address = $state.raw<Address>({ path: '/', query: new URLSearchParams() })
  /** Asked before leaving a screen with unsaved work. */
  guard: (() => boolean) | null = null
  #index = 0

  start(): void {
    this.#index = Number((history.state as { index?: number } | null)?.index ?? 0)
    history.replaceState({ index: this.#index }, '')
    history.scrollRestoration = 'manual'
    this.#read()
    addEventListener('popstate', (event) => this.#popped(event))
    addEventListener('click', (event) => this.#clicked(event))
  }

  go(to: string, { replace = false } = {}): void {
    if (!replace && !this.#mayLeave()) return
    const url = new URL(to, location.href)
    if (replace) history.replaceState({ index: this.#index }, '', url)
    else {
      history.replaceState({ index: this.#index, top: scrollY }, '')
      history.pushState({ index: ++this.#index }, '', url)
    }
    this.#read()
    if (!replace) scrollTo(0, 0)
  }

  /** Gives what is on the screen its lasting address, without leaving it. */
  rename(to: string): void {
    history.replaceState({ index: this.#index }, '', to)
  }

  #popped(event: PopStateEvent): void {
    const index = Number((event.state as { index?: number } | null)?.index ?? 0)
    if (index !== this.#index && !this.#mayLeave()) {
      history.go(this.#index - index)
      return
    }
    this.#index = index
    this.#read()
    // What was there is shown again at once, so it can be scrolled to where one was.
    const { top = 0 } = (event.state ?? {}) as { top?: number }
    requestAnimationFrame(() => scrollTo(0, top))
  }

  #mayLeave(): boolean {
    if (this.guard !== null && !this.guard()) return false
    this.guard = null
    return true
  }

  #read(): void {
    this.address = { path: location.pathname, query: new URLSearchParams(location.search) }
  }

  /** Links are real links; a plain click on one of ours stays on the page. */
  #clicked(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0) return
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (link === null || link.target !== '' || link.hasAttribute('download')) return
    const url = new URL(link.href, location.href)
    const isOurs = url.pathname === '/' || url.pathname === ROOT || url.pathname.startsWith(`${ROOT}/`)
    if (url.origin !== location.origin || !isOurs) return
    if (url.hash !== '' && url.pathname === location.pathname) return
    event.preventDefault()
    this.go(url.pathname + url.search)
  }
}

export const router = new Router()
