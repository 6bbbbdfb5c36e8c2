// The picture of a definition: states as boxes, and each rule as a label of its own between where it may be used and
// where it leads. Labels take part in the layout, so no line runs through one. Top down, in layers: states on even ones,
// rules on odd ones. Pure, so that it can be checked.
import type { Workflow } from './api'
import { mainLine } from './layout'

export interface Box {
  id: string
  kind: 'state' | 'rule' | 'timer' | 'bend'
  /** Of a state or an action. */
  name: string
  layer: number
  x: number
  y: number
  width: number
  height: number
}

export interface Line {
  points: [number, number][]
  kind: 'rule' | 'timer'
  /** Where the line leads into a state: at its beginning, at its end, or at neither. */
  head: 'start' | 'end' | null
}

export interface Flow {
  boxes: Box[]
  lines: Line[]
  width: number
  height: number
}

interface Step {
  name: string
  kind: 'rule' | 'timer'
  from: string[]
  to: string
}

interface Link {
  upper: string
  lower: string
  kind: 'rule' | 'timer'
  head: Line['head']
}

const STATE_HIGH = 32
const RULE_HIGH = 20
const GAP_X = 18
const GAP_Y = 30
const MARGIN = 16
const SWEEPS = 24
const PORT = 13

export function flowOf(workflow: Workflow, widthOf: (name: string, kind: Box['kind']) => number): Flow {
  const ranks = rank(workflow)
  const boxes = new Map<string, Box>()
  const add = (id: string, kind: Box['kind'], name: string, layer: number) => {
    const width = kind === 'bend' ? 8 : widthOf(name, kind)
    boxes.set(id, { id, kind, name, layer, x: 0, y: 0, width, height: kind === 'state' ? STATE_HIGH : RULE_HIGH })
    return id
  }
  for (const { name } of workflow.states) add(`state ${name}`, 'state', name, 2 * (ranks.get(name) ?? 0))
  const links = steps(workflow).flatMap((step, at) => linked(step, at, ranks, add))
  const { segments, lines } = bent(links, boxes, add)
  const layers = ordered([...boxes.values()], segments)
  place(layers, segments)
  return drawn(layers, lines, boxes)
}

/** One for each action and the state it leads to, whatever state it starts from. An action that changes no state is left out. */
function steps(workflow: Workflow): Step[] {
  const found = new Map<string, Step>()
  const add = (name: string, kind: Step['kind'], from: string[], to: string) => {
    const key = `${kind} ${name} ${to}`
    const step = found.get(key) ?? { name, kind, from: [], to }
    step.from = [...new Set([...step.from, ...from.filter((state) => state !== to)])]
    if (step.from.length > 0) found.set(key, step)
  }
  for (const { action, from, to } of workflow.transitions) if (to !== undefined) add(action, 'rule', from, to)
  for (const { from, to } of workflow.timers) add('', 'timer', from, to)
  return [...found.values()]
}

/** How far a state is from the beginning; ends are below everything that leads to them. */
function rank(workflow: Workflow): Map<string, number> {
  const all = steps(workflow)
  const ends = new Set(workflow.states.filter(({ kind }) => kind === 'terminal').map(({ name }) => name))
  const ranks = new Map([[workflow.initial, 0]])
  // The usual way is a straight line down, whatever short cuts there are.
  mainLine(workflow).forEach((name, at) => ends.has(name) || ranks.set(name, at))
  const queue = [...ranks.keys()]
  for (const name of queue) {
    for (const { to } of all.filter(({ from }) => from.includes(name))) {
      if (ends.has(to) || ranks.has(to)) continue
      ranks.set(to, (ranks.get(name) ?? 0) + 1)
      queue.push(to)
    }
  }
  for (const { name } of workflow.states) {
    if (ranks.has(name)) continue
    const before = all.filter(({ to }) => to === name).flatMap(({ from }) => from)
    ranks.set(name, 1 + Math.max(-1, ...before.map((state) => ranks.get(state) ?? 0)))
  }
  return ranks
}

