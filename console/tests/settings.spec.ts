// How one likes the console, which installation it is, and what must be seen wherever one is.
import { enter, expect, People, test } from './fixtures'
import { look } from './look'
import { Service } from './service'

test('settings are chosen in one dialog, apply at once and outlast a reload', async ({ people, service }) => {
  await service.draft('Shown in UTC')
  const page = await people.signIn('ana', '/console/items')
  await page.getByRole('button', { name: 'Settings' }).click()
  await expect(page.getByRole('dialog', { name: 'Settings' })).toBeVisible()
  await look(page, 'settings')
  await page.getByRole('radio', { name: 'Dark' }).check()
  await page.getByRole('radio', { name: 'Compact' }).check()
  await page.getByRole('radio', { name: 'UTC', exact: true }).check()
  await page.reload()
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await expect(page.locator('html')).toHaveAttribute('data-density', 'compact')
  await page.getByRole('button', { name: 'Settings' }).click()
  await expect(page.getByRole('radio', { name: 'UTC', exact: true })).toBeChecked()
})

test('the installation is named on every page, in the title and before the sign-in', async ({ browser }) => {
  const service = new Service('[console]\nname = "Production"\ncolour = "red"\n')
  await service.start()
  const people = new People(browser, service)
  try {
    const page = await people.visit('/')
    await expect(page.getByText('Production')).toBeVisible()
    await look(page, 'sign-in-production')
    await enter(page, service, 'ana')
    await expect(page.getByText('Production')).toBeVisible()
    await expect(page).toHaveTitle('Inbox · Production · Pilot')
    await look(page, 'production')
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('finding 10: the idle warning is seen from everywhere, moves nothing, is in the title and is said twice', async ({ people, service }) => {
  const page = await people.visit('about:blank')
  await page.clock.install()
  await page.goto('/console/workflows/controlled-operation')
  await enter(page, service, 'ada')
  await expect(page.getByRole('heading', { name: 'Who may do what' })).toBeVisible()
  await page.evaluate(() => scrollTo(0, 100_000))
  await page.evaluate(() => {
    const said: string[] = []
    Object.assign(window, { said })
    const announcer = document.querySelector('[data-announcer]') as Node
    new MutationObserver(() => said.push(announcer.textContent ?? '')).observe(announcer, { childList: true, characterData: true, subtree: true })
  })
  const top = await page.getByRole('heading', { name: 'What an item contains' }).boundingBox()
  await page.clock.fastForward('14:10')
  const warning = page.getByText(/You will be signed out in \d+ s/).and(page.locator('[data-banners] *'))
  await expect(warning).toBeInViewport()
  await expect(page).toHaveTitle(/^Signing out in \d+ s/)
  expect(await page.getByRole('heading', { name: 'What an item contains' }).boundingBox()).toEqual(top)
  for (let at = 0; at < 45; at += 1) await page.clock.runFor(1_000)
  await expect(page.getByText(/You will be signed out in [1-9] s/).first()).toBeVisible()
  const said = await page.evaluate(() => (window as unknown as { said: string[] }).said.filter((said) => said.includes('signed out')))
  expect(said).toHaveLength(2)
  expect(await page.locator('[data-banners]').evaluate((overlay) => overlay.closest('[role=status], [aria-live]'))).toBeNull()
})

test('finding 30: the sidebar is as tall as the window, also when the page is scrolled', async ({ people }) => {
  const page = await people.signIn('ada', '/console/workflows/controlled-operation')
  await expect(page.getByRole('heading', { name: 'Who may do what' })).toBeVisible()
  await page.evaluate(() => scrollTo(0, 100_000))
  await expect(page.getByRole('link', { name: 'Pilot' })).toBeInViewport()
  const { y, height } = (await page.locator('.bar').boundingBox()) ?? { y: NaN, height: NaN }
  // Pages end at fractions of a pixel.
  expect(Math.abs(y)).toBeLessThan(1)
  expect(height).toBe(860)
})

test('the demo offers a tour once; it is walked by keys and left by Escape', async ({ browser }) => {
  const service = new Service('[console]\nname = "Demo"\ncolour = "green"\n')
  await service.start()
  const people = new People(browser, service)
  try {
    const page = await people.signIn('ana')
    await page.getByRole('button', { name: 'Take the tour' }).click()
    await expect(page.getByRole('heading', { name: 'What waits for you' })).toBeFocused()
    await look(page, 'tour')
    await page.getByRole('button', { name: 'Next' }).click()
    await expect(page.getByRole('heading', { name: 'Everything there is' })).toBeFocused()
    await page.keyboard.press('Escape')
    await expect(page.getByRole('dialog')).toBeHidden()
    await page.reload()
    await expect(page.getByRole('heading', { name: 'Inbox' })).toBeVisible()
    await expect(page.getByText('New here?')).toBeHidden()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByRole('button', { name: 'Take the tour' }).click()
    await expect(page.getByRole('heading', { name: 'What waits for you' })).toBeFocused()
    await people.settle()
  } finally {
    await service.remove()
  }
})
