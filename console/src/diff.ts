// What changed between two looks at a text or at a document.

export interface Piece {
  kind: 'same' | 'gone' | 'new'
  text: string
}

export interface Change {
  /** A JSON pointer into the content. */
  pointer: string
  before: unknown
  after: unknown
}

/** Beyond this many words a difference is shown whole: the table below grows with the square. */
const WORDS_MAX = 1_500

/** By words, longest common subsequence, with neighbours of one kind joined. */
export function diffText(before: string, after: string): Piece[] {
  if (before === after) return before === '' ? [] : [{ kind: 'same', text: before }]
  const [left, right] = [words(before), words(after)]
  if (left.length > WORDS_MAX || right.length > WORDS_MAX) {
    return [{ kind: 'gone' as const, text: before }, { kind: 'new' as const, text: after }].filter(({ text }) => text !== '')
  }
  const lengths = commonLengths(left, right)
  const pieces: Piece[] = []
  const add = (kind: Piece['kind'], text: string) => {
    const last = pieces.at(-1)
    if (last?.kind === kind) last.text += text
    else pieces.push({ kind, text })
  }
  let [i, j] = [0, 0]
  const at = (i: number, j: number) => lengths[i * (right.length + 1) + j] ?? 0
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      add('same', left[i] ?? '')
      i += 1
      j += 1
    } else if (i < left.length && (j === right.length || at(i + 1, j) >= at(i, j + 1))) {
      add('gone', left[i] ?? '')
      i += 1
    } else {
      add('new', right[j] ?? '')
      j += 1
    }
  }
  return pieces
}

function words(text: string): string[] {
  return text.match(/\s+|[^\s]+/g) ?? []
}

/** For each pair of positions, how long the common rest is. */
function commonLengths(left: string[], right: string[]): Uint16Array {
  const width = right.length + 1
  const lengths = new Uint16Array((left.length + 1) * width)
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        left[i] === right[j]
          ? (lengths[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(lengths[(i + 1) * width + j] ?? 0, lengths[i * width + j + 1] ?? 0)
    }
  }
  return lengths
}

/** Members that were added, removed or replaced; objects are compared member by member, everything else whole. */
export function diffContent(before: unknown, after: unknown, pointer = ''): Change[] {
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
    return names.flatMap((name) => diffContent(before[name], after[name], `${pointer}/${escape(name)}`))
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ pointer, before, after }]
}

/** RFC 7396: what turns `before` into `after`. Only objects are merged. */
export function mergePatch(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const patch: Record<string, unknown> = {}
  for (const name of Object.keys(before)) if (!(name in after)) patch[name] = null
  for (const [name, value] of Object.entries(after)) {
    const old = before[name]
    if (JSON.stringify(old) === JSON.stringify(value)) continue
    patch[name] = isObject(old) && isObject(value) ? mergePatch(old, value) : value
  }
  return patch
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function escape(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

export function shown(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
