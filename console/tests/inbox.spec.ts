// The inbox: one request, kept current however much happens, and noticed by people who look elsewhere.
import { expect, People, test } from './fixtures'
import { Service } from './service'

test('finding 13: an inbox is one request without payloads, and stays current while the ledger is never quiet', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    const busy = await service.draft('Commented without a pause')
    const page = await people.visit('/')
    const asked: string[] = []
    page.on('request', (request) => void (request.url().includes('/v1/items?') && asked.push(new URL(request.url()).search)))
    await page.getByLabel('Your token').fill(service.tokens.ben)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('button', { name: 'Yes, continue' }).click()
    await expect(page.getByText('Nothing is waiting for you.')).toBeVisible()
    expect(asked).toHaveLength(1)
    expect(asked[0]).toContain('view=summary')
    expect(asked[0]).toContain('limit=1000')

    let isOver = false
    const noise = (async () => {
      while (!isOver) await service.call('ana', 'POST', `/v1/items/${busy.id}/comments`, { text: 'again' })
    })()
    await service.itemIn('submitted', 'Came in between')
    await expect(page.getByRole('link', { name: 'Came in between' })).toBeVisible({ timeout: 6_000 })
    isOver = true
    await noise
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('new work is announced once, marked in the list and counted in the title and the icon', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    await service.itemIn('submitted', 'There before')
    const page = await people.signIn('ben', '/console/inbox')
    await expect(page.getByRole('link', { name: 'There before' })).toBeVisible()
    await expect(page).toHaveTitle('(1) Inbox · Pilot')
    await expect(page.locator('link[rel=icon]')).toHaveAttribute('href', /^blob:/)
    await expect(page.locator('.fresh')).toHaveCount(0)
    await page.evaluate(() => {
      const said: string[] = []
      Object.assign(window, { said })
      new MutationObserver(() => said.push(document.querySelector('[data-announcer]')?.textContent ?? '')).observe(document.querySelector('[data-announcer]') as Node, { childList: true, characterData: true, subtree: true })
    })
    await service.itemIn('submitted', 'Just came', { risk: 'high' })
    const row = page.getByRole('row').filter({ hasText: 'Just came' })
    await expect(row).toContainText('New')
    await expect(page).toHaveTitle('(2) Inbox · Pilot')
    await expect(page.locator('[data-announcer]')).toHaveText('1 new item is waiting for you')
    await service.call('ben', 'POST', '/v1/items/' + (await service.draft('Noise')).id + '/comments', { text: 'noise' })
    await service.itemIn('submitted', 'Last of them')
    await expect(page.getByRole('link', { name: 'Last of them' })).toBeVisible()
    expect(await page.evaluate(() => (window as unknown as { said: string[] }).said.filter((said) => said !== '').length)).toBe(2)
    await page.getByLabel('Group by').selectOption('risk')
    await expect(page.getByRole('heading', { level: 2 }).first()).toContainText('High risk')
    await page.getByLabel('Search the inbox').fill('last')
    await expect(page.getByRole('row')).toHaveCount(2)
    await page.goto('/console/items')
    await page.goto('/console/inbox')
    await expect(page.getByRole('link', { name: 'Just came' })).toBeVisible()
    await expect(page.locator('.fresh')).toHaveCount(0)
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('auditors land on what deserves a look', async ({ people, service }) => {
  const id = await service.itemIn('executing', 'Ended in failure')
  await service.act('eli', id, 'fail')
  const page = await people.signIn('ada')
  await expect(page.getByRole('region', { name: 'Failed, in doubt or held' }).getByRole('link', { name: 'Ended in failure' })).toBeVisible()
  await expect(page.getByRole('region', { name: 'Recently changed' }).getByRole('link', { name: 'Ended in failure' })).toBeVisible()
})