/** A rule stands right above where it leads; right above where it comes from when it leads back; below when both are level. */
function linked(step: Step, at: number, ranks: Map<string, number>, add: (id: string, kind: Box['kind'], name: string, layer: number) => string): Link[] {
  const { name, kind, from, to } = step
  const target = ranks.get(to) ?? 0
  const rankOf = (state: string) => ranks.get(state) ?? 0
  const down = from.filter((state) => rankOf(state) < target)
  const up = from.filter((state) => rankOf(state) > target)
  const level = from.filter((state) => rankOf(state) === target)
  const links: Link[] = []
  if (down.length > 0) {
    const id = add(`${at} down`, kind, name, 2 * target - 1)
    links.push(...down.map((state): Link => ({ upper: `state ${state}`, lower: id, kind, head: null })))
    links.push({ upper: id, lower: `state ${to}`, kind, head: 'end' })
  }
  if (up.length > 0) {
    const id = add(`${at} up`, kind, name, 2 * Math.min(...up.map(rankOf)) - 1)
    links.push({ upper: `state ${to}`, lower: id, kind, head: 'start' })
    links.push(...up.map((state): Link => ({ upper: id, lower: `state ${state}`, kind, head: null })))
  }
  if (level.length > 0) {
    const id = add(`${at} level`, kind, name, 2 * target + 1)
    links.push(...level.map((state): Link => ({ upper: `state ${state}`, lower: id, kind, head: null })))
    links.push({ upper: `state ${to}`, lower: id, kind, head: 'start' })
  }
  return links
}

type Segment = [string, string]

/** A line over several layers bends on each of them, and has a place of its own there. */
function bent(links: Link[], boxes: Map<string, Box>, add: (id: string, kind: Box['kind'], name: string, layer: number) => string) {
  const segments: Segment[] = []
  const lines = links.map((link, at) => {
    const [first, last] = [boxes.get(link.upper)?.layer ?? 0, boxes.get(link.lower)?.layer ?? 0]
    const way = [link.upper]
    for (let layer = first + 1; layer < last; layer += 1) way.push(add(`bend ${at} ${layer}`, 'bend', '', layer))
    way.push(link.lower)
    way.slice(1).forEach((id, step) => segments.push([way[step] ?? '', id]))
    return { way, link }
  })
  return { segments, lines }
}

function neighbours(segments: Segment[], end: 0 | 1): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const segment of segments) found.set(segment[end], [...(found.get(segment[end]) ?? []), segment[1 - end] ?? ''])
  return found
}

/** Each layer by the middle of what its boxes are linked to, down and up again; the order with the fewest crossings is kept. */
function ordered(boxes: Box[], segments: Segment[]): Box[][] {
  const count = Math.max(...boxes.map((box) => box.layer)) + 1
  let layers = Array.from({ length: count }, (_, layer) => boxes.filter((box) => box.layer === layer))
  const [above, below] = [neighbours(segments, 1), neighbours(segments, 0)]
  let best = layers
  let fewest = Infinity
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0
    const places = new Map<string, number>()
    const note = (layer: Box[]) => layer.forEach((box, at) => places.set(box.id, at / Math.max(1, layer.length)))
    const next = [...layers]
    const order = isDown ? next.map((_, at) => at) : next.map((_, at) => count - 1 - at)
    for (const at of order) {
      const linked = isDown ? above : below
      const layer = next[at] ?? []
      const wish = new Map(layer.map((box, place) => {
        const others = (linked.get(box.id) ?? []).map((id) => places.get(id) ?? 0)
        return [box.id, others.length === 0 ? place / Math.max(1, layer.length) : mean(others)]
      }))
      next[at] = [...layer].sort((one, other) => (wish.get(one.id) ?? 0) - (wish.get(other.id) ?? 0))
      note(next[at])
    }
    layers = next
    const number = crossings(layers, segments)
    if (number < fewest) [fewest, best] = [number, layers]
  }
  return best
}

export function crossings(layers: Box[][], segments: Segment[]): number {
  const places = new Map(layers.flatMap((layer) => layer.map((box, at) => [box.id, at] as const)))
  const layerOf = new Map(layers.flatMap((layer) => layer.map((box) => [box.id, box.layer] as const)))
  const byLayer = new Map<number, [number, number][]>()
  for (const [upper, lower] of segments) {
    const layer = layerOf.get(upper) ?? 0
    byLayer.set(layer, [...(byLayer.get(layer) ?? []), [places.get(upper) ?? 0, places.get(lower) ?? 0]])
  }
  let number = 0
  for (const pairs of byLayer.values()) {
    pairs.forEach(([one, end], at) => {
      for (const [other, otherEnd] of pairs.slice(at + 1)) if ((one - other) * (end - otherEnd) < 0) number += 1
    })
  }
  return number
}

function mean(numbers: number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length
}

/** As near to what each is linked to as its neighbours allow. */
function place(layers: Box[][], segments: Segment[]): void {
  const boxes = new Map(layers.flat().map((box) => [box.id, box]))
  const [above, below] = [neighbours(segments, 1), neighbours(segments, 0)]
  for (const layer of layers) settle(layer, layer.map((_, at) => at))
  for (let round = 0; round < 2 * SWEEPS; round += 1) {
    const isDown = round % 2 === 0
    for (const layer of isDown ? layers : layers.toReversed()) {
      settle(layer, layer.map((box) => {
        const near = (isDown ? above : below).get(box.id) ?? []
        const others = (near.length > 0 ? near : [box.id]).map((id) => boxes.get(id)?.x ?? 0)
        return mean(others)
      }))
    }
  }
  const left = Math.min(...layers.flat().map((box) => box.x - box.width / 2))
  for (const box of boxes.values()) box.x += MARGIN - left
  let y = MARGIN
  for (const layer of layers) {
    const height = Math.max(...layer.map((box) => box.height), RULE_HIGH)
    for (const box of layer) box.y = y + height / 2
    y += height + GAP_Y
  }
}

