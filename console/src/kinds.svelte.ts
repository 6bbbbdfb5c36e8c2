// Definitions of the items on the screen, fetched once each: they say which states are ends and which are effects.
import { SvelteMap } from 'svelte/reactivity'
import { getWorkflow, type ItemSummary, type Workflow } from './api'
import type { Kind } from './outcomes'
import { stateOf } from './rules'
import { session } from './session.svelte'
import { words } from './text'

const known = new SvelteMap<string, Workflow>()
/** Titles by id: an entry of the ledger has only a digest in their place. */
export const titles = new SvelteMap<string, string>()

export function learn(items: Pick<ItemSummary, 'id' | 'title' | 'workflow'>[]): void {
  for (const { id, title } of items) titles.set(id, title)
  for (const { name, digest } of new Map(items.map((item) => [item.workflow.digest, item.workflow])).values()) {
    if (known.has(digest)) continue
    getWorkflow(name, digest).then(
      (workflow) => known.set(digest, workflow),
      () => {},
    )
  }
}

session.onEnd(() => titles.clear())

/** What people call a workflow; its name until the definition is there. */
export function workflowTitle(workflow: ItemSummary['workflow']): string {
  return known.get(workflow.digest)?.title ?? words(workflow.name.replaceAll('-', '_'))
}

export function kindOf(item: Pick<ItemSummary, 'workflow' | 'state' | 'waits_for'>): Kind {
  const workflow = known.get(item.workflow.digest)
  const kind = workflow && stateOf(workflow, item.state)?.kind
  return kind ?? (item.waits_for.length === 0 ? 'terminal' : 'open')
}
