// A definition, read: which rules lead where, who may follow them, and what they take, in words.
import type { Item, Role, Workflow } from './api'
import { listed, roles, text, words } from './text'

export type Rule = Workflow['transitions'][number]
export type State = Workflow['states'][number]

export function stateOf(workflow: Workflow, name: string): State | undefined {
  return workflow.states.find((state) => state.name === name)
}

/** Rules for an action from a state; several when an input chooses between them. Hold and release are rules too. */
export function rulesFor(workflow: Workflow, action: string, from: string): Rule[] {
  const { hold } = workflow
  if (hold !== undefined && (action === 'hold' || action === 'release')) {
    const roles = action === 'hold' ? hold.roles : hold.release_roles
    return [{ action, from: [from], roles, comment_required: true }]
  }
  return workflow.transitions.filter((rule) => rule.action === action && rule.from.includes(from))
}

export interface Next {
  action: string | null
  to: string
  roles: Role[]
}

/** Where an item could go from a state, by people and by time; what stays in place is no step. */
export function nextSteps(workflow: Workflow, from: string): Next[] {
  const moves = workflow.transitions.filter((rule) => rule.from.includes(from) && rule.to !== undefined && rule.to !== from)
  const timers = workflow.timers.filter((timer) => timer.from.includes(from))
  return [
    ...moves.map((rule) => ({ action: rule.action, to: rule.to ?? from, roles: rule.roles })),
    ...timers.map((timer) => ({ action: null, to: timer.to, roles: [] })),
  ]
}

export function roleNames(names: Role[], last: 'or' | 'and' = 'or'): string {
  return listed(names.map((name) => roles[name]), last)
}

/** Everything a rule asks for besides role and state. */
export function ruleWords(rule: Rule): string[] {
  const say = text.workflows
  const found: (string | false | undefined)[] = [
    rule.own !== undefined && say.own[rule.own],
    rule.not_by_executor && say.notByExecutor,
    rule.quorum !== undefined && say.quorum(rule.quorum),
    rule.quorum_if !== undefined &&
      say.quorumIf(rule.quorum_if.quorum, words(rule.quorum_if.pointer.slice(1)), words(String(rule.quorum_if.equals))),
    rule.content_digest_required && say.contentDigest,
    rule.comment_required && say.comment,
    rule.when !== undefined && say.when(words(rule.when.input), words(rule.when.equals)),
    rule.sets_window !== undefined && say.setsWindow(spanWords(rule.sets_window)),
    rule.inside_window && say.insideWindow,
    rule.takes_lease !== undefined && say.takesLease(spanWords(rule.takes_lease)),
    rule.renews_lease !== undefined && say.renewsLease(spanWords(rule.renews_lease)),
    rule.attempts !== undefined && say.attempts(rule.attempts),
    rule.voids_votes && say.voidsVotes,
    rule.voids_window && say.voidsWindow,
    rule.takes_back_vote && say.takesBackVote,
    rule.replaces !== undefined && say.replaces(listed(rule.replaces.map(words))),
    rule.inputs !== undefined && say.inputs(listed(rule.inputs.map(words), 'and')),
    rule.description,
  ]
  return found.filter((words): words is string => typeof words === 'string' && words !== '')
}

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function spanOf(span: string): [number, keyof typeof UNITS] | null {
  const [, number, unit] = /^(\d+)([smhd])$/.exec(span) ?? []
  return number === undefined ? null : [Number(number), unit as keyof typeof UNITS]
}

/** `72h` → `72 hours` */
export function spanWords(span: string): string {
  const found = spanOf(span)
  return found === null ? span : text.spans[found[1]](found[0])
}

export function spanMilliseconds(span: string): number | null {
  const found = spanOf(span)
  return found === null ? null : found[0] * UNITS[found[1]]
}

/** The states of the item's journey, oldest first; staying in place is no step. */
export function pathTaken(history: { from: string | null; to: string | null }[], item: Item): string[] {
  const path: string[] = []
  for (const { to } of history) if (to !== null && path.at(-1) !== to) path.push(to)
  if (path.at(-1) !== item.state) path.push(item.state)
  return path
}

/** The move that hands a draft over to the others: by its creator, to where it can no longer be edited and is not at an end. */
export function handOver(workflow: Workflow, from: string): string | null {
  const found = workflow.transitions.find((rule) => {
    const to = stateOf(workflow, rule.to ?? from)
    return rule.from.includes(from) && rule.own === 'creator' && to?.kind === 'open' && to.editable !== true
  })
  return found?.action ?? null
}

/** How an action is dressed: what ends, sends back or takes away is not offered like what leads on. */
export function toneOf(workflow: Workflow, action: string, from: string): 'on' | 'back' | 'plain' {
  const [rule] = rulesFor(workflow, action, from)
  if (rule?.to === undefined) return 'plain'
  if (rule.comment_required || action === 'withdraw') return 'back'
  return 'on'
}
