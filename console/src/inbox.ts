// The inbox as someone wants to read it: filtered, and in groups. Pure, so that it can be checked.
import type { ItemSummary } from './api'
import { riskOf, type Risk } from './outcomes'

export type Grouping = 'none' | 'workflow' | 'risk'
export const GROUPINGS: Grouping[] = ['none', 'workflow', 'risk']

export interface Wanted {
  q: string
  workflow: string
  risk: string
}

export interface Group {
  name: string
  items: ItemSummary[]
}

export function matches(item: ItemSummary, { q, workflow, risk }: Wanted): boolean {
  if (workflow !== '' && item.workflow.name !== workflow) return false
  if (risk !== '' && riskName(item) !== risk) return false
  const said = `${item.title}\n${item.id}\n${item.created_by.actor_id}\n${item.state}\n${item.workflow.name}`.toLowerCase()
  return q.toLowerCase().split(/\s+/).every((word) => said.includes(word))
}

export function riskName(item: ItemSummary): Risk | 'none' {
  return riskOf(item.risk) ?? 'none'
}

/** What is riskiest comes first; workflows in the order of their most urgent item. The order inside a group stays. */
export function grouped(items: ItemSummary[], by: Grouping): Group[] {
  if (by === 'none') return [{ name: '', items }]
  const groups = new Map<string, ItemSummary[]>()
  for (const item of items) {
    const name = by === 'workflow' ? item.workflow.name : riskName(item)
    groups.set(name, [...(groups.get(name) ?? []), item])
  }
  const found = [...groups].map(([name, items]) => ({ name, items }))
  const order = ['high', 'medium', 'low', 'other', 'none']
  return by === 'risk' ? found.sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name)) : found
}
