// JSON as the service reads it: what two readers could understand differently is refused, with its place, before it is
// sent. `JSON.parse` alone would quietly keep the last of two members with one name, and round a long number.

export interface JsonFault {
  kind: 'syntax' | 'end' | 'duplicate' | 'beyond' | 'digits' | 'character' | 'deep'
  line: number
  column: number
  /** The name, the number or the character that is meant. */
  what: string
  /** The line of the first of two, or the number as it would be stored. */
  other: string
}

export type StrictRead = { value: unknown } | { fault: JsonFault }

/** Far more than the service takes, and far less than would exhaust the stack. */
const DEPTH_MAX = 500
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const QUOTE = 0x22
const BACKSLASH = 0x5c
const BLANK = /[ \t\n\r]*/y

class Stop extends Error {
  constructor(readonly fault: JsonFault) {
    super(fault.kind)
  }
}

export function readStrictly(text: string): StrictRead {
  try {
    new Scan(text).whole()
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    if (error instanceof Stop) return { fault: error.fault }
    throw error
  }
}

class Scan {
  #at = 0
  #depth = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  whole(): void {
    this.#value()
    this.#blank()
    if (this.#at < this.#text.length) this.#unexpected()
  }

  #value(): void {
    this.#blank()
    const first = this.#text[this.#at]
    if (first === '{') this.#inside('}', () => this.#members())
    else if (first === '[') this.#inside(']', () => this.#elements())
    else if (first === '"') this.#string()
    else if (first === '-' || (first !== undefined && first >= '0' && first <= '9')) this.#number()
    else this.#word()
  }

  #inside(end: string, read: () => void): void {
    this.#depth += 1
    if (this.#depth > DEPTH_MAX) this.#stop('deep', this.#at)
    this.#at += 1
    this.#blank()
    if (this.#text[this.#at] === end) this.#at += 1
    else read()
    this.#depth -= 1
  }

  #members(): void {
    const known = new Map<string, number>()
    do {
      this.#blank()
      const start = this.#at
      if (this.#text[start] !== '"') this.#unexpected()
      const name = this.#string()
      const before = known.get(name)
      if (before !== undefined) this.#stop('duplicate', start, name, String(this.#place(before).line))
      known.set(name, start)
      this.#blank()
      this.#take(':')
      this.#value()
    } while (this.#goesOn('}'))
  }

  #elements(): void {
    do this.#value()
    while (this.#goesOn(']'))
  }

  #goesOn(end: string): boolean {
    this.#blank()
    if (this.#text[this.#at] === ',') {
      this.#at += 1
      return true
    }
    this.#take(end)
    return false
  }

  #string(): string {
    const start = this.#at
    this.#at += 1
    // By hand: a pattern would need room that grows with the text.
    for (let code = this.#code(); code !== QUOTE; code = this.#code()) {
      if (Number.isNaN(code)) this.#stop('end', start)
      if (code < 0x20) this.#unexpected()
      if (code !== BACKSLASH) this.#at += 1
      else if (this.#match(ESCAPE) === null) this.#unexpected()
    }
    this.#at += 1
    const value = JSON.parse(this.#text.slice(start, this.#at)) as string
    // The service stores neither half a character nor U+0000.
    const bad = /\p{Surrogate}|\u0000/u.exec(value)
    if (bad !== null) this.#stop('character', start, `U+${bad[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`)
    return value
  }

  #code(): number {
    return this.#text.charCodeAt(this.#at)
  }

  #number(): void {
    const start = this.#at
    const found = this.#match(NUMBER)
    if (found === null) return this.#unexpected()
    const value = Number(found)
    if (Math.abs(value) > Number.MAX_SAFE_INTEGER) this.#stop('beyond', start, found)
    if (decimal(found) !== decimal(String(value))) this.#stop('digits', start, found, String(value))
  }

  #word(): void {
    if (this.#match(/true|false|null/y) === null) this.#unexpected()
  }

  #take(sign: string): void {
    if (this.#text[this.#at] !== sign) this.#unexpected()
    this.#at += 1
  }

  #blank(): void {
    this.#match(BLANK)
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    if (found === undefined) return null
    this.#at += found.length
    return found
  }

  #unexpected(): never {
    const point = this.#text.codePointAt(this.#at)
    if (point === undefined) this.#stop('end', this.#at)
    this.#stop('syntax', this.#at, String.fromCodePoint(point))
  }

  #stop(kind: JsonFault['kind'], at: number, what = '', other = ''): never {
    throw new Stop({ kind, ...this.#place(at), what, other })
  }

  #place(at: number): { line: number; column: number } {
    const before = this.#text.slice(0, at)
    const start = before.lastIndexOf('\n') + 1
    return { line: before.split('\n').length, column: [...before.slice(start)].length + 1 }
  }
}

/** The digits that count and where the point is: `1.50e2` and `150` are one number. */
function decimal(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  const short = digits.replace(/0+$/, '')
  return short === '' ? '0' : `${short}e${Number(exponent) - fraction.length + digits.length - short.length}`
}
