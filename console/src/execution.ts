// The last attempt to carry an item out, as its history tells it.
import type { Transition } from './api'

export interface Attempt {
  start: Transition
  /** What the executor said last about how far it is. */
  progress: { words: string; at: string } | null
  /** The transition that ended it, if one did. */
  end: Transition | null
  result: string | null
  artifacts: unknown[]
}

const STARTS = new Set(['start', 'retry', 'roll_back'])

/** The history is oldest first. Comments and holds do not end an attempt. */
export function lastAttempt(history: Transition[]): Attempt | null {
  const at = history.findLastIndex((line) => STARTS.has(line.action))
  const start = history[at]
  if (start === undefined) return null
  const since = history.slice(at + 1)
  const end = since.find((line) => line.from === start.to && line.to !== start.to) ?? null
  const beats = since.filter((line) => typeof line.inputs?.progress === 'string')
  const last = beats.at(-1)
  const result = end?.inputs?.result
  const artifacts = end?.inputs?.artifacts
  return {
    start,
    progress: end !== null || last === undefined ? null : { words: String(last.inputs?.progress), at: last.at },
    end,
    result: typeof result === 'string' ? result : null,
    artifacts: Array.isArray(artifacts) ? artifacts : [],
  }
}
