// Many tabs of one browser: one stream, and nothing missed when the tab that holds it goes away.
import type { BrowserContext, Page } from '@playwright/test'
import { enter, expect, People, test } from './fixtures'
import { Service, type Person } from './service'

async function tabOf(context: BrowserContext, people: People, service: Service, person: Person, streams: string[]): Promise<Page> {
  const page = await context.newPage()
  await people.watch(page)
  page.on('request', (request) => void (request.url().endsWith('/v1/events') && streams.push(person)))
  await page.goto('/console/items')
  await enter(page, service, person)
  return page
}

test('finding 26: eight tabs over HTTP/1.1 hold one stream, all stay current, and another takes over', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  const context = await browser.newContext({ baseURL: service.url })
  try {
    const streams: string[] = []
    const tabs: Page[] = []
    for (let at = 0; at < 8; at += 1) tabs.push(await tabOf(context, people, service, 'ana', streams))
    expect(streams).toHaveLength(1)
    await service.draft('Seen in all of them')
    for (const tab of tabs) await expect(tab.getByRole('link', { name: 'Seen in all of them' })).toBeVisible()
    await tabs.shift()?.close()
    await service.draft('Seen after the first was closed')
    for (const tab of tabs) await expect(tab.getByRole('link', { name: 'Seen after the first was closed' })).toBeVisible()
    await expect.poll(() => streams.length).toBe(2)
    const ben = await tabOf(context, people, service, 'ben', streams)
    await expect.poll(() => streams.filter((person) => person === 'ben').length).toBe(1)
    await ben.close()
    expect(people.findings()).toEqual([])
  } finally {
    await context.close()
    await service.remove()
  }
})

test('finding 33: a proxy that blocks streams is not a service that is gone', async ({ people, service }) => {
  const page = await people.visit('about:blank')
  await page.route('**/v1/events', (route) => route.abort())
  await page.goto('/console/items')
  await enter(page, service, 'ana')
  await service.draft('Comes without a stream')
  await expect(page.getByRole('link', { name: 'Comes without a stream' })).toBeVisible()
  await expect(page.locator('[data-banners]').getByText('The service cannot be reached.')).toBeHidden()
})
