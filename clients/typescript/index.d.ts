// Short names for what the API takes and answers. `openapi.d.ts` is generated from the API's document by
// `cargo xtask console api`; the console uses these very files.
import type { components, operations } from './openapi.js'

export type { components, operations, paths } from './openapi.js'

export type Schemas = components['schemas']

export type Item = Schemas['Item']
export type WholeItem = Schemas['WholeItem']
export type ItemSummary = Schemas['ItemSummary']
export type ItemPage = Schemas['ItemSummaries']
export type ItemsQuery = NonNullable<operations['list_items']['parameters']['query']>
export type Sort = NonNullable<ItemsQuery['sort']>
export type Content = Schemas['Content']
export type Transition = Schemas['Transition']
export type Entry = Schemas['Entry']
export type Proofs = Schemas['Proofs']
/** What an action would do if this caller took it now. */
export type Effect = WholeItem['effects'][string]

export type NewItem = Schemas['NewItem']
export type ActionRequest = Schemas['Action']

/** RFC 9457. `code` is stable; `title` and `detail` are for people. */
export type Problem = Schemas['Problem']
export type Code = Schemas['Code']

export type Session = Schemas['Session']
export type Role = Schemas['Role']
export type ActorInfo = Schemas['ActorInfo']
export type CredentialInfo = Schemas['CredentialInfo']
export type Revocation = Schemas['Revocation']

export type Workflow = Schemas['Workflow']
export type WorkflowSummary = Schemas['WorkflowSummary']
export type Node = Schemas['Node']
export type Webhook = Schemas['Webhook']
export type Figures = Schemas['Figures']

export type ConsoleSettings = Schemas['ConsoleSettings']
export type Mechanism = ConsoleSettings['mechanism']
export type Colour = ConsoleSettings['colour']
