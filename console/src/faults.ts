// What the service found wrong, in words for people: at which field, what that field is called, and what is wrong with it.
import type { Problem } from './api'
import { spanWords } from './rules'
import { capital, text, words } from './text'

export interface Placed {
  /** The control it belongs to: `title`, `comment`, `payload/risk`; inputs by their own names, such as `not_after` or
      `artifacts/0/name`. Null if no control has that name; then it belongs to the whole form. */
  field: string | null
  /** What people call that place; empty for the whole. */
  label: string
  sentence: string
}

/** `members` are those of the payload that have a control of their own. */
export function placed(problem: Problem, members: readonly string[] = []): Placed[] {
  return (problem.errors ?? []).map(({ pointer, detail }) => {
    const place = placeOf(pointer, members)
    const sentence = sentenceOf(detail)
    return { field: place.field, label: place.label, sentence: place.within === '' ? sentence : text.faults.within(place.within, sentence) }
  })
}

/** For a fault that is not shown at its field. */
export function whole({ label, sentence }: Pick<Placed, 'label' | 'sentence'>): string {
  return label === '' ? sentence : text.faults.at(label, sentence)
}

/** What the control of a payload's member is called. */
export function memberField(name: string): string {
  return `payload/${name}`
}

function namesIn(pointer: string): string[] {
  return pointer.split('/').slice(1).map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

interface Place {
  field: string | null
  label: string
  /** Where inside the field. */
  within: string
}

function placeOf(pointer: string, members: readonly string[]): Place {
  const say = text.faults
  const [first, second, ...rest] = namesIn(pointer)
  if (first === undefined) return { field: null, label: '', within: '' }
  if (first === 'payload') {
    if (second === undefined) return { field: null, label: say.payload, within: '' }
    if (!members.includes(second)) return { field: null, label: path(second, rest), within: '' }
    return { field: memberField(second), label: capital(words(second)), within: inside(rest) }
  }
  if (first === 'inputs' && second !== undefined) return inputPlace(second, rest)
  if (first === 'text') return { field: 'comment', label: text.act.comment, within: '' }
  const label = Object.hasOwn(say.labels, first) ? say.labels[first] : undefined
  if (label !== undefined) return { field: first, label, within: '' }
  return { field: null, label: path(first, second === undefined ? [] : [second, ...rest]), within: '' }
}

function inputPlace(name: string, rest: string[]): Place {
  const say = text.faults
  const [at, part] = rest
  if (name === 'artifacts' && at !== undefined && /^\d+$/.test(at)) {
    const label = part === undefined ? say.artifact(Number(at) + 1) : say.artifactPart(Number(at) + 1, say.artifactParts[part] ?? part)
    return { field: [name, ...rest].join('/'), label, within: '' }
  }
  const label = Object.hasOwn(say.inputs, name) ? say.inputs[name] : undefined
  return { field: name, label: label ?? capital(words(name)), within: inside(rest) }
}

/** Names outside a form are shown exactly as they are. */
function path(first: string, rest: string[]): string {
  return [first, ...rest.map(step)].join(', ')
}

function inside(rest: string[]): string {
  return capital(rest.map(step).join(', '))
}

function step(name: string): string {
  return /^(0|[1-9]\d*)$/.test(name) ? text.faults.number(Number(name) + 1) : name
}

const NUMBER = '([\\d,]+)'
const number = (digits: string | undefined) => Number((digits ?? '').replaceAll(',', ''))

/** What the service says, and how the console says it. What is not listed is passed on, as a sentence. */
const KNOWN: [RegExp, (found: RegExpExecArray) => string][] = [
  [/^is (required|missing)$/, () => text.faults.required],
  [/^is required: say why/, () => text.faults.sayWhy],
  [/^is required: until when/, () => text.faults.sayUntil],
  [/^must not be empty$/, () => text.faults.empty],
  [/^must be within (\d+[smhd]) from now$/, ([, span]) => text.faults.fromNow(spanWords(span ?? ''))],
  [/^must be in the future$/, () => text.faults.future],
  [/^must be before not_after$/, () => text.faults.beforeEnd],
  [/^must be a time such as /, () => text.faults.time],
  [new RegExp(`^must (?:have|be a string of) ${NUMBER} to ${NUMBER} characters$`), ([, least, most]) => text.faults.characters(number(least), number(most))],
  [new RegExp(`^must (?:have|be a string of) at most ${NUMBER} characters$`), ([, most]) => text.faults.charactersMax(number(most))],
  [/^must be 64 lowercase hexadecimal characters$/, () => text.faults.sha256],
  [/^must be a number of bytes$/, () => text.faults.bytes],
  [new RegExp(`^is larger than ${NUMBER} bytes$`), ([, most]) => text.faults.larger(number(most))],
  [new RegExp(`^has more than ${NUMBER} values$`), ([, most]) => text.faults.values(number(most))],
  [new RegExp(`^is nested deeper than ${NUMBER} levels$`), ([, most]) => text.faults.deep(number(most))],
  [new RegExp(`^has ${NUMBER} more faults$`), ([, more]) => text.faults.more(number(more))],
  [/^contains a clear token/, () => text.faults.token],
  [/^must not contain control characters/, () => text.faults.control],
  [/^is given more than once$/, () => text.faults.twice],
  [/^is an? (?:integer|number) beyond/, () => text.faults.beyond],
  [/^this is not of types? (.+)$/, ([, names]) => text.faults.type((names ?? '').split(', ').map((name) => name.replaceAll('"', '')))],
  [/^this is not one of (.+)$/, ([, choices]) => text.faults.oneOf((choices ?? '').replaceAll('"', ''))],
  [/^this is not a "(.+)"$/, ([, format]) => text.faults.format(format ?? '')],
  [/^this does not match "(.*)"$/s, ([, pattern]) => text.faults.pattern(pattern ?? '')],
  [/^this is (?:not valid under any|valid under more than one) of the schemas/, () => text.faults.form],
  [new RegExp(`^this is shorter than ${NUMBER} characters?$`), ([, least]) => text.faults.shorter(number(least))],
  [new RegExp(`^this is longer than ${NUMBER} characters?$`), ([, most]) => text.faults.charactersMax(number(most))],
]

function sentenceOf(detail: string): string {
  for (const [pattern, say] of KNOWN) {
    const found = pattern.exec(detail)
    if (found !== null) return say(found)
  }
  return text.faults.other(detail.replaceAll(/\b\d+[smhd]\b/g, spanWords))
}
