import { describe, expect, it } from 'vitest'
import type { CredentialInfo } from './api'
import { byAttention, warning } from './credentials'

const NOW = Date.parse('2026-11-15T12:00:00Z')
const DAY = 86_400_000

function credential(id: string, actor: string, state: CredentialInfo['state'], days: number | null, life = 90): CredentialInfo {
  const expires_at = days === null ? null : new Date(NOW + days * DAY).toISOString()
  const not_before = days === null ? null : new Date(NOW + (days - life) * DAY).toISOString()
  return { credential_id: id, actor_id: actor, role: 'approver', not_before, expires_at, state, last_seen: null }
}

function order(all: CredentialInfo[], mechanism: 'credential_file' | 'oauth' | 'mutual_tls' = 'credential_file'): string[] {
  return byAttention(all, NOW, mechanism).map(
    ({ credential, standing, isReplaced }) => `${credential.credential_id} ${standing}${isReplaced ? ' replaced' : ''}`,
  )
}

describe('credentials', () => {
  it('come in the order in which they need attention', () => {
    const all = [
      credential('revoked', 'eve', 'revoked', 30),
      credential('endless', 'ada', 'live', null),
      credential('endless-too', 'eli', 'live', null),
      credential('old', 'ana', 'expired', -5),
      credential('new', 'ana', 'live', 80),
      credential('later', 'sol', 'not_yet', 95),
      credential('ten', 'ben', 'live', 10),
      credential('two', 'bea', 'live', 2),
      credential('gone', 'kim', 'expired', -1),
      credential('three', 'ana', 'live', 3),
    ]
    expect(order(all)).toEqual([
      'gone expired',
      'two expiring',
      'ten expiring',
      'three expiring replaced',
      'later not_yet',
      'new live',
      'endless live',
      'endless-too live',
      'old expired replaced',
      'revoked revoked',
    ])
  })

  it('expire on the screen too, without being asked for again', () => {
    expect(order([credential('just', 'ana', 'live', -0.001)])).toEqual(['just expired'])
  })

  it('that are renewed by machines are no news when they end soon', () => {
    expect(order([credential('year', 'run', 'live', 1 / 24, 365)], 'mutual_tls')).toEqual(['year expiring'])
    expect(order([credential('hour', 'run', 'live', 1 / 24, 1 / 24)], 'mutual_tls')).toEqual(['hour live'])
    expect(order([credential('jwt', 'ana', 'live', 1 / 24)], 'oauth')).toEqual(['jwt live'])
  })

  it('finding 28: of a file expire soon however short their life is, as the log and their owner are told', () => {
    expect(order([credential('week', 'ana', 'live', 23 / 24, 7)])).toEqual(['week expiring'])
  })
})

it('the end of one\'s own is said two weeks before, and plainly on the last day', () => {
  const cases = [null, 15, 14, 1.1, 1, 0.1, -1] as const
  expect(cases.map((days) => warning(days === null ? null : NOW + days * DAY, NOW))).toEqual([null, null, 'soon', 'soon', 'last', 'last', 'last'])
})
