// What can be found from anywhere: screens, items and commands, and which of them fit what was typed. Pure.

export interface Choice {
  /** Stable while the list changes, and fit for an element's id. */
  id: string
  label: string
  /** What stands behind the label in small letters. */
  more?: string
  run: () => void
}

export interface Section {
  name: string
  choices: Choice[]
}

/** Every word begins a word of the label, in any order: `ne it` finds `New item`. */
export function fits(label: string, typed: string): boolean {
  const parts = label.toLowerCase().split(/[^\p{L}\p{N}]+/u)
  const wanted = typed.toLowerCase().split(/\s+/).filter((word) => word !== '')
  return wanted.every((word) => parts.some((part) => part.startsWith(word)) || label.toLowerCase().includes(word))
}

export function narrowed(sections: Section[], typed: string): Section[] {
  return sections
    .map(({ name, choices }) => ({ name, choices: choices.filter(({ label, more }) => fits(`${label} ${more ?? ''}`, typed)) }))
    .filter(({ choices }) => choices.length > 0)
}

/** The next one in a direction, round and round. */
export function step(number: number, at: number, by: number): number {
  return number === 0 ? -1 : (at + by + number) % number
}
