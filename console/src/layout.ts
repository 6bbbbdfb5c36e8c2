// The picture of an item's path: the way work usually goes down the left, and beside it whatever else was or can be
// reached from here.
import type { Workflow } from './api'
import { nextSteps } from './rules'

export interface Node {
  name: string
  column: number
  row: number
  isVisited: boolean
  isNow: boolean
  isNext: boolean
}

export interface Edge {
  from: Node
  to: Node
  kind: 'taken' | 'next' | 'faint'
}

export interface Picture {
  nodes: Node[]
  edges: Edge[]
  rows: number
  columns: number
}

/** From the start to where something happens in the world, and from there to the nearest end. */
export function mainLine(workflow: Workflow): string[] {
  const effects = new Set(workflow.states.filter((state) => state.kind === 'effect').map((state) => state.name))
  const ends = new Set(workflow.states.filter((state) => state.kind === 'terminal').map((state) => state.name))
  const first = shortest(workflow, workflow.initial, (name) => effects.has(name))
  const last = first.at(-1) ?? workflow.initial
  return [...first, ...shortest(workflow, last, (name) => ends.has(name)).slice(1)]
}

function shortest(workflow: Workflow, from: string, isThere: (name: string) => boolean): string[] {
  const ways = [[from]]
  const seen = new Set([from])
  for (const way of ways) {
    const here = way.at(-1) ?? from
    if (isThere(here)) return way
    for (const { action, to } of nextSteps(workflow, here)) {
      if (action === null || seen.has(to)) continue
      seen.add(to)
      ways.push([...way, to])
    }
  }
  return [from]
}

export function picture(workflow: Workflow, path: string[]): Picture {
  const now = path.at(-1) ?? workflow.initial
  const next = new Set(nextSteps(workflow, now).map((step) => step.to))
  const line = mainLine(workflow)
  const nodes = new Map<string, Node>()
  const place = (name: string, column: number, row: number) =>
    nodes.set(name, { name, column, row, isVisited: path.includes(name), isNow: name === now, isNext: next.has(name) })
  line.forEach((name, row) => place(name, 0, row))
  placeBeside(nodes, place, path, now, next)
  return { ...size(nodes), nodes: [...nodes.values()], edges: edges(nodes, line, path, now, next) }
}

/** Visited states stand beside where they were reached from, possible ones beside the present one; each on a row of its own. */
function placeBeside(
  nodes: Map<string, Node>,
  place: (name: string, column: number, row: number) => void,
  path: string[],
  now: string,
  next: Set<string>,
): void {
  const taken = new Set<number>()
  const add = (name: string, beside: string) => {
    if (nodes.has(name)) return
    let row = nodes.get(beside)?.row ?? 0
    while (taken.has(row)) row += 1
    taken.add(row)
    place(name, 1, row)
  }
  path.forEach((name, at) => add(name, path[at - 1] ?? name))
  for (const name of next) add(name, now)
}

function size(nodes: Map<string, Node>): { rows: number; columns: number } {
  const all = [...nodes.values()]
  return { rows: Math.max(...all.map((node) => node.row)) + 1, columns: Math.max(...all.map((node) => node.column)) + 1 }
}

function edges(nodes: Map<string, Node>, line: string[], path: string[], now: string, next: Set<string>): Edge[] {
  const found = new Map<string, Edge>()
  const add = (from: string | undefined, to: string | undefined, kind: Edge['kind']) => {
    const [start, end] = [nodes.get(from ?? ''), nodes.get(to ?? '')]
    const name = `${from} ${to}`
    if (start !== undefined && end !== undefined && !found.has(name)) found.set(name, { from: start, to: end, kind })
  }
  path.slice(1).forEach((to, at) => add(path[at], to, 'taken'))
  for (const to of next) add(now, to, 'next')
  line.slice(1).forEach((to, at) => add(line[at], to, 'faint'))
  // What matters is drawn last, above the rest.
  const order = { faint: 0, next: 1, taken: 2 }
  return [...found.values()].sort((one, other) => order[one.kind] - order[other.kind])
}
