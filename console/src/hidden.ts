// Text as a person must see it before deciding on it. The tables are those of the service (`pilot_core::visible`), and a
// test of the service compares them.
import table from './hidden.json'
import { lookalikes } from './lookalikes'

export interface Piece {
  text: string
  /** What the hidden character is, where the text stands for one. */
  hidden?: string
  /** A character that looks like another, with its code after it. */
  alike?: string
  /** Blanks that could be mistaken for others. */
  isBlank?: boolean
}

type Row = [number, number, string]
const hidden = table.hidden as Row[]
const selectors = table.selectors as Row[]
const bases = table.bases as Row[]

/** Most text: it needs no second look. */
const PLAIN = /^[\n\t\x20-\x7e]*$/

/** Each mark is an element of its own. What comes after that many in one text is marked as well, but in one piece. */
const MARKS_MAX = 1_000

function rowOf(rows: Row[], code: number): Row | undefined {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((rows[middle]?.[1] ?? 0) < code) low = middle + 1
    else high = middle
  }
  const row = rows[low]
  return row !== undefined && row[0] <= code ? row : undefined
}

/** What a character is, if nobody sees it where it stands. `hasShapes`: the one before it has several, to choose from. */
function hiddenAt(code: number, hasShapes: boolean): string | undefined {
  const selector = rowOf(selectors, code)
  if (selector !== undefined) return hasShapes ? undefined : selector[2]
  return rowOf(hidden, code)?.[2]
}

function mark(code: number): string {
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
}

function* lookedAt(text: string): Generator<{ character: string; code: number; what: string | undefined }> {
  let hasShapes = false
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    const what = hiddenAt(code, hasShapes)
    hasShapes = what === undefined && rowOf(bases, code) !== undefined
    yield { character, code, what }
  }
}

/** A text in pieces: what can be seen, and a mark for each character that cannot. */
export function pieces(text: string): Piece[] {
  if (PLAIN.test(text)) return [{ text }]
  const found: Piece[] = []
  let [seen, marks] = ['', 0]
  const settle = () => {
    if (seen !== '') found.push({ text: seen })
    seen = ''
  }
  for (const { character, code, what } of lookedAt(text)) {
    if (what === undefined) seen += character
    else if (marks >= MARKS_MAX) seen += mark(code)
    else {
      settle()
      found.push({ text: mark(code), hidden: what })
      marks += 1
    }
  }
  settle()
  return found
}

/** Most of what is decided on: no tab, no blank beyond single ones between words, one line. */
const EVEN = /^(?:[\x21-\x7e]+(?: [\x21-\x7e]+)*)?$/

/** What is decided on, character by character: besides what is hidden, everything that could be taken for something else. A
    part of a line has no edges of its own. */
export function exactPieces(text: string, isPart = false): Piece[] {
  if (EVEN.test(text)) return [{ text }]
  const found: Piece[] = []
  let [seen, marks] = ['', 0]
  const add = (piece: Piece) => {
    if (marks >= MARKS_MAX) {
      seen += piece.text
      return
    }
    if (seen !== '') found.push({ text: seen })
    seen = ''
    found.push(piece)
    marks += 1
  }
  const looked = [...lookedAt(text)]
  const alike = PLAIN.test(text) ? null : lookalikes(looked.map(({ character }) => character))
  for (let at = 0; at < looked.length; at += 1) {
    const { character, code, what } = looked[at] ?? { character: '', code: 0, what: undefined }
    const like = alike?.get(at)
    if (what !== undefined) add({ text: mark(code), hidden: what })
    else if (like !== undefined) add({ text: character + mark(code), alike: like })
    else if (character === '\t') add({ text: '⇥\t', isBlank: true })
    else if (character === '\n') add({ text: '↵\n', isBlank: true })
    else if (character === ' ') {
      let end = at
      while (looked[end + 1]?.character === ' ') end += 1
      const isAtEdge = at === 0 || looked[at - 1]?.character === '\n' || end === looked.length - 1 || looked[end + 1]?.character === '\n'
      const isInner = isPart && (at === 0 || end === looked.length - 1)
      if (end > at || (isAtEdge && !isInner)) add({ text: '·'.repeat(end - at + 1), isBlank: true })
      else seen += ' '
      at = end
    } else seen += character
  }
  if (seen !== '') found.push({ text: seen })
  return found
}

/** For places that take only a string and have only one line: the tab's title, names for screen readers. */
export function visible(text: string): string {
  if (PLAIN.test(text) && !/[\n\t]/.test(text)) return text
  let shown = ''
  for (const { character, code, what } of lookedAt(text)) {
    shown += what !== undefined || character === '\n' || character === '\t' ? mark(code) : character
  }
  return shown
}

/** How many characters nobody would see, in a text or anywhere in a value, names of members included. */
export function countHidden(value: unknown): number {
  if (typeof value === 'string') return countIn(value)
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [name, member]) => sum + countHidden(name) + countHidden(member), 0)
}

function countIn(text: string): number {
  let count = 0
  if (!PLAIN.test(text)) for (const { what } of lookedAt(text)) if (what !== undefined) count += 1
  return count
}

/** How many characters look like others, in a text or anywhere in a value, names of members included. */
export function countAlike(value: unknown): number {
  if (typeof value === 'string') return PLAIN.test(value) ? 0 : lookalikes([...value]).size
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce((sum, [name, member]) => sum + countAlike(name) + countAlike(member), 0)
}

/** JSON for people, split so that no string in it can reorder what stands around it. */
export function jsonPieces(value: unknown): { text: string; isString: boolean }[] {
  const json = JSON.stringify(value, null, 2) ?? ''
  const found: { text: string; isString: boolean }[] = []
  let plain = ''
  for (const part of json.split(/("(?:[^"\\]|\\.)*")/)) {
    // Plain strings reorder nothing and stay with the rest: most values need one piece.
    if (PLAIN.test(part)) plain += part
    else {
      found.push({ text: `${plain}"`, isString: false }, { text: part.slice(1, -1), isString: true })
      plain = '"'
    }
  }
  if (plain !== '') found.push({ text: plain, isString: false })
  return found
}
