// What people do with the console, from one end to the other.
import type { Page } from '@playwright/test'
import { expect, test } from './fixtures'

async function open(page: Page, id: string): Promise<void> {
  await page.goto(`/console/items/${id}`)
  await expect(page.getByRole('heading', { name: 'Timeline' })).toBeVisible()
}

/** Presses an action, fills its form, and decides. */
async function decide(page: Page, action: string, fill: (page: Page) => Promise<void> = async () => {}): Promise<void> {
  const actions = page.getByRole('group', { name: 'Actions' })
  const button = actions.getByRole('button', { name: action, exact: true })
  if (!(await button.isVisible().catch(() => false)) && (await actions.getByRole('button', { name: 'More actions' }).isVisible())) await actions.getByRole('button', { name: 'More actions' }).click()
  await button.click()
  const dialog = page.getByRole('dialog')
  await expect(dialog.getByText('The text shown matches its digest')).toBeVisible()
  await fill(page)
  await dialog.getByRole('button', { name: action, exact: true }).click()
}

async function seesState(page: Page, state: string): Promise<void> {
  await expect(page.locator('.screen .badge').first()).toHaveText(state)
}

test('five people take an item from draft to closed, each in a browser of their own', async ({ people }) => {
  const [ana, ben, sol, eli, ada] = await Promise.all(
    (['ana', 'ben', 'sol', 'eli', 'ada'] as const).map((person) => people.signIn(person)),
  ) as [Page, Page, Page, Page, Page]

  await ana.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'New item' }).click()
  await ana.getByLabel('Title').fill('Rotate the signing key')
  await ana.getByLabel('Purpose').fill('It is due.')
  await ana.getByRole('textbox', { name: 'Operation' }).fill('keys rotate --now')
  await ana.getByRole('radio', { name: 'low' }).check()
  await ana.getByLabel('Rollback plan').fill('keys restore')
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  await ana.getByRole('dialog').getByRole('button', { name: 'Submit', exact: true }).click()
  await seesState(ana, 'submitted')
  const path = new URL(ana.url()).pathname

  // It is in the approver's inbox by itself.
  await ben.getByRole('link', { name: 'Rotate the signing key' }).click()
  await expect(ben.getByText('keys rotate --now')).toBeVisible()
  await decide(ben, 'Approve')
  await seesState(ben, 'approved')

  await sol.goto(path)
  await decide(sol, 'Clear', (page) => page.getByRole('button', { name: '+4 h' }).click())
  await seesState(sol, 'cleared')

  await eli.goto(path)
  await decide(eli, 'Start')
  await seesState(eli, 'executing')
  await decide(eli, 'Succeed', async (page) => {
    await page.getByLabel('Result').fill('Rotated without a hitch.')
    await page.getByLabel('Hash a file…').setInputFiles({ name: 'run.log', mimeType: 'text/plain', buffer: Buffer.from('done\n') })
    await expect(page.getByLabel('SHA-256')).toHaveValue(/^[0-9a-f]{64}$/)
    await page.getByLabel('Where it is kept').fill('https://logs.example.org/run')
  })
  await seesState(eli, 'succeeded')

  await ben.goto(path)
  await decide(ben, 'Accept')
  // The creator's page has followed all along.
  await seesState(ana, 'closed')

  await ada.goto(path)
  await expect(ada.getByText('This item is finished. Nothing more can be done to it.')).toBeVisible()
  await expect(ada.getByText('Rotated without a hitch.').first()).toBeVisible()
  const timeline = ada.getByRole('region', { name: 'Timeline' }).locator('ol > li')
  await expect(timeline).toHaveText([/accepted/, /reported success/, /started/, /cleared/, /approved/, /submitted/, /created/])
})

