// Signing in at an identity provider, a real one: there and back, what is kept where, and what happens at the end.
import type { Browser, Page } from '@playwright/test'
import { expect, People, test } from './fixtures'
import { axeOf } from './look'
import { Provider } from './provider'
import { Service } from './service'

interface Stage {
  provider: Provider
  service: Service
  people: People
}

async function stage(browser: Browser, options: { lifetime: number; refresh: boolean }, play: (stage: Stage) => Promise<void>) {
  const provider = new Provider()
  await provider.start(options)
  const service = new Service(provider.sections())
  await service.start()
  const people = new People(browser, service)
  try {
    await play({ provider, service, people })
    await people.settle()
  } finally {
    await service.remove()
    provider.stop()
  }
}

const ORGANISATION = 'Sign in with your organisation'

async function signInThere(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: ORGANISATION }).click()
  await page.getByPlaceholder('Enter any login').fill(name)
  await page.getByPlaceholder('and password').fill('x')
  await page.getByRole('button', { name: 'Sign-in' }).click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

async function confirm(page: Page, sentence: string): Promise<void> {
  await expect(page.getByText(sentence)).toBeVisible()
  await page.getByRole('button', { name: 'Yes, continue' }).click()
  await expect(page.locator('#main')).toBeVisible()
}

test('there and back: the code is nowhere afterwards, and the token in the tab alone', async ({ browser }) => {
  await stage(browser, { lifetime: 600, refresh: false }, async ({ people }) => {
    const page = await people.visit('/console/items?q=x')
    await expect(page.getByText('Signing out here does not sign you out there.')).toBeVisible()
    expect((await axeOf(page).analyze()).violations).toEqual([])
    await page.screenshot({ path: '../target/console-tests/provider-sign-in.png' })
    const asked = page.waitForRequest((request) => request.url().includes('/auth?'))
    await signInThere(page, 'ana')
    const query = new URL((await asked).url()).searchParams
    expect(query.get('code_challenge_method')).toBe('S256')
    expect(query.get('resource')).toBe('https://pilot.example')
    await expect(page.getByText('You are ana, acting as initiator')).toBeVisible()
    await page.screenshot({ path: '../target/console-tests/provider-welcome.png' })
    await confirm(page, 'You are ana, acting as initiator')
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe('/console/items?q=x')
    const found = await page.evaluate(() => {
      const token = sessionStorage.getItem('pilot.token') ?? ''
      const holders = Object.entries({ ...sessionStorage }).filter(([, value]) => value.includes(token))
      const elsewhere = JSON.stringify({ ...localStorage }) + document.cookie + location.href + document.documentElement.outerHTML
      return { holders: holders.map(([name]) => name), isElsewhere: elsewhere.includes(token), isSigned: token.split('.').length === 3, left: sessionStorage.getItem('pilot.sign-in') }
    })
    expect(found).toEqual({ holders: ['pilot.token'], isElsewhere: false, isSigned: true, left: null })
    // Neither forward nor back leads to the code again.
    await page.reload()
    await expect(page.getByRole('heading', { name: 'Items' })).toBeVisible()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await expect(page.getByText('You are signed out.')).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  })
})

test('whoever is not in the role map is told so, and comes no further', async ({ browser }) => {
  await stage(browser, { lifetime: 600, refresh: false }, async ({ people }) => {
    const page = await people.visit()
    await signInThere(page, 'eve')
    await expect(page.getByText('you are not in the approved role map')).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  })
})

test('a way back that this tab did not ask for is not taken', async ({ browser }) => {
  await stage(browser, { lifetime: 600, refresh: false }, async ({ people, provider }) => {
    const page = await people.visit('/console/signed-in?code=stolen&state=guessed')
    await expect(page.getByText('This sign-in belongs to another attempt')).toBeVisible()
    expect(page.url()).not.toContain('stolen')
    const tokens: string[] = []
    page.on('request', (request) => void (request.url() === `${provider.url}/token` && tokens.push(request.url())))
    await page.goto('/console/signed-in?error=access_denied&state=guessed')
    await expect(page.getByText('This sign-in belongs to another attempt')).toBeVisible()
    expect(tokens).toEqual([])
  })
})

test('a provider that is gone on the way back is said to be', async ({ browser }) => {
  await stage(browser, { lifetime: 600, refresh: false }, async ({ people }) => {
    const page = await people.visit()
    await page.route('**/token', (route) => route.abort())
    await signInThere(page, 'ana')
    await expect(page.getByText('cannot be reached right now')).toBeVisible()
    await expect(page.getByRole('button', { name: ORGANISATION })).toBeEnabled()
  })
})

test('a sign-in that ends takes nothing along that was being written', async ({ browser }) => {
  await stage(browser, { lifetime: 15, refresh: false }, async ({ people }) => {
    const page = await people.visit('/console/new')
    await signInThere(page, 'ana')
    await confirm(page, 'You are ana, acting as initiator')
    await expect(page.locator('[data-banners]').getByText(/Your sign-in ends in \d+ s/)).toBeVisible()
    await page.getByLabel('Title').fill('Written at three in the morning')
    await page.screenshot({ path: '../target/console-tests/provider-ends-soon.png' })
    await expect(page.getByText('Your sign-in has expired.')).toBeVisible()
    const held = await page.evaluate(() => Object.keys({ ...sessionStorage }))
    expect(held).toEqual(['pilot.typed'])
    await page.screenshot({ path: '../target/console-tests/provider-ended.png' })
    // The provider still knows the person, and asks for no password.
    await page.getByRole('button', { name: ORGANISATION }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await confirm(page, 'You are ana, acting as initiator')
    await expect(page.getByLabel('Title')).toHaveValue('Written at three in the morning')
    // Kept until it is saved, and then no longer.
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await expect(page.getByText(/^Saved/)).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.getItem('pilot.typed'))).toBeNull()
  })
})

test('with the means to renew it, a sign-in goes on by itself', async ({ browser }) => {
  await stage(browser, { lifetime: 12, refresh: true }, async ({ people }) => {
    const page = await people.visit()
    await signInThere(page, 'ben')
    await confirm(page, 'You are ben, acting as approver')
    const token = () => page.evaluate(() => sessionStorage.getItem('pilot.token'))
    const first = await token()
    await expect.poll(token).not.toBe(first)
    await page.getByRole('link', { name: 'Items', exact: true }).click()
    await expect(page.getByRole('heading', { name: 'Items' })).toBeVisible()
    await expect(page.locator('[data-banners]').getByText(/Your sign-in ends in/)).toBeHidden()
    const answered = page.waitForResponse((response) => response.url().endsWith('/v1/session'))
    await page.reload()
    expect((await answered).headers()['credential-expires-at']).toBeDefined()
    await expect(page.getByRole('heading', { name: 'Items' })).toBeVisible()
    await expect(page.getByText('stops working')).toBeHidden()
  })
})
