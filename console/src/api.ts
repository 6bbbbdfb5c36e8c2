// The same API as everyone's. What the service refuses becomes a `Refused`; what it never said, an `Unreachable`.
import createClient from 'openapi-fetch'
import type {
  ActionRequest,
  ActorInfo,
  ConsoleSettings,
  Content,
  CredentialInfo,
  Figures,
  Item,
  ItemPage,
  ItemsQuery,
  Node,
  Problem,
  Proofs,
  Revocation,
  Schemas,
  Session,
  Transition,
  Webhook,
  WholeItem,
  Workflow,
  WorkflowSummary,
  paths,
} from 'pilot-types'
import { clock } from './clock.svelte'
import { connection } from './connection.svelte'
import { inWords, summaryInWords } from './definition'
import { session, type Standing } from './session.svelte'

export type * from 'pilot-types'

export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.title)
  }
}

export class Unreachable extends Error {}

const client = createClient<paths>({ cache: 'no-store', redirect: 'error' })
client.use({
  onRequest({ request }) {
    const authorization = session.authorization()
    if (authorization !== null && !request.headers.has('Authorization')) {
      request.headers.set('Authorization', authorization)
    }
  },
})

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

async function settled<T>(pending: Promise<Answer<T>>, endsSession = true): Promise<T> {
  let answer: Answer<T>
  try {
    answer = await pending
  } catch {
    connection.lost()
    throw new Unreachable()
  }
  clock.hear(answer.response.headers.get('Date'))
  if (answer.response.ok) return answer.data as T
  if (answer.response.status === 401 && endsSession) session.refused()
  throw new Refused(asProblem(answer.error, answer.response))
}

/** Something between us and the service may answer too, and not as a problem. */
function asProblem(error: unknown, response: Response): Problem {
  if (typeof error === 'object' && error !== null && 'code' in error) return error as Problem
  const title = response.statusText || String(response.status)
  const request_id = response.headers.get('X-Request-Id') ?? ''
  return { type: '', title, status: response.status, detail: '', code: 'internal', request_id }
}

