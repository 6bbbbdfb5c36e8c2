// What an action asks of a person besides the decision, from its rules.
import type { Rule } from './rules'

export interface Artifact {
  name: string
  sha256: string
  bytes: string
  uri: string
}

export interface Needs {
  comment: boolean
  /** The longest window, as in `30d`. */
  window: string | null
  result: boolean
  progress: boolean
  artifacts: boolean
  /** An input that chooses between rules, and what it can be. */
  choice: { input: string; values: string[] } | null
}

export interface Given {
  notBefore: string
  notAfter: string
  result: string
  progress: string
  artifacts: Artifact[]
  choice: string
}

export function emptyArtifact(): Artifact {
  return { name: '', sha256: '', bytes: '', uri: '' }
}

export function needsOf(rules: Rule[]): Needs {
  const choices = rules.flatMap((rule) => (rule.when === undefined ? [] : [rule.when]))
  const [first] = choices
  return {
    comment: rules.some((rule) => rule.comment_required),
    window: rules.find((rule) => rule.sets_window !== undefined)?.sets_window ?? null,
    result: rules.some((rule) => rule.inputs?.includes('result')),
    progress: rules.some((rule) => rule.inputs?.includes('progress')),
    artifacts: rules.some((rule) => rule.inputs?.includes('artifacts')),
    choice: first === undefined ? null : { input: first.input, values: choices.map((when) => when.equals) },
  }
}

/** `inputs` of the request; none when nothing was asked or given. */
export function inputsOf(needs: Needs, given: Given): Record<string, unknown> | undefined {
  const inputs: Record<string, unknown> = {}
  if (needs.window !== null) {
    if (given.notBefore !== '') inputs.not_before = toUtc(given.notBefore)
    if (given.notAfter !== '') inputs.not_after = toUtc(given.notAfter)
  }
  if (needs.result && given.result.trim() !== '') inputs.result = given.result
  if (needs.progress && given.progress.trim() !== '') inputs.progress = given.progress
  if (needs.artifacts && given.artifacts.length > 0) {
    inputs.artifacts = given.artifacts.map(({ bytes, ...rest }) => ({ ...rest, bytes: /^\d+$/.test(bytes) ? Number(bytes) : bytes }))
  }
  if (needs.choice !== null && given.choice !== '') inputs[needs.choice.input] = given.choice
  return Object.keys(inputs).length === 0 ? undefined : inputs
}

/** What a `datetime-local` field holds, in the person's zone, as the service reads it. */
function toUtc(local: string): string {
  const time = new Date(local)
  return Number.isNaN(time.getTime()) ? local : time.toISOString()
}

/** For a `datetime-local` field: minutes, in the person's zone. */
export function toLocal(time: Date): string {
  const two = (number: number) => String(number).padStart(2, '0')
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`
  return `${day}T${two(time.getHours())}:${two(time.getMinutes())}`
}
