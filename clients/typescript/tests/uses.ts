// Compiles only if what is right is accepted and each line marked as wrong is refused.
import type { ActionRequest, Entry, Item, NewItem, Problem, Role, WholeItem, paths } from 'pilot-types'

export const approval: ActionRequest = { action: 'approve', content_digest: 'sha256:0' }
export const role: Role = 'approver'
export const state = (item: Item): string => item.state
export const mayApprove = (item: WholeItem): boolean => item.actions.includes('approve')
export const about = (entry: Entry): string | undefined => entry.item
export const isMine = (problem: Problem): boolean => problem.code === 'separation_of_duties'
export type Answer = paths['/v1/items/{id}']['get']['responses'][200]['content']['application/json']

// @ts-expect-error There are five roles, and this is not one of them.
export const superuser: Role = 'superuser'
// @ts-expect-error A request has no member for an actor.
export const forged: ActionRequest = { action: 'approve', actor_id: 'ana' }
// @ts-expect-error An item needs a workflow.
export const untold: NewItem = { title: 'Restart' }
// @ts-expect-error Codes are a closed list.
export const unknown = (problem: Problem): boolean => problem.code === 'no_such_code'