export function newKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Before sign-in: with a token that is kept nowhere, or without one, when the browser shows a certificate. */
export function whoIs(token: string | null): Promise<Session> {
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` }
  return settled(client.GET('/v1/session', { headers }), false)
}

/** Whose certificate the browser shows now; nobody's when the service knows none. */
export async function whoIsShown(): Promise<Session | null> {
  try {
    return await whoIs(null)
  } catch (error) {
    if (error instanceof Refused && error.problem.status === 401) return null
    throw error
  }
}

/** Whom the service takes us for, and when the credential in use ends. */
export async function standing(): Promise<Standing> {
  let end: string | null = null
  const asked = client.GET('/v1/session').then((answer) => {
    end = answer.response.headers.get('Credential-Expires-At')
    return answer
  })
  return { me: await settled(asked), end }
}

export function settings(): Promise<ConsoleSettings> {
  return settled(client.GET('/console.json'))
}

/** Lists never carry what is decided on, only what items are recognised by. */
export function listItems(query: ItemsQuery): Promise<ItemPage> {
  return settled(client.GET('/v1/items', { params: { query: { ...query, view: 'summary' } } })) as Promise<ItemPage>
}

export function getFigures(days: number): Promise<Figures> {
  return settled(client.GET('/v1/figures', { params: { query: { days } } }))
}

export function getItem(id: string): Promise<WholeItem> {
  return settled(client.GET('/v1/items/{id}', { params: { path: { id } } }))
}

/** A content that the item has or had. */
export function getContent(id: string, digest: string): Promise<Content> {
  return settled(client.GET('/v1/items/{id}/contents/{digest}', { params: { path: { id, digest } } }))
}

/** Remembers, for this person and wherever they sign in, that they looked at this content. */
export function putLook(id: string, content_digest: string): Promise<unknown> {
  return settled(client.PUT('/v1/items/{id}/look', { params: { path: { id } }, body: { content_digest } }))
}

export function createItem(body: Schemas['NewItem'], key: string): Promise<Item> {
  return settled(client.POST('/v1/items', { body, params: { header: { 'Idempotency-Key': key } } }))
}

export function editItem(id: string, version: number, body: Schemas['ItemPatch']): Promise<Item> {
  const params = { path: { id }, header: { 'If-Match': `"${version}"` } }
  const headers = { 'Content-Type': 'application/merge-patch+json' }
  return settled(client.PATCH('/v1/items/{id}', { params, headers, body }))
}

export function takeAction(id: string, version: number, body: ActionRequest, key: string): Promise<Transition> {
  const params = { path: { id }, header: { 'If-Match': `"${version}"`, 'Idempotency-Key': key } }
  return settled(client.POST('/v1/items/{id}/transitions', { params, body }))
}

export function addComment(id: string, text: string, key: string): Promise<Transition> {
  const params = { path: { id }, header: { 'Idempotency-Key': key } }
  return settled(client.POST('/v1/items/{id}/comments', { params, body: { text } }))
}

export async function listHistory(id: string): Promise<Transition[]> {
  const entries: Transition[] = []
  let cursor: string | undefined
  do {
    const query = cursor === undefined ? {} : { cursor }
    const page = await settled(client.GET('/v1/items/{id}/history', { params: { path: { id }, query } }))
    entries.push(...page.history)
    cursor = page.next ?? undefined
  } while (cursor !== undefined)
  return entries
}

export async function listWorkflows(): Promise<WorkflowSummary[]> {
  return (await settled(client.GET('/v1/workflows'))).workflows.map(summaryInWords)
}

const definitions = new Map<string, Promise<Workflow>>()

/** A digest names one definition for ever, so it is asked for once. */
export function getWorkflow(name: string, digest?: string): Promise<Workflow> {
  const load = () =>
    settled(client.GET('/v1/workflows/{name}', { params: { path: { name }, query: digest ? { digest } : {} } })).then(inWords)
  if (digest === undefined) return load()
  const known = definitions.get(digest)
  if (known !== undefined) return known
  const loading = load()
  definitions.set(digest, loading)
  loading.catch(() => definitions.delete(digest))
  return loading
}

export async function listActors(): Promise<ActorInfo[]> {
  return (await settled(client.GET('/v1/actors'))).actors
}

export async function listWebhooks(): Promise<Webhook[]> {
  return (await settled(client.GET('/v1/webhooks'))).webhooks
}

export async function listNodes(): Promise<Node[]> {
  return (await settled(client.GET('/v1/nodes'))).nodes
}

export async function listCredentials(): Promise<CredentialInfo[]> {
  return (await settled(client.GET('/v1/credentials'))).credentials
}

export function revokeCredential(id: string, comment: string, key: string): Promise<Revocation> {
  const params = { path: { id }, header: { 'Idempotency-Key': key } }
  const body = comment === '' ? {} : { comment }
  return settled(client.POST('/v1/credentials/{id}/revocation', { params, body }))
}

export function listEvents(after: number | null, limit: number): Promise<Schemas['Events']> {
  const query = after === null ? { limit } : { after, limit }
  return settled(client.GET('/v1/events', { params: { query } })) as Promise<Schemas['Events']>
}

/** One page after the other: each leads to a checkpoint of its own. */
export async function getProofs(id: string): Promise<Proofs[]> {
  const pages: Proofs[] = []
  let after: number | undefined
  do {
    const query = after === undefined ? {} : { after }
    const page: Proofs = await settled(client.GET('/v1/items/{id}/proof', { params: { path: { id }, query } }))
    pages.push(page)
    after = page.next ?? undefined
  } while (after !== undefined)
  return pages
}

export function getCheckpoint(): Promise<string> {
  return settled<unknown>(client.GET('/v1/log/checkpoint', { parseAs: 'text' })) as Promise<string>
}

/** The newest, whether or not witnesses have signed it yet. */
export function getNewestCheckpoint(): Promise<string> {
  return settled<unknown>(client.GET('/v1/log/checkpoint', { params: { query: { cosignatures: 'any' } }, parseAs: 'text' })) as Promise<string>
}

/** Hashes of the log's tree, one after the other. */
export async function getTile(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await open(`/v1/log/tile/${path}`, {}, new AbortController().signal)
  return new Uint8Array(await answer.arrayBuffer())
}

/** An answer as a stream, for feeds and downloads. */
export async function open(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
  const authorization = session.authorization()
  let response: Response
  try {
    const all = authorization === null ? headers : { ...headers, Authorization: authorization }
    response = await fetch(path, { headers: all, signal, cache: 'no-store', redirect: 'error' })
  } catch (error) {
    if (signal.aborted) throw error
    await connection.suspect()
    throw new Unreachable()
  }
  if (response.ok) return response
  if (response.status === 401) session.refused()
  throw new Refused(asProblem(await response.json().catch(() => null), response))
}
