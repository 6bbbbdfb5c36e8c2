// What the tab says of itself while one looks elsewhere: how much is waiting, which screen, which installation.
import type { Colour } from './api'
import { text } from './text'

class Page {
  /** The screen, as its heading names it. */
  screen = $state.raw('')
  /** How many items wait for the person; nobody is signed in when there are none to count. */
  waiting = $state.raw(0)
  /** Seconds until the person is signed out, once that is near. */
  leavesIn = $state.raw<number | null>(null)
  /** What the operators call this installation; empty if they did not name it. */
  name = $state.raw('')
  colour = $state.raw<Colour>('grey')

  get title(): string {
    const where = [this.screen, this.name, text.product].filter((part) => part !== '').join(' · ')
    if (this.leavesIn !== null) return `${text.leavesIn(this.leavesIn)} · ${where}`
    return this.waiting > 0 ? `(${this.waiting}) ${where}` : where
  }

  get isDemo(): boolean {
    return this.name === 'Demo'
  }
}

export const page = new Page()
