// Every screen, in light and dark, wide and narrow: nothing that someone cannot see, read or reach.
import { expect, test } from './fixtures'
import { axeOf, look } from './look'

test('sign-in is readable for everyone', async ({ people, service }) => {
  const page = await people.visit('/')
  await expect(page.getByLabel('Your token')).toBeFocused()
  await look(page, 'sign-in')
  await page.getByLabel('Your token').fill(service.tokens.ana)
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByRole('heading', { name: 'Is this you?' })).toBeVisible()
  await look(page, 'confirm')
})

test('the screens of daily work are readable for everyone', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Rotate the signing key of the payment gateway', {
    purpose: 'The key is two years old and the auditors asked for a yearly rotation.',
    operation: 'gateway keys rotate --key payments-signing --overlap 24h\ngateway keys verify payments-signing',
    risk: 'high',
    rollback_plan: 'gateway keys restore payments-signing --previous\nTell the partner banks.',
    targets: ['gateway-1.example.org', 'gateway-2.example.org'],
    links: ['https://tickets.example.org/OPS-1842'],
    expected_outcome: 'Both gateways sign with the new key; partners verify within five minutes.',
  })
  await service.itemIn('approved', 'Raise the daily transfer limit for the year-end run')
  await service.itemIn('executing', 'Restart the billing workers')
  await service.itemIn('succeeded', 'Move the ledger archive to cold storage')
  await service.draft('Replace the load balancer certificate')
  await service.call('ben', 'POST', `/v1/items/${id}/comments`, { text: 'Has the partner side confirmed the overlap window?' })
  const page = await people.signIn('ben', '/console/inbox')
  await expect(page.getByRole('link', { name: 'Rotate the signing key' })).toBeVisible()
  await look(page, 'inbox')
  await page.goto('/console/items')
  await expect(page.getByRole('link', { name: 'Replace the load balancer' })).toBeVisible()
  await look(page, 'items')
  await page.goto(`/console/items/${id}`)
  await expect(page.getByRole('button', { name: 'Approve' })).toBeVisible()
  await look(page, 'item')
  await page.getByRole('button', { name: 'Approve' }).click()
  await expect(page.getByRole('dialog')).toBeVisible()
  await look(page, 'approve')
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.keyboard.press('?')
  await expect(page.getByRole('dialog', { name: 'Keyboard shortcuts' })).toBeVisible()
  await look(page, 'help')
  await page.keyboard.press('Escape')
  await page.goto('/console/none/such')
  await expect(page.getByRole('heading', { name: 'There is no such screen' })).toBeVisible()
  await look(page, 'no-screen')
})

test('the screens of drafts are readable for everyone', async ({ people, service }) => {
  const page = await people.signIn('ana', '/console/new')
  await expect(page.getByLabel('Title')).toBeVisible()
  await look(page, 'new')
  const { id } = await service.draft('A draft to be edited')
  await page.goto(`/console/items/${id}/edit`)
  await expect(page.getByLabel('Title')).toHaveValue('A draft to be edited')
  await look(page, 'edit')
})

test('the screens of oversight are readable for everyone', async ({ people, service }) => {
  const id = await service.itemIn('succeeded', 'An item to look into')
  const page = await people.signIn('ada', '/console/live')
  await expect(page.getByRole('row').nth(3)).toBeVisible()
  await look(page, 'live')
  await page.goto('/console/workflows')
  await expect(page.getByRole('link', { name: 'Controlled operation' })).toBeVisible()
  await look(page, 'workflows')
  await page.goto('/console/workflows/controlled-operation')
  await expect(page.getByRole('img', { name: 'Diagram of Controlled operation' })).toBeVisible()
  await look(page, 'workflow')
  await page.goto('/console/overview')
  await expect(page.getByRole('heading', { name: 'Decisions per day' })).toBeVisible()
  await look(page, 'overview')
  await page.goto('/console/actors')
  await expect(page.getByRole('cell', { name: 'sol', exact: true })).toBeVisible()
  await look(page, 'actors')
  await page.goto(`/console/evidence?item=${id}`)
  await page.getByLabel("The log's verifier key").fill(await service.verifierKey())
  await page.getByRole('button', { name: 'Verify', exact: true }).click()
  await expect(page.getByRole('status').getByText('Verified', { exact: true })).toBeVisible()
  await look(page, 'evidence')
})

test('a diagram says words, fits its page and can be enlarged', async ({ people }) => {
  const page = await people.signIn('ben', '/console/workflows/controlled-operation')
  const picture = page.getByRole('img', { name: 'Diagram of Controlled operation' })
  await expect(picture).toBeVisible()
  await expect(picture).toContainText('revoke approval')
  expect(await picture.textContent()).not.toContain('_')
  const { width } = (await picture.boundingBox()) ?? { width: 0 }
  await page.getByRole('button', { name: 'Larger' }).click()
  await expect.poll(async () => (await picture.boundingBox())?.width).toBeGreaterThan(width)
  await page.getByRole('button', { name: 'Fit' }).click()
  await expect.poll(async () => (await picture.boundingBox())?.width).toBe(width)
})

test('actors on a phone are cards that need no sideways scrolling', async ({ people }) => {
  const page = await people.signIn('sol', '/console/actors', { viewport: { width: 390, height: 844 } })
  await expect(page.getByRole('cell', { name: 'sol', exact: true }).first()).toBeVisible()
  await expect(page.getByRole('columnheader', { name: 'Last seen' })).toHaveCount(2)
  const { violations } = await axeOf(page).analyze()
  expect(violations.map(({ id }) => id)).toEqual([])
})

test('after the sign-in, on every screen and on an item the focus is on the heading', async ({ people, service }) => {
  await service.itemIn('submitted', 'Read from its heading on')
  const page = await people.signIn('ben')
  await expect(page.getByRole('heading', { level: 1, name: 'Inbox' })).toBeFocused()
  for (const name of ['Items', 'Calendar', 'Live', 'Overview', 'Workflows', 'Evidence', 'Inbox']) {
    await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name }).click()
    await expect(page.getByRole('heading', { level: 1, name })).toBeFocused()
  }
  await page.getByRole('link', { name: 'Read from its heading on' }).click()
  await expect(page.getByRole('heading', { level: 1, name: 'Read from its heading on' })).toBeFocused()
})
