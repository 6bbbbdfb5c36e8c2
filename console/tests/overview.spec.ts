// The overview: what the service counted, for a period one chooses, and the way from a bar to its items.
import { expect, test } from './fixtures'
import { look } from './look'

test('finding 12: figures are those of the service, and bars lead to the items they count', async ({ people, service }) => {
  await service.itemIn('submitted', 'Counted as submitted')
  const figures = await service.call<{ open: Record<string, number>; days: { decisions: number }[] }>('ada', 'GET', '/v1/figures?days=14')
  const page = await people.signIn('ada', '/console/overview')
  const card = (name: string) => page.getByText(name, { exact: true }).locator('..')
  await expect(card('Open now')).toContainText(Object.values(figures.open).reduce((sum, number) => sum + number, 0).toLocaleString('en-GB'))
  await expect(card('Decisions')).toBeVisible()
  await look(page, 'overview-figures')
  const asked = page.waitForRequest((request) => request.url().includes('/v1/figures?days=90'))
  await page.getByRole('navigation', { name: 'Period' }).getByRole('link', { name: '90 days' }).click()
  await asked
  await expect(page.getByRole('link', { name: '90 days' })).toHaveAttribute('aria-current', 'true')
  await page.getByRole('region', { name: 'Open items by state' }).getByRole('link', { name: 'submitted' }).click()
  await expect(page).toHaveURL(/items\?state=submitted/)
  await expect(page.getByRole('link', { name: 'Counted as submitted' })).toBeVisible()
})

test('who may not see refusals is not shown an empty chart of them', async ({ people }) => {
  const page = await people.signIn('ana', '/console/overview')
  await expect(page.getByRole('heading', { name: 'Decisions per day' })).toBeVisible()
  await expect(page.getByRole('heading', { name: 'Refused attempts per day' })).toBeHidden()
})

test('webhooks that need someone come first, without their path', async ({ people }) => {
  const bare = { paused_because: null, next: 7, lag: 0, failing_since: null, last_answer: 'answered 204', last_answer_at: null, delivered_at: null }
  const paused = { ...bare, name: 'chat', host: 'chat.example', state: 'paused', lag: 38, last_answer: 'answered 410' }
  const page = await people.signIn('ada', '/console/inbox')
  await page.route('**/v1/webhooks', (route) => route.fulfill({ json: { webhooks: [{ ...bare, name: 'archive', host: 'archive.example', state: 'delivering' }, paused], next: null } }))
  await page.goto('/console/overview')
  const rows = page.getByRole('region', { name: 'Webhooks' }).getByRole('row')
  await expect(rows).toHaveCount(3)
  await expect(rows.nth(1)).toContainText('chat')
  await expect(rows.nth(1)).toContainText('paused')
  await expect(rows.nth(1)).toContainText('answered 410')
  await look(page, 'overview-webhooks')
})
