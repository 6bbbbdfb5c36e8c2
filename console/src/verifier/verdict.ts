// What the verifier says. Names are data: a check that this console does not know yet is shown like the others.

export type Outcome = 'holds' | 'fails' | 'not_checked'

export interface Finding {
  name: string
  outcome: Outcome
  detail: string
}

export interface Fault {
  rule: string
  what: string
  file?: string
  entry?: number
  item?: string
}

export interface Open {
  item: string
  entry: number
  question: string
  what: string
}

export interface ItemVerdict {
  id: string
  workflow: string
  workflow_version: number
  title: string | null
  state: string
  entries: number
  people: { actor_id: string; role: string; operated_by?: string }[]
  outcome: Outcome
  controls: Finding[]
}

export type Scope = { item: string } | { period: { from: string; to: string; first: number; end: number } }

export interface About {
  origin: string
  scope: Scope
  made: string
  size: number
  root: string
  entries: number
  documents: number
  left_out: string[]
  checkpoint: string
  definitions: { name: string, version: number, digest: string }[]
  role_maps: string[]
}

export interface Verdict {
  verdict: 'holds' | 'does_not_hold' | 'holds_as_far_as_checked'
  about?: About
  checks: Finding[]
  controls: Finding[]
  items: ItemVerdict[]
  unasked: Open[]
  faults: Fault[]
}

/** What keeps the verifier from starting, and the option of the command line it is about. */
export interface Refusal {
  option: string
  what: string
}

export function readAnswer(json: string): Verdict | { refused: Refusal } {
  return JSON.parse(json) as Verdict | { refused: Refusal }
}

export interface Question {
  question: string
  what: string
  entries: number[]
}

/** Each kind of open question once, with its entries. */
export function questions(open: Open[]): Question[] {
  const found = new Map<string, Question>()
  for (const { question, what, entry } of open) {
    const known = found.get(question)
    if (known === undefined) found.set(question, { question, what, entries: [entry] })
    else known.entries.push(entry)
  }
  return [...found.values()]
}

/** What is wrong comes first, then what is open. */
export function inOrder(items: ItemVerdict[]): ItemVerdict[] {
  const rank: Record<string, number> = { fails: 0, not_checked: 1 }
  return items.toSorted((one, other) => (rank[one.outcome] ?? 2) - (rank[other.outcome] ?? 2))
}

/** Where a fault is, in the words of the verifier. */
export function placeOf({ file, entry, item }: Fault, say: { entry: (index: number) => string; item: (id: string) => string; bundle: string }): string {
  const parts = [file, entry === undefined ? undefined : say.entry(entry), item === undefined ? undefined : say.item(item)]
  return parts.filter((part) => part !== undefined).join(', ') || say.bundle
}