/** The places nearest to the wanted ones in which nothing overlaps and the order stays: neighbours in conflict share the loss. */
function settle(layer: Box[], wanted: number[]): void {
  const offsets: number[] = []
  layer.forEach((box, at) => {
    const before = layer[at - 1]
    offsets.push(before === undefined ? 0 : (offsets[at - 1] ?? 0) + before.width / 2 + GAP_X + box.width / 2)
  })
  const groups: { sum: number; size: number }[] = []
  wanted.forEach((want, at) => {
    groups.push({ sum: want - (offsets[at] ?? 0), size: 1 })
    for (;;) {
      const [one, other] = [groups.at(-2), groups.at(-1)]
      if (one === undefined || other === undefined || one.sum / one.size <= other.sum / other.size) break
      groups.splice(-2, 2, { sum: one.sum + other.sum, size: one.size + other.size })
    }
  })
  let at = 0
  for (const { sum, size } of groups) {
    for (let member = 0; member < size; member += 1, at += 1) {
      const box = layer[at]
      if (box !== undefined) box.x = sum / size + (offsets[at] ?? 0)
    }
  }
}

function drawn(layers: Box[][], lines: { way: string[]; link: Link }[], boxes: Map<string, Box>): Flow {
  const shown = layers.flat()
  const width = Math.max(...shown.map((box) => box.x + box.width / 2)) + MARGIN
  const height = Math.max(...shown.map((box) => box.y + box.height / 2)) + MARGIN
  const ports = portsOf(lines.map(({ way }) => way), boxes)
  const paths = lines.map(({ way, link }, line): Line => {
    const points: [number, number][] = []
    way.forEach((id, at) => {
      const box = boxes.get(id)
      if (box === undefined) return
      // In at the top, out at the bottom; through a bend straight down.
      if (at > 0) points.push([ports.get(`${line} in ${id}`) ?? box.x, box.y - box.height / 2])
      if (at < way.length - 1) points.push([ports.get(`${line} out ${id}`) ?? box.x, box.y + box.height / 2])
    })
    return { points, kind: link.kind, head: link.head }
  })
  return { boxes: shown.filter((box) => box.kind !== 'bend'), lines: paths, width, height }
}

/** Lines that meet at a state end beside each other, in the order of where they come from: an arrow belongs to one of them. */
function portsOf(ways: string[][], boxes: Map<string, Box>): Map<string, number> {
  const sides = new Map<string, { key: string; box: Box; towards: number }[]>()
  const add = (key: string, side: string, id: string, other: string) => {
    const [box, end] = [boxes.get(id), boxes.get(other)]
    if (box?.kind !== 'state' || end === undefined) return
    sides.set(side, [...(sides.get(side) ?? []), { key, box, towards: end.x }])
  }
  ways.forEach((way, line) => {
    const [first = '', second = ''] = way
    const [last = '', before = ''] = [way.at(-1), way.at(-2)]
    add(`${line} out ${first}`, `bottom of ${first}`, first, second)
    add(`${line} in ${last}`, `top of ${last}`, last, before)
  })
  const ports = new Map<string, number>()
  for (const ends of sides.values()) {
    ends.sort((one, other) => one.towards - other.towards)
    ends.forEach(({ key, box }, at) => {
      const apart = Math.min(PORT, (box.width - 16) / Math.max(1, ends.length - 1))
      ports.set(key, box.x + (at - (ends.length - 1) / 2) * apart)
    })
  }
  return ports
}

/** Down, over and down again, without a corner. */
export function pathOf(points: [number, number][]): string {
  const [first, ...rest] = points
  if (first === undefined) return ''
  let [, y] = first
  let x = first[0]
  const parts = rest.map(([toX, toY]) => {
    const middle = (y + toY) / 2
    const part = toX === x ? `V${round(toY)}` : `C${round(x)} ${round(middle)} ${round(toX)} ${round(middle)} ${round(toX)} ${round(toY)}`
    ;[x, y] = [toX, toY]
    return part
  })
  return `M${round(first[0])} ${round(first[1])}${parts.join('')}`
}

function round(number: number): number {
  return Math.round(number * 10) / 10
}