test('a rejection needs a comment, and the reason is there for everyone', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'To be rejected')
  const ben = await people.signIn('ben')
  await open(ben, id)
  await ben.getByRole('button', { name: 'Reject' }).click()
  const dialog = ben.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Reject' }).click()
  await expect(dialog.getByText('This is required.')).toBeVisible()
  await expect(dialog.getByLabel('Comment')).toBeFocused()
  expect((await service.item(id)).state).toBe('submitted')
  await dialog.getByLabel('Comment').fill('No roll-back worth the name.')
  await dialog.getByRole('button', { name: 'Reject' }).click()
  await seesState(ben, 'rejected')
  await expect(ben.getByText('No roll-back worth the name.')).toBeVisible()
})

test('a returned item is edited and shows the approver what changed', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'To be returned', { operation: 'deploy version one' })
  const [ben, ana] = [await people.signIn('ben'), await people.signIn('ana')]
  await open(ben, id)
  await decide(ben, 'Return', (page) => page.getByRole('dialog').getByLabel('Comment').fill('Wrong version.'))
  await seesState(ben, 'returned')

  await open(ana, id)
  await ana.getByRole('link', { name: 'Edit' }).click()
  await ana.getByRole('textbox', { name: 'Operation' }).fill('deploy version two')
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  await ana.getByRole('dialog').getByRole('button', { name: 'Submit', exact: true }).click()
  await seesState(ana, 'submitted')

  await ben.goto('/console/inbox')
  await ben.getByRole('link', { name: 'To be returned' }).click()
  await ben.getByRole('button', { name: 'Approve' }).click()
  const changes = ben.getByRole('dialog').getByRole('region', { name: 'What you decide on' })
  await expect(changes.getByText('Changed since you decided on it')).toBeVisible()
  await expect(changes.locator('del')).toHaveText(/one/)
  await expect(changes.locator('ins')).toHaveText(/two/)
})

test('a hold stops the others until it is released', async ({ people, service }) => {
  const id = await service.itemIn('cleared', 'To be held')
  const [ben, eli, sol] = [await people.signIn('ben'), await people.signIn('eli'), await people.signIn('sol')]
  await open(eli, id)
  await expect(eli.getByRole('button', { name: 'Start' })).toBeVisible()
  await open(ben, id)
  await decide(ben, 'Hold', (page) => page.getByRole('dialog').getByLabel('Comment').fill('Wait for the release.'))
  await expect(ben.getByText('ben put this item on hold')).toBeVisible()
  await expect(eli.getByText('ben put this item on hold')).toBeVisible()
  await expect(eli.getByRole('list', { name: 'Not available to you now' })).toContainText('Start On hold by ben')
  await expect(eli.getByRole('button', { name: 'Start' })).toBeHidden()
  await open(sol, id)
  await decide(sol, 'Release', (page) => page.getByRole('dialog').getByLabel('Comment').fill('Go on.'))
  await expect(eli.getByRole('button', { name: 'Start' })).toBeVisible()
})

test('of two who decide at once, the second is told that someone was faster', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'To be decided twice')
  const [ben, bea] = [await people.signIn('ben'), await people.signIn('bea')]
  await Promise.all([open(ben, id), open(bea, id)])
  await bea.getByRole('button', { name: 'Reject' }).click()
  await bea.getByRole('dialog').getByLabel('Comment').fill('I would rather not.')
  await decide(ben, 'Approve')
  await seesState(ben, 'approved')
  const dialog = bea.getByRole('dialog')
  await expect(dialog.getByText('The item changed while this was open.')).toBeVisible()
  await dialog.getByRole('button', { name: 'Reject' }).click()
  await expect(dialog.getByRole('alert')).toContainText(/Someone else was faster|not possible in the present state/)
  await expect(dialog.getByRole('alert')).toContainText(/state_conflict|version_mismatch/)
  expect((await service.item(id)).state).toBe('approved')
})

