// Something asked of the service: what it said last, and what went wrong since.

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
