// Signing in, staying in and getting out; and that the token is in the tab and nowhere else.
import { enter, expect, People, test } from './fixtures'
import { Service } from './service'

test('the token is in the tab and nowhere else, and gone after signing out', async ({ people, service }) => {
  const page = await people.signIn('ana')
  const token = service.tokens.ana
  const found = await page.evaluate(
    (token) => ({
      session: Object.values({ ...sessionStorage }).filter((value) => value.includes(token)).length,
      local: JSON.stringify({ ...localStorage }).includes(token),
      cookie: document.cookie,
      address: location.href.includes(token),
      page: document.documentElement.outerHTML.includes(token),
      caches: 'caches' in window,
    }),
    token,
  )
  expect(found).toMatchObject({ session: 1, local: false, cookie: '', address: false, page: false })
  expect(await page.context().cookies()).toEqual([])
  await page.getByRole('button', { name: 'Sign out' }).click()
  await expect(page.getByText('You are signed out.')).toBeVisible()
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  await page.goBack().catch(() => {})
  await page.goto('/console/items')
  await expect(page.getByLabel('Your token')).toBeVisible()
})

test('a reload stays signed in, a new tab does not, and neither does a copied one', async ({ people }) => {
  const page = await people.signIn('ben', '/console/items')
  await page.reload()
  await expect(page.getByRole('heading', { name: 'Items' })).toBeVisible()

  const fresh = await page.context().newPage()
  await people.watch(fresh)
  await fresh.goto('/console/items')
  await expect(fresh.getByLabel('Your token')).toBeVisible()

  // Without `noopener` a browser copies session storage into the new tab, as it does for "duplicate tab".
  const opening = page.context().waitForEvent('page')
  await page.evaluate(() => void window.open('/console/items'))
  const copy = await opening
  await people.watch(copy)
  await expect(copy.getByText('This tab is a copy of another one.')).toBeVisible()
  expect(await copy.evaluate(() => sessionStorage.length)).toBe(0)
  await page.reload()
  await expect(page.getByRole('heading', { name: 'Items' })).toBeVisible()
})

test('after a quarter of an hour without a sign of life the tab forgets the token', async ({ people, service }) => {
  const page = await people.visit('about:blank')
  await page.clock.install()
  await page.goto('/console/items')
  await enter(page, service, 'ada')
  await page.clock.fastForward('14:30')
  await expect(page.locator('[data-banners]').getByText(/You will be signed out in \d+ s/)).toBeVisible()
  await page.getByRole('button', { name: 'Stay signed in' }).click()
  await page.clock.fastForward('14:30')
  await expect(page.locator('[data-banners]').getByText(/You will be signed out in \d+ s/)).toBeVisible()
  await page.clock.fastForward('00:31')
  await expect(page.getByText('You were signed out because you were idle for a while.')).toBeVisible()
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('a wrong token is refused in words, and repeated nowhere', async ({ people }) => {
  const page = await people.visit('/')
  await page.getByLabel('Your token').fill('too short')
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByRole('alert')).toContainText('32 to 256 printable characters')
  const wrong = 'x'.repeat(40)
  await page.getByLabel('Your token').fill(wrong)
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByRole('alert')).toContainText('The service does not know this token.')
  expect(await page.evaluate(() => document.body.innerText)).not.toContain(wrong)
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('someone who finds another name is told not to go on', async ({ people, service }) => {
  const page = await people.visit('/')
  await page.getByLabel('Your token').fill(service.tokens.sol)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('button', { name: 'No, this is not me' }).click()
  await expect(page.getByText('Do not use this token.')).toBeVisible()
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
})

test('after a rotation the old token leads back to the sign-in, and the new one to where one was', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    const id = await service.itemIn('submitted', 'Where one was')
    const page = await people.signIn('ben', `/console/items/${id}`)
    await expect(page.getByRole('button', { name: 'Approve' })).toBeVisible()
    await service.stop()
    await expect(page.locator('[data-banners]').getByText('The service cannot be reached.')).toBeVisible()
    await service.rotate('ben')
    await expect(page.getByText('The service no longer accepts your token.')).toBeVisible({ timeout: 25_000 })
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
    await enter(page, service, 'ben')
    await expect(page.getByRole('heading', { name: 'Where one was' })).toBeVisible()
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('when the service comes back, the console goes on by itself', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    const page = await people.signIn('ana', '/console/items')
    await service.stop()
    await expect(page.locator('[data-banners]').getByText('The service cannot be reached.')).toBeVisible()
    await service.start()
    await expect(page.locator('[data-banners]').getByText('The service cannot be reached.')).toBeHidden({ timeout: 25_000 })
    await service.draft('Made after the return')
    await expect(page.getByRole('link', { name: 'Made after the return' })).toBeVisible({ timeout: 25_000 })
    await people.settle()
  } finally {
    await service.remove()
  }
})