test('an unfinished draft is refused at its fields', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await ana.getByLabel('Title').fill('Half a draft')
  await ana.getByLabel('Purpose').fill('To be finished later.')
  await ana.getByRole('button', { name: 'Save as a draft' }).click()
  await expect(ana.getByText(/^Saved/)).toBeVisible()
  await ana.getByLabel('Purpose').fill('Soon.')
  await expect(ana.getByText('Not saved yet.')).toBeVisible()
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  await expect(ana.getByRole('alert')).toContainText('invalid_request')
  const operation = ana.getByRole('textbox', { name: 'Operation' })
  await expect(operation).toBeFocused()
  await expect(operation).toHaveAttribute('aria-invalid', 'true')
  await expect(operation).toHaveAccessibleDescription(/This is required/)
  await operation.fill('x')
  await ana.getByRole('radio', { name: 'low' }).check()
  await ana.getByLabel('Rollback plan').fill('y')
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  await expect(ana.getByRole('dialog', { name: 'Submit this item?' })).toBeVisible()
})

test('a draft changed elsewhere is not overwritten', async ({ people, service }) => {
  const { id } = await service.draft('Edited in two places')
  const ana = await people.signIn('ana', `/console/items/${id}/edit`)
  await expect(ana.getByLabel('Title')).toHaveValue('Edited in two places')
  await service.call('ana', 'PATCH', `/v1/items/${id}`, { title: 'Edited elsewhere' })
  await ana.getByLabel('Title').fill('Edited here')
  await ana.getByRole('button', { name: 'Save the draft' }).click()
  await expect(ana.getByRole('alert')).toContainText('version_mismatch')
  await ana.getByRole('button', { name: /Load that version/ }).click()
  await expect(ana.getByLabel('Title')).toHaveValue('Edited elsewhere')
})

test('further members and raw JSON reach the service whole', async ({ people, service }) => {
  const ana = await people.signIn('ana', '/console/new')
  await ana.getByLabel('Title').fill('With more than the form knows')
  await ana.getByLabel('Purpose').fill('p')
  await ana.getByRole('button', { name: 'Write it as JSON' }).click()
  const raw = ana.getByLabel('The whole payload as one JSON object.')
  await expect(raw).toHaveValue(/"purpose": "p"/)
  await raw.fill('{"purpose": "q", "ticket": {"number": 7}')
  await ana.getByRole('button', { name: 'Save as a draft' }).click()
  await expect(ana.getByText(/Line 1, column 41: this is not valid JSON/)).toBeVisible()
  await raw.fill('{"purpose": "q", "ticket": {"number": 7}, "risk": "low"}')
  await ana.getByRole('button', { name: 'Save as a draft' }).click()
  await expect(ana.getByText(/^Saved/)).toBeVisible()
  const id = new URL(ana.url()).pathname.split('/')[3] ?? ''
  const item = await service.call<{ payload: unknown }>('ana', 'GET', `/v1/items/${id}`)
  expect(item.payload).toEqual({ purpose: 'q', ticket: { number: 7 }, risk: 'low' })
  await ana.getByRole('button', { name: 'Back to the fields' }).click()
  await expect(ana.getByRole('radio', { name: 'low' })).toBeChecked()
  await expect(ana.getByRole('textbox', { name: 'Other members' })).toHaveValue(/"ticket"/)
})

test('filters are in the address, and the address brings them back', async ({ people, service }) => {
  await service.itemIn('approved', 'Filtered in')
  await service.draft('Filtered out')
  const ada = await people.signIn('ada', '/console/items')
  await ada.getByLabel('State').selectOption('approved')
  await ada.getByLabel('Search content, people or ids').fill('filtered')
  await expect(ada).toHaveURL(/\/console\/items\?q=filtered&state=approved$/)
  await expect(ada.getByRole('link', { name: 'Filtered in' })).toBeVisible()
  await expect(ada.getByRole('link', { name: 'Filtered out' })).toBeHidden()
  await ada.reload()
  await expect(ada.getByLabel('State')).toHaveValue('approved')
  await expect(ada.getByRole('link', { name: 'Filtered in' })).toBeVisible()
})

test('what happens appears in the live feed without being asked for', async ({ people, service }) => {
  const ada = await people.signIn('ada', '/console/live')
  await expect(ada.getByRole('row').nth(1)).toBeVisible()
  await service.itemIn('submitted', 'Seen as it happens')
  await expect(ada.getByRole('row', { name: /submitted it draft → submitted Seen as it happens/i })).toBeVisible()
})
