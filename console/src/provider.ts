// Signing in at the organisation's identity provider: a code, proven to be ours (PKCE), becomes a token. Only the tab
// that sent someone there takes them back.
import type { Schemas } from 'pilot-types'

export type Provider = Schemas['SignIn']

/** What one signs in with: a token, until when, and sometimes the means to renew it. */
export interface Grant {
  /** Nothing when the browser shows a certificate instead. */
  token: string | null
  /** Milliseconds since 1970, by this machine's clock; nothing when the provider does not say. */
  expiresAt: number | null
  refresh: string | null
}

/** What came back in the address, taken out of it before anything else sees it. */
export interface Return {
  query: URLSearchParams
  sent: Sent | null
}

interface Sent {
  state: string
  verifier: string
  address: string
}

export type Trouble = 'denied' | 'stale' | 'refused' | 'unreachable'

export class ProviderError extends Error {
  constructor(readonly trouble: Trouble) {
    super(trouble)
  }
}

const SENT = 'pilot.sign-in'
const RETURN_PATH = '/console/signed-in'

/** Sends the person to the provider. What has to be known on the way back waits in this tab. */
export async function leaveFor(provider: Provider, address: string): Promise<void> {
  const sent: Sent = { state: random(), verifier: random(), address }
  sessionStorage.setItem(SENT, JSON.stringify(sent))
  const url = new URL(provider.authorization_endpoint)
  const query: Record<string, string> = {
    response_type: 'code',
    client_id: provider.client_id,
    redirect_uri: location.origin + RETURN_PATH,
    state: sent.state,
    code_challenge: await challengeOf(sent.verifier),
    code_challenge_method: 'S256',
    resource: provider.resource,
    ...(provider.scope === '' ? {} : { scope: provider.scope }),
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  location.assign(url)
}

/** Nothing when nobody comes back from the provider. The code is out of the address and of the history afterwards. */
export function takeReturn(): Return | null {
  if (location.pathname !== RETURN_PATH) return null
  const query = new URLSearchParams(location.search)
  const stored = sessionStorage.getItem(SENT)
  sessionStorage.removeItem(SENT)
  const sent = stored === null ? null : (JSON.parse(stored) as Sent)
  history.replaceState(null, '', sent?.address ?? '/')
  return { query, sent }
}

export async function redeem(provider: Provider, { query, sent }: Return): Promise<Grant> {
  // A code that this tab did not ask for may be someone else's: whoever used it would act in their name.
  if (sent === null || query.get('state') !== sent.state) throw new ProviderError('stale')
  const issuer = query.get('iss')
  if (issuer !== null && issuer !== provider.issuer) throw new ProviderError('stale')
  const code = query.get('code')
  if (query.has('error') || code === null) throw new ProviderError('denied')
  return ask(provider, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: location.origin + RETURN_PATH,
    code_verifier: sent.verifier,
  })
}

export function renew(provider: Provider, refresh: string): Promise<Grant> {
  return ask(provider, { grant_type: 'refresh_token', refresh_token: refresh })
}

/** Ends tokens at the provider (RFC 7009), where it has a place for that. Nobody waits for it: signing out here must not
    depend on anyone else, and the page may be gone before the answer comes. */
export function revoke(provider: Provider, tokens: Record<'refresh_token' | 'access_token', string | null>): void {
  if (provider.revocation_endpoint === undefined) return
  for (const [token_type_hint, token] of Object.entries(tokens)) {
    if (token === null) continue
    const body = new URLSearchParams({ token, token_type_hint, client_id: provider.client_id })
    const request: RequestInit = { method: 'POST', body, cache: 'no-store', credentials: 'omit', redirect: 'error', keepalive: true }
    fetch(provider.revocation_endpoint, request).catch(() => undefined)
  }
}

async function ask(provider: Provider, form: Record<string, string>): Promise<Grant> {
  const body = new URLSearchParams({ ...form, client_id: provider.client_id, resource: provider.resource })
  let response: Response
  try {
    response = await fetch(provider.token_endpoint, { method: 'POST', body, cache: 'no-store', credentials: 'omit', redirect: 'error' })
  } catch {
    throw new ProviderError('unreachable')
  }
  if (response.status >= 500) throw new ProviderError('unreachable')
  const answer: unknown = await response.json().catch(() => null)
  const grant = response.ok ? read(answer) : null
  if (grant === null) throw new ProviderError('refused')
  return grant
}

/** A bearer token, or nothing: any other kind would have to be proven in ways we do not know. */
export function read(answer: unknown): Grant | null {
  if (typeof answer !== 'object' || answer === null) return null
  const { access_token, token_type, expires_in, refresh_token } = answer as Record<string, unknown>
  if (typeof access_token !== 'string' || String(token_type).toLowerCase() !== 'bearer') return null
  const seconds = typeof expires_in === 'number' && expires_in > 0 ? expires_in : null
  return {
    token: access_token,
    expiresAt: seconds === null ? null : Date.now() + seconds * 1_000,
    refresh: typeof refresh_token === 'string' ? refresh_token : null,
  }
}

function random(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

export async function challengeOf(verifier: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))))
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
