// The pictures of the workflows that come with the service: nothing lies on anything else.
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Workflow } from './api'
import { flowOf, pathOf, type Box } from './flow'

/** As much of a definition as a picture needs. */
function definition(name: string): Workflow {
  const source = readFileSync(`../workflows/${name}.toml`, 'utf8')
  const sections = (kind: string) => source.split(`\n[[${kind}]]\n`).slice(1).map((rest) => rest.split(/\n\[/)[0] ?? '')
  const value = (section: string, member: string) => new RegExp(`^${member} = "(.*)"$`, 'm').exec(section)?.[1]
  const list = (section: string, member: string) => [...(new RegExp(`^${member} = \\[(.*)\\]$`, 'm').exec(section)?.[1] ?? '').matchAll(/"(.*?)"/g)].map(([, text]) => text ?? '')
  const transitions = sections('transition').map((section) => {
    const to = value(section, 'to')
    return { action: value(section, 'action'), from: list(section, 'from'), roles: list(section, 'roles'), ...(to === 'same' ? {} : { to }) }
  })
  return {
    initial: value(source, 'initial'),
    states: sections('state').map((section) => ({ name: value(section, 'name'), kind: value(section, 'kind') })),
    transitions,
    timers: sections('timer').map((section) => ({ from: list(section, 'from'), to: value(section, 'to') })),
  } as unknown as Workflow
}

const widthOf = (name: string, kind: Box['kind']) => (kind === 'timer' ? 110 : name.length * 7.4 + (kind === 'state' ? 40 : 16))

it.each(['controlled-operation', 'emergency-operation'])('in the picture of %s nothing lies on a box and no line runs through one', (name) => {
  const workflow = definition(name)
  expect(workflow.states.length).toBeGreaterThan(5)
  const { boxes, lines, width, height } = flowOf(workflow, widthOf)
  expect(boxes.filter((box) => box.kind === 'state').map((box) => box.name).sort()).toEqual(workflow.states.map((state) => state.name).sort())
  const edges = (box: Box) => ({ left: box.x - box.width / 2, right: box.x + box.width / 2, top: box.y - box.height / 2, bottom: box.y + box.height / 2 })
  boxes.forEach((one, at) => {
    for (const other of boxes.slice(at + 1)) {
      const [a, b] = [edges(one), edges(other)]
      expect(a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom, `${one.name} on ${other.name}`).toBe(false)
    }
  })
  for (const { points } of lines) {
    points.slice(1).forEach(([x, y], at) => {
      const [, before] = points[at] ?? [0, 0]
      // Between layers there are no boxes; beside them a line only goes straight down.
      for (const box of boxes) {
        const { left, right, top, bottom } = edges(box)
        expect(x > left && x < right && before <= top + 0.1 && y >= bottom - 0.1, `a line through ${box.name}`).toBe(false)
      }
    })
  }
  // It fits a page: as wide as a screen at most.
  expect(width).toBeLessThan(1_700)
  expect(height).toBeLessThan(1_200)
})

it('rules that lead back or stay level have their place too', () => {
  const rule = (action: string, from: string, to: string) => ({ action, from: [from], to, roles: [] })
  const workflow = {
    initial: 'a',
    states: ['a', 'b', 'c', 'd'].map((name) => ({ name, kind: name === 'd' ? 'terminal' : 'open' })),
    transitions: [rule('on', 'a', 'b'), rule('aside', 'a', 'c'), rule('over', 'b', 'c'), rule('back', 'c', 'a'), rule('end', 'b', 'd'), { action: 'stay', from: ['a'], roles: [] }],
    timers: [],
  } as unknown as Workflow
  const { boxes, lines } = flowOf(workflow, widthOf)
  expect(boxes.filter((box) => box.kind === 'rule').map((box) => box.name).sort()).toEqual(['aside', 'back', 'end', 'on', 'over'])
  expect(lines.filter((line) => line.head !== null)).toHaveLength(5)
  expect(pathOf([[0, 0], [0, 10], [5, 20]])).toBe('M0 0V10C0 15 5 15 5 20')
})
