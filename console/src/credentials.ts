// How credentials stand, and which of them need attention first. Pure, so that it can be checked.
import type { CredentialInfo, Mechanism } from './api'

const DAY_MS = 86_400_000
/** As early as the service's own log and metrics warn. */
const SOON_MS = 14 * DAY_MS

export type Standing = 'expired' | 'expiring' | 'not_yet' | 'live' | 'revoked'

export interface Stood {
  credential: CredentialInfo
  standing: Standing
  /** Its actor has another one that lasts longer. */
  isReplaced: boolean
}

/** How close the end of one's own credential is. */
export function warning(endsAt: number | null, now: number): 'soon' | 'last' | null {
  if (endsAt === null || endsAt - now > SOON_MS) return null
  return endsAt - now > DAY_MS ? 'soon' : 'last'
}

export function canEnd({ state }: CredentialInfo): boolean {
  return state === 'live' || state === 'not_yet'
}

/** Other credentials that the same actor can go on with. */
export function othersOf(credential: CredentialInfo, all: CredentialInfo[]): CredentialInfo[] {
  return all.filter(
    (other) => other.credential_id !== credential.credential_id && other.actor_id === credential.actor_id && other.state === 'live',
  )
}

/** Nobody else could come in with the same role. A mechanism that learns of credentials by their use cannot tell. */
export function isLastOfRole({ credential_id, role }: CredentialInfo, all: CredentialInfo[], mechanism: Mechanism): boolean {
  const isOther = (other: CredentialInfo) => other.credential_id !== credential_id && other.role === role && other.state === 'live'
  return mechanism === 'credential_file' && role !== null && !all.some(isOther)
}

/** What is about to lock someone out comes first, what is over and replaced last. */
export function byAttention(all: CredentialInfo[], now: number, mechanism: Mechanism): Stood[] {
  const stood = all.map((credential) => ({
    credential,
    standing: standingOf(credential, now, mechanism),
    isReplaced: othersOf(credential, all).some((other) => endOf(other) > endOf(credential)),
  }))
  return stood.sort(
    (one, other) =>
      rankOf(one) - rankOf(other) ||
      // Two without an end are NaN apart, and their names decide.
      endOf(one.credential) - endOf(other.credential) ||
      nameOf(one.credential).localeCompare(nameOf(other.credential)),
  )
}

function standingOf({ state, not_before, expires_at }: CredentialInfo, now: number, mechanism: Mechanism): Standing {
  if (state !== 'live' || expires_at === null) return state
  // Its time may have come since it was asked for.
  if (Date.parse(expires_at) <= now) return 'expired'
  // A certificate that lives for hours or days is renewed by a machine, and its end is nobody's work. A token in a file
  // is renewed by a person, however short its life.
  const life = not_before === null ? Infinity : Date.parse(expires_at) - Date.parse(not_before)
  const isRenewed = mechanism === 'oauth' || (mechanism === 'mutual_tls' && life <= SOON_MS)
  return !isRenewed && Date.parse(expires_at) - now <= SOON_MS ? 'expiring' : 'live'
}

function rankOf({ standing, isReplaced }: Stood): number {
  const order: [Standing, boolean | null][] = [
    ['expired', false],
    ['expiring', false],
    ['expiring', true],
    ['not_yet', null],
    ['live', null],
    ['expired', true],
    ['revoked', null],
  ]
  return order.findIndex(([name, replaced]) => name === standing && (replaced === null || replaced === isReplaced))
}

function endOf({ expires_at }: CredentialInfo): number {
  return expires_at === null ? Infinity : Date.parse(expires_at)
}

function nameOf({ actor_id, credential_id }: CredentialInfo): string {
  return `${actor_id ?? ''} ${credential_id}`
}
