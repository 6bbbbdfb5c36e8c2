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

/** Two paths may lead to one screen: the root is the inbox. */
export function screenOf(path: string): string {
  return segments(path).join('/') || 'inbox'
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

/** The row of a list that was opened: by its link, or, when it is gone, by its place. */
export interface Row {
  href: string
  at: number
}

interface Stored {
  index?: number
  top?: number
  row?: Row | null
}

class Router {
  address = $state.raw<Address>({ path: '', query: new URLSearchParams() })
  /** Asked before leaving a screen with unsaved work. One that says no may ask the person, and call `leave` later. */
  guard: ((leave: () => void) => boolean) | null = null
  /** Someone came back to a list, and was at this row when they left it. */
  returning: Row | null = null
  #index = 0
  #isStaying = false
  /** Whether the heading of a new screen is still to be read out. */
  #isArriving = false
  #arrivals = 0

  start(): void {
    this.#index = Number((history.state as Stored | null)?.index ?? 0)
    history.replaceState({ index: this.#index }, '')
    history.scrollRestoration = 'manual'
    this.#read()
    addEventListener('popstate', (event) => this.#popped(event))
    addEventListener('click', (event) => this.#clicked(event))
  }

  go(to: string, { replace = false, from = document.activeElement }: { replace?: boolean; from?: Element | null } = {}): void {
    if (!replace && !this.#mayLeave(() => this.go(to))) return
    const url = new URL(to, location.href)
    if (replace) history.replaceState({ index: this.#index }, '', url)
    else {
      history.replaceState({ index: this.#index, top: scrollY, row: rowOf(from) }, '')
      history.pushState({ index: ++this.#index }, '', url)
      this.returning = null
    }
    this.#read()
    if (!replace) scrollTo(0, 0)
  }

  /** Gives what is on the screen its lasting address, without leaving it. */
  rename(to: string): void {
    history.replaceState({ index: this.#index }, '', to)
  }

  #popped(event: PopStateEvent): void {
    const { index = 0, top = 0, row = null } = (event.state ?? {}) as Stored
    if (this.#isStaying) {
      // Back where one was all along: nothing is to be shown again.
      this.#isStaying = false
      return
    }
    if (index !== this.#index && !this.#mayLeave(() => history.go(index - this.#index))) {
      this.#isStaying = true
      history.go(this.#index - index)
      return
    }
    this.#index = index
    this.returning = row
    this.#read()
    // What was there is shown again at once, so it can be scrolled to where one was.
    requestAnimationFrame(() => scrollTo(0, top))
  }

  #mayLeave(leave: () => void): boolean {
    if (this.guard !== null && !this.guard(leave)) return false
    this.guard = null
    return true
  }

  /** A screen is new to the person, as a page would be. */
  arrive(): void {
    this.#isArriving = true
    this.#arrivals += 1
  }

  /** Asked by each heading as it appears: is it the one to be read out? Also when the one that was read out is gone. */
  takeArrival(): boolean {
    const isNowhere = this.#arrivals > 0 && (document.activeElement === null || document.activeElement === document.body)
    const isWanted = this.#isArriving || isNowhere
    this.#isArriving = false
    return isWanted
  }

  #read(): void {
    if (this.address.path !== '' && screenOf(location.pathname) !== screenOf(this.address.path)) this.arrive()
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
    this.go(url.pathname + url.search, { from: link })
  }
}

function rowOf(element: Element | null): Row | null {
  if (!(element instanceof HTMLAnchorElement) || !element.hasAttribute('data-row')) return null
  const at = [...document.querySelectorAll('[data-row]')].indexOf(element)
  return { href: element.pathname, at }
}

export const router = new Router()
