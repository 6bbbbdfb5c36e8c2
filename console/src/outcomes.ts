// What a state says about an item: how it looks in every list, and how an action is dressed.

export type Outcome = 'draft' | 'waiting' | 'running' | 'good' | 'bad' | 'doubt' | 'ended'

/** States of the built-in workflows by name; those of other workflows by their kind. */
const BY_NAME: Record<string, Outcome> = {
  draft: 'draft',
  returned: 'draft',
  executing: 'running',
  rolling_back: 'running',
  succeeded: 'good',
  closed: 'good',
  ratified: 'good',
  failed: 'bad',
  rejected: 'bad',
  revoked: 'bad',
  condemned: 'bad',
  indeterminate: 'doubt',
  rolled_back: 'doubt',
  expired: 'ended',
  withdrawn: 'ended',
}

export type Kind = 'open' | 'effect' | 'terminal'

export function outcomeOf(state: string, kind: Kind): Outcome {
  const named = BY_NAME[state]
  if (named !== undefined) return named
  return kind === 'effect' ? 'running' : kind === 'terminal' ? 'ended' : 'waiting'
}

export type Risk = 'low' | 'medium' | 'high' | 'other'

export function riskOf(value: unknown): Risk | null {
  if (typeof value !== 'string' || value === '') return null
  return value === 'low' || value === 'medium' || value === 'high' ? value : 'other'
}

export type Tone = 'good' | 'bad' | 'plain'

/** Consent is green, an end or a refusal red, everything else neither. By name for the built-in actions, otherwise by where it leads. */
const TONES: Record<string, Tone> = {
  submit: 'good',
  approve: 'good',
  clear: 'good',
  start: 'good',
  succeed: 'good',
  accept: 'good',
  ratify: 'good',
  release: 'good',
  reject: 'bad',
  refuse: 'bad',
  revoke: 'bad',
  revoke_approval: 'bad',
  withdraw: 'bad',
  fail: 'bad',
  condemn: 'bad',
}

export function toneOf(action: string): Tone {
  return TONES[action] ?? 'plain'
}

const ORDER: Record<Tone, number> = { good: 0, plain: 1, bad: 2 }

/** What moves the item forward comes first. */
export function inOrder(actions: string[]): string[] {
  return [...actions].sort((one, other) => ORDER[toneOf(one)] - ORDER[toneOf(other)])
}
