// A tab belongs to whoever confirmed their name in it, and to nobody else.
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Session as Me } from './api'
import type { Grant } from './provider'
import { session } from './session.svelte'

const PROVIDER = {
  issuer: 'https://login.test',
  authorization_endpoint: 'https://login.test/authorize',
  token_endpoint: 'https://login.test/token',
  client_id: 'console',
  resource: 'https://pilot.test',
  scope: '',
}
const CERTIFICATE: Grant = { token: null, expiresAt: null, refresh: null }
const TOKEN: Grant = { ...CERTIFICATE, token: 'x'.repeat(32) }
const ana: Me = { actor_id: 'ana', role: 'initiator' }
const ben: Me = { actor_id: 'ben', role: 'approver' }

type Answer = (response: Response | Error) => void
/** What was asked over the network and waits for an answer, oldest first. */
let asked: { path: string; answer: Answer }[] = []

// The client takes both when it is made; a browser would know where the page is from.
vi.stubGlobal('fetch', (request: Request | string) => {
  const { pathname } = new URL(typeof request === 'string' ? request : request.url)
  return new Promise<Response>((resolve, reject) => {
    const answer: Answer = (response) => (response instanceof Error ? reject(response) : resolve(response))
    asked.push({ path: pathname, answer })
  })
})
const PlainRequest = globalThis.Request
vi.stubGlobal('Request', class extends PlainRequest {
  constructor(url: string, init?: RequestInit) {
    super(new URL(url, 'https://pilot.test'), init)
  }
})
const { standing, whoIsShown } = await import('./api')

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) })
  const stored = new Map<string, string>()
  vi.stubGlobal('sessionStorage', {
    getItem: (name: string) => stored.get(name) ?? null,
    setItem: (name: string, value: string) => void stored.set(name, value),
    removeItem: (name: string) => void stored.delete(name),
    clear: () => stored.clear(),
  })
  vi.stubGlobal('navigator', {})
  asked = []
})

afterEach(() => {
  session.end('signed_out')
  vi.useRealTimers()
})

async function next(path: string): Promise<Answer> {
  await vi.waitFor(() => expect(asked.map((question) => question.path)).toContain(path))
  const [question] = asked.splice(asked.findIndex((question) => question.path === path), 1)
  return question?.answer ?? (() => {})
}

const granted = (token: string, refresh: string) =>
  Response.json({ access_token: token, token_type: 'Bearer', expires_in: 300, refresh_token: refresh })
const unknown = () => Response.json({ code: 'unauthenticated', status: 401, title: 'Unknown' }, { status: 401 })

/** Signed in at the provider, with half a minute left: the next look renews it. */
async function beginAtProvider(me: Me, token: string): Promise<void> {
  session.provider = PROVIDER
  await session.begin({ token, expiresAt: Date.now() + 300_000, refresh: `refresh-${token}` }, { ...me })
  sessionStorage.setItem('pilot.expires', String(Date.now() + 30_000))
}

/** As a page that was loaded again finds it: the storage of the tab, and nothing else. */
async function reload(answer: () => Response | Error): Promise<void> {
  session.me = null
  session.ending = null
  const resuming = session.resume(whoIsShown)
  const say = await next('/v1/session')
  expect(session.me).toBeNull()
  say(answer())
  await resuming
}

it('a sign-in is renewed for who is still there', async () => {
  await beginAtProvider(ana, 'ana-1')
  session.look()
  const answer = await next('/token')
  answer(granted('ana-2', 'refresh-ana-2'))
  await vi.waitFor(() => expect(session.authorization()).toBe('Bearer ana-2'))
  expect(sessionStorage.getItem('pilot.refresh')).toBe('refresh-ana-2')
})

it('a renewal that comes late is not stored into the session of someone else, who renews for themselves meanwhile', async () => {
  await beginAtProvider(ana, 'ana-1')
  session.look()
  const late = await next('/token')
  session.end('signed_out')
  await beginAtProvider(ben, 'ben-1')
  session.look()
  const own = await next('/token')
  late(granted('ana-2', 'refresh-ana-2'))
  await vi.advanceTimersByTimeAsync(0)
  expect(session.authorization()).toBe('Bearer ben-1')
  expect(sessionStorage.getItem('pilot.refresh')).toBe('refresh-ben-1')
  session.look()
  expect(asked).toEqual([])
  own(granted('ben-2', 'refresh-ben-2'))
  await vi.waitFor(() => expect(session.authorization()).toBe('Bearer ben-2'))
})

