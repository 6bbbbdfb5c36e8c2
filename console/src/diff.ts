// What changed between two contents: which members, in those which lines, and in those which words.

export interface Piece {
  kind: 'same' | 'gone' | 'new'
  text: string
}

export interface Change {
  /** The names that lead to the member, from the content down. */
  path: string[]
  /** Undefined where there was none. */
  before: unknown
  after: unknown
}

export interface Line {
  kind: 'same' | 'gone' | 'new'
  /** Numbers before and after, as in the margin of a review. */
  before: number | null
  after: number | null
  pieces: Piece[]
}

/** Beyond this many cells a difference is shown whole: the table below grows with the square. */
const CELLS_MAX = 2_000_000
/** Unchanged lines around a change that are shown with it. */
const AROUND = 3

/** By words, with neighbours of one kind joined. */
export function diffText(before: string, after: string): Piece[] {
  const found = compared(wordsOf(before), wordsOf(after)) ?? [['gone', before], ['new', after]]
  const pieces: Piece[] = []
  for (const [kind, text] of found) {
    const last = pieces.at(-1)
    if (last?.kind === kind) last.text += text
    else if (text !== '') pieces.push({ kind, text })
  }
  return pieces
}

function wordsOf(text: string): string[] {
  return text.match(/\s|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? []
}

type Compared = [kind: Piece['kind'], text: string][]

/** The longest common subsequence; nothing if the texts are too large to compare. */
function compared(left: string[], right: string[]): Compared | null {
  let start = 0
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1
  let end = 0
  while (end < left.length - start && end < right.length - start && left.at(-1 - end) === right.at(-1 - end)) end += 1
  const [gone, fresh] = [left.slice(start, left.length - end), right.slice(start, right.length - end)]
  if (gone.length * fresh.length > CELLS_MAX) return null
  const middle = between(gone, fresh)
  const same = (text: string): Compared[number] => ['same', text]
  return [...left.slice(0, start).map(same), ...middle, ...left.slice(left.length - end).map(same)]
}

function between(left: string[], right: string[]): Compared {
  const width = right.length + 1
  const lengths = new Uint32Array((left.length + 1) * width)
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] = left[i] === right[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const found: Compared = []
  let [i, j] = [0, 0]
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      found.push(['same', left[i] ?? ''])
      i += 1
      j += 1
    } else if (i < left.length && (j === right.length || at(i + 1, j) >= at(i, j + 1))) {
      found.push(['gone', left[i] ?? ''])
      i += 1
    } else {
      found.push(['new', right[j] ?? ''])
      j += 1
    }
  }
  return found
}

/** By lines, each changed one by words. Null stands for unchanged lines that are left out. */
export function diffLines(before: string, after: string): (Line | null)[] {
  const [left, right] = [before.split('\n'), after.split('\n')]
  const found = compared(left, right) ?? [...left.map((line): Compared[number] => ['gone', line]), ...right.map((line): Compared[number] => ['new', line])]
  const lines: Line[] = []
  let [old, fresh] = [0, 0]
  for (const [kind, text] of found) {
    if (kind !== 'new') old += 1
    if (kind !== 'gone') fresh += 1
    lines.push({ kind, before: kind === 'new' ? null : old, after: kind === 'gone' ? null : fresh, pieces: [{ kind: 'same', text }] })
  }
  byWords(lines)
  return folded(lines)
}

/** Where as many lines went as came, each is compared with its successor. */
function byWords(lines: Line[]): void {
  let at = 0
  while (at < lines.length) {
    const gone = runOf(lines, at, 'gone')
    const fresh = runOf(lines, at + gone, 'new')
    for (let pair = 0; gone > 0 && gone === fresh && pair < gone; pair += 1) {
      const [old, next] = [lines[at + pair], lines[at + gone + pair]]
      if (old === undefined || next === undefined) continue
      const pieces = diffText(old.pieces[0]?.text ?? '', next.pieces[0]?.text ?? '')
      if (!pieces.some(({ kind, text }) => kind === 'same' && text.trim() !== '')) continue
      old.pieces = pieces.filter(({ kind }) => kind !== 'new')
      next.pieces = pieces.filter(({ kind }) => kind !== 'gone')
    }
    at += Math.max(1, gone + fresh)
  }
}

function runOf(lines: Line[], from: number, kind: Line['kind']): number {
  let length = 0
  while (lines[from + length]?.kind === kind) length += 1
  return length
}

function folded(lines: Line[]): (Line | null)[] {
  const isNear = lines.map(() => false)
  lines.forEach(({ kind }, at) => {
    if (kind !== 'same') for (let near = at - AROUND; near <= at + AROUND; near += 1) if (near >= 0 && near < lines.length) isNear[near] = true
  })
  const shown: (Line | null)[] = []
  lines.forEach((line, at) => {
    if (isNear[at]) shown.push(line)
    else if (shown.at(-1) !== null) shown.push(null)
  })
  return shown
}

/** Members that were added, removed or replaced; objects are compared member by member, everything else whole. */
export function diffContent(before: unknown, after: unknown, path: string[] = []): Change[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return names.flatMap((name) => diffContent(own(before, name), own(after, name), [...path, name]))
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }]
}

function own(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A list of texts by lines, everything else as JSON: as a difference shows it. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return value
  return JSON.stringify(value, null, 2) ?? ''
}
