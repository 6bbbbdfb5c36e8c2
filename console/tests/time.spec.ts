// The page knows when a window opens, a lease ends and a deadline passes, without being told.
import { expect, test } from './fixtures'

test('finding 7: when the window opens, the open page offers to start', async ({ people, service }) => {
  const id = await service.itemIn('approved', 'Opens soon')
  const opens = Date.now() + 6_000
  const inputs = { not_before: new Date(opens).toISOString(), not_after: new Date(opens + 3_600_000).toISOString() }
  await service.act('sol', id, 'clear', { inputs })
  const eli = await people.signIn('eli', `/console/items/${id}`)
  const blocked = eli.getByRole('list', { name: 'Not available to you now' })
  await expect(blocked).toContainText(/Start opens at/)
  await expect(eli.getByRole('button', { name: 'Start', exact: true })).toHaveCount(0)
  await expect(eli.getByRole('button', { name: 'Start', exact: true })).toBeEnabled({ timeout: 30_000 })
  await expect(blocked).toHaveCount(0)
})

test('a heartbeat is one press, says how long the lease lasts, and can go by itself', async ({ people, service }) => {
  const id = await service.itemIn('executing', 'Kept alive')
  const eli = await people.signIn('eli', `/console/items/${id}`)
  const panel = eli.getByRole('region', { name: 'You are carrying this out' })
  await expect(panel).toContainText(/\d+:\d\d/)
  await panel.getByRole('button', { name: 'Send a heartbeat' }).click()
  await expect(eli.getByText('Heartbeat sent.').first()).toBeVisible()
  const beats = async () => (await service.call<{ history: { action: string }[] }>('ada', 'GET', `/v1/items/${id}/history`)).history.filter(({ action }) => action === 'heartbeat').length
  expect(await beats()).toBe(1)
  // By itself, when a third of the lease is left.
  await eli.clock.install()
  await eli.goto(`/console/items/${id}`)
  await panel.getByRole('checkbox', { name: 'Send them automatically while this tab is open' }).check()
  await eli.clock.fastForward('12:00')
  await expect.poll(beats).toBe(2)
  // This machine's clock is now twelve minutes ahead. The service's counts: the lease was renewed, and is whole again.
  await expect(panel).toContainText(/1[45]:\d\d/)
  await eli.clock.runFor(30_000)
  expect(await beats()).toBe(2)
})

test('finding 25 and rounding: an item that is finished says nothing about its window being open, and 72 hours are 3 days', async ({ people, service }) => {
  const id = await service.itemIn('succeeded', 'Finished')
  await service.act('ben', id, 'accept')
  const ada = await people.signIn('ada', `/console/items/${id}`)
  await expect(ada.getByText('No one. This item is finished.')).toBeVisible()
  await expect(ada.getByText('open now')).toHaveCount(0)
})
