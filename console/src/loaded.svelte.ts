// Something asked of the service: what it said last, and what went wrong since.
import { session } from './session.svelte'

const KEPT = 40
const answers = new Map<string, Loaded<unknown>>()

export class Loaded<T> {
  value = $state.raw<T | null>(null)
  error = $state.raw<unknown>(null)
  isLoading = $state.raw(false)
  #latest = 0

  /** Of several questions under way only the latest is listened to. */
  async load(ask: () => Promise<T>): Promise<T | null> {
    const mine = ++this.#latest
    this.isLoading = true
    try {
      const value = await ask()
      if (mine !== this.#latest) return null
      this.value = value
      this.error = null
      return value
    } catch (error) {
      if (mine === this.#latest) this.error = error
      return null
    } finally {
      if (mine === this.#latest) this.isLoading = false
    }
  }

  clear(): void {
    this.#latest += 1
    this.value = null
    this.error = null
    this.isLoading = false
  }
}

/** What was asked before is on the screen at once when one comes back, while it is asked for again. Gone with the session. */
export function keptUnder<T>(name: string): Loaded<T> {
  const known = answers.get(name) ?? new Loaded<unknown>()
  answers.delete(name)
  answers.set(name, known)
  const [oldest] = answers.keys()
  if (answers.size > KEPT && oldest !== undefined) answers.delete(oldest)
  return known as Loaded<T>
}

session.onEnd(() => answers.clear())