it('a renewal that fails late takes nothing from someone else', async () => {
  for (const trouble of [Response.json({ error: 'invalid_grant' }, { status: 400 }), new Error('no network')]) {
    await beginAtProvider(ana, 'ana-1')
    session.look()
    const late = await next('/token')
    session.end('signed_out')
    await beginAtProvider(ben, 'ben-1')
    late(trouble)
    await vi.advanceTimersByTimeAsync(0)
    expect(sessionStorage.getItem('pilot.refresh')).toBe('refresh-ben-1')
    session.look()
    expect(session.expiresLeft).toBeNull()
    expect(asked.splice(0)).toHaveLength(1)
    session.end('signed_out')
  }
})

it('after a reload the browser still shows the same certificate, and the session goes on', async () => {
  await session.begin(CERTIFICATE, ana)
  await reload(() => Response.json(ana))
  expect(session.me).toEqual(ana)
  expect(session.ending).toBeNull()
})

it('after a reload with another certificate, none, or another role nobody is shown', async () => {
  const answers = [() => Response.json(ben), unknown, () => Response.json({ ...ana, role: 'approver' })]
  for (const answer of answers) {
    await session.begin(CERTIFICATE, ana)
    await reload(answer)
    expect(session.me).toBeNull()
    expect(session.ending).toBe('other')
    expect(sessionStorage.getItem('pilot.actor')).toBeNull()
  }
})

it('after a reload nobody is shown on trust when the service cannot say whose certificate it is', async () => {
  for (const answer of [() => new Error('no network'), () => new Response('', { status: 503 })]) {
    await session.begin(CERTIFICATE, ana)
    await reload(answer)
    expect(session.me).toBeNull()
    expect(session.ending).toBe('unasked')
  }
})

it('after a reload with a token nothing has to be asked first', async () => {
  await session.begin(TOKEN, ana)
  session.me = null
  await session.resume(whoIsShown)
  expect(session.me).toEqual(ana)
  expect(asked).toEqual([])
})

it('a session ends when the service takes its owner for someone else, or for another role', async () => {
  for (const grant of [TOKEN, CERTIFICATE]) {
    for (const other of [ben, { ...ben, role: ana.role }, { ...ana, role: ben.role }]) {
      await session.begin(grant, ana)
      const checking = session.check(standing)
      const answer = await next('/v1/session')
      answer(Response.json(other))
      await checking
      expect(session.me).toBeNull()
      expect(session.ending).toBe('other')
    }
  }
})

it('a session goes on when the service says who was confirmed, with the end it gives', async () => {
  await session.begin(CERTIFICATE, ana)
  const checking = session.check(standing)
  const answer = await next('/v1/session')
  answer(Response.json(ana, { headers: { 'Credential-Expires-At': '2026-02-01T00:00:00Z' } }))
  await checking
  expect(session.me).toBe(ana)
  expect(session.endsAt).toBe(Date.UTC(2026, 1, 1))
})

it('an answer that comes late says nothing about someone who signed in since', async () => {
  await session.begin(TOKEN, ana)
  const checking = session.check(standing)
  const answer = await next('/v1/session')
  session.end('signed_out')
  await session.begin(TOKEN, ben)
  answer(Response.json(ana, { headers: { 'Credential-Expires-At': '2026-02-01T00:00:00Z' } }))
  await checking
  expect(session.me).toBe(ben)
  expect(session.endsAt).toBeNull()
})

it.each(['signed_out', 'idle'] as const)('%s ends the tokens at the provider too', async (why) => {
  session.provider = { ...PROVIDER, revocation_endpoint: 'https://login.test/revoke' }
  await session.begin({ token: 't'.repeat(40), expiresAt: Date.now() + 600_000, refresh: 'r1' }, ana)
  session.end(why)
  expect(asked.map((question) => question.path)).toEqual(['/revoke', '/revoke'])
  expect(sessionStorage.getItem('pilot.token')).toBeNull()
})

it('a copy of a tab, a token that was typed in and a provider without a place for it revoke nothing', async () => {
  const grant: Grant = { token: 't'.repeat(40), expiresAt: Date.now() + 600_000, refresh: 'r1' }
  session.provider = { ...PROVIDER, revocation_endpoint: 'https://login.test/revoke' }
  await session.begin(grant, ana)
  session.end('copied')
  await session.begin(TOKEN, ana)
  session.end('signed_out')
  session.provider = PROVIDER
  await session.begin(grant, ana)
  session.end('signed_out')
  expect(asked).toEqual([])
})
