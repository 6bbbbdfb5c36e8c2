// What was just done, confirmed where people look, and said once to those who listen.
import { untrack } from 'svelte'

export interface Toast {
  id: number
  text: string
  tone: 'good' | 'plain'
  /** Where to see it, if it is elsewhere. */
  href?: string
  link?: string
}

const SHOWN_MS = 6_000
const KEPT = 4

class Toasts {
  shown = $state.raw<Toast[]>([])
  /** For screen readers: what happened last, whether or not there is a toast for it. */
  said = $state.raw('')
  #next = 1

  tell(text: string, more: { tone?: Toast['tone']; href?: string; link?: string } = {}): void {
    const { tone = 'good', ...link } = more
    const toast: Toast = { id: this.#next, text, tone, ...link }
    this.#next += 1
    this.shown = [...untrack(() => this.shown), toast].slice(-KEPT)
    this.say(text)
    setTimeout(() => this.dismiss(toast.id), SHOWN_MS)
  }

  /** Announces without showing: for what is already seen on the page. */
  say(text: string): void {
    // The same sentence twice in a row is two announcements.
    // Not read as a dependency: an effect that says something would run again and again.
    const last = untrack(() => this.said)
    this.said = last === text ? `${text}\u00a0` : text
  }

  dismiss(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id)
  }

  clear(): void {
    this.shown = []
    this.said = ''
  }
}

export const toasts = new Toasts()
