// Whether the service can be reached. Nothing is assumed to have happened while it cannot.

const FIRST_PAUSE_MS = 1_000
const LAST_PAUSE_MS = 15_000

class Connection {
  isLost = $state.raw(false)
  /** Counts the returns of the service; whoever shows something loads it again. */
  returns = $state.raw(0)
  #pause = FIRST_PAUSE_MS
  #isSuspected = false

  lost(): void {
    if (this.isLost) return
    this.isLost = true
    this.#pause = FIRST_PAUSE_MS
    this.#askLater()
  }

  /** Something failed that others may hold back, such as a stream. Only the service itself says whether it is there. */
  async suspect(): Promise<void> {
    if (this.isLost || this.#isSuspected) return
    this.#isSuspected = true
    try {
      if (!(await fetch('/healthz', { cache: 'no-store' })).ok) this.lost()
    } catch {
      this.lost()
    } finally {
      this.#isSuspected = false
    }
  }

  #askLater(): void {
    setTimeout(() => void this.ask(), this.#pause)
    this.#pause = Math.min(this.#pause * 2, LAST_PAUSE_MS)
  }

  async ask(): Promise<void> {
    if (!this.isLost) return
    try {
      const answer = await fetch('/healthz', { cache: 'no-store' })
      if (!answer.ok) throw new Error('not healthy')
      this.isLost = false
      this.returns += 1
    } catch {
      this.#askLater()
    }
  }
}

export const connection = new Connection()
