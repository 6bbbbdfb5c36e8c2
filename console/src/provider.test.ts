import { describe, expect, it } from 'vitest'
import { challengeOf, read } from './provider'
import { isTokenShaped } from './session.svelte'

describe('a grant', () => {
  it('is a bearer token, with an end and the means to renew it when the provider says so', () => {
    const before = Date.now()
    const grant = read({ access_token: 'a', token_type: 'bearer', expires_in: 60, refresh_token: 'r' })
    expect(grant).toMatchObject({ token: 'a', refresh: 'r' })
    expect(grant?.expiresAt).toBeGreaterThanOrEqual(before + 60_000)
    expect(read({ access_token: 'a', token_type: 'Bearer' })).toEqual({ token: 'a', expiresAt: null, refresh: null })
  })

  it('is nothing else', () => {
    for (const answer of [null, 'a', {}, { access_token: 1, token_type: 'Bearer' }, { access_token: 'a', token_type: 'DPoP' }]) {
      expect(read(answer)).toBeNull()
    }
  })
})

it('the challenge is the one of RFC 7636', async () => {
  expect(await challengeOf('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk')).toBe('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
})

it('a token is short, or signed', () => {
  expect(isTokenShaped('x'.repeat(256))).toBe(true)
  expect(isTokenShaped('x'.repeat(257))).toBe(false)
  expect(isTokenShaped(`${'x'.repeat(300)}.y.z`)).toBe(true)
  expect(isTokenShaped(`${'x'.repeat(9_000)}.y.z`)).toBe(false)
})
