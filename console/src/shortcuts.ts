// Keys for those who live on the keyboard. Every one of them is also a link or a button.
import { preferences } from './preferences.svelte'
import { href, router } from './router.svelte'
import { session } from './session.svelte'

const SCREENS: Record<string, string[]> = {
  i: ['inbox'],
  t: ['items'],
  n: ['new'],
  l: ['live'],
  w: ['workflows'],
  e: ['evidence'],
  a: ['actors'],
  o: ['overview'],
  c: ['calendar'],
}
const CHORD_MS = 1_200

let chordUntil = 0

export function onKey(event: KeyboardEvent, show: (what: 'help' | 'palette') => void): void {
  if (session.me === null) return
  // Not a single key: it works for everyone, and also while writing.
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === 'k') {
    event.preventDefault()
    if (document.querySelector('dialog[open]') === null) show('palette')
    return
  }
  if (!preferences.hasShortcuts) return
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isWriting(event.target)) return
  if (document.querySelector('dialog[open]') !== null) return
  if (event.timeStamp < chordUntil) {
    chordUntil = 0
    const screen = SCREENS[event.key]
    if (screen !== undefined) {
      event.preventDefault()
      router.go(href(screen))
    }
    return
  }
  const act = ACTIONS[event.key] ?? (event.key === '?' ? () => show('help') : undefined)
  if (act === undefined) return
  event.preventDefault()
  act(event)
}

const ACTIONS: Record<string, (event: KeyboardEvent) => void> = {
  g: (event) => (chordUntil = event.timeStamp + CHORD_MS),
  '/': () => {
    const search = document.querySelector<HTMLElement>('[data-search]')
    if (search !== null) search.focus()
    else router.go(href(['items'], { focus: 'search' }))
  },
  j: () => step(1),
  k: () => step(-1),
  '.': () => document.querySelector<HTMLElement>('[data-actions] button, [data-actions] a')?.focus(),
  c: () => document.querySelector<HTMLElement>('[data-comment]')?.focus(),
  d: () => preferences.setTheme(preferences.isDark ? 'light' : 'dark'),
}

function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')]
  const at = rows.findIndex((row) => row === document.activeElement)
  const next = rows[at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + by))]
  next?.focus()
}

function isWriting(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
}
