// Answers to a burst of changes: once it is quiet, at the latest after a while however long the burst lasts, and never
// while the last answer is still under way. A question asked again before it is answered would never be answered.

export interface Settling {
  /** Something changed. */
  poke: () => void
  stop: () => void
}

export function settling(run: () => Promise<unknown>, quiet: number, longest: number): Settling {
  let timer: ReturnType<typeof setTimeout> | undefined
  let [isRunning, isOver] = [false, false]
  let since: number | null = null

  const fire = () => {
    since = null
    isRunning = true
    void run()
      .catch(() => {})
      .then(() => {
        isRunning = false
        if (since !== null) plan()
      })
  }
  const plan = () => {
    clearTimeout(timer)
    if (isOver) return
    const waited = Date.now() - (since ?? Date.now())
    // A clock that was set back must not make anyone wait longer.
    timer = setTimeout(fire, Math.max(0, Math.min(quiet, longest - Math.max(0, waited))))
  }
  return {
    poke: () => {
      since ??= Date.now()
      if (!isRunning) plan()
    },
    stop: () => {
      isOver = true
      clearTimeout(timer)
    },
  }
}
