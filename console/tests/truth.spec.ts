// What is shown is what is decided, and what a decision does is what is said. Findings by their numbers.
import type { Page } from '@playwright/test'
import { expect, test } from './fixtures'
import type { Service } from './service'

const dialogOf = (page: Page) => page.getByRole('dialog')

async function openDialog(page: Page, id: string, action: string): Promise<void> {
  await page.goto(`/console/items/${id}`)
  await page.getByRole('group', { name: 'Actions' }).getByRole('button', { name: action, exact: true }).click()
  await expect(dialogOf(page).getByRole('region', { name: 'What this does' })).toBeVisible()
}

test('finding 2: names that differ by one character are shown apart, and what is outside the form in a block of its own', async ({ people, service }) => {
  const payload = { Operation: 'rm -rf /', 'operation\u200b': 'rm', Risk: 'high', 'rollback plan': 'none', rollback__plan: 'nothing' }
  const id = await service.itemIn('submitted', 'Disguised members', payload)
  const ben = await people.signIn('ben', `/console/items/${id}`)
  const others = ben.getByRole('region', { name: 'Other members' })
  await expect(others.locator('dt')).toHaveText(['Operation', 'Risk', 'operation⟨U+200B⟩', 'rollback plan', 'rollback__plan'])
  const official = ben.getByRole('region', { name: 'Content' }).locator('dl').first()
  await expect(official.locator('.key')).toHaveText(['operation', 'risk', 'purpose', 'rollback_plan'])
})

test('finding 3: votes of another action are not counted, and the first of two votes moves nothing', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'High risk', { risk: 'high' })
  const ben = await people.signIn('ben')
  await openDialog(ben, id, 'Approve')
  const effect = dialogOf(ben).getByRole('region', { name: 'What this does' })
  await expect(effect).toContainText('Your vote is 1 of 2.')
  await expect(effect).toContainText('The item stays submitted until there are enough votes.')
  await dialogOf(ben).getByRole('button', { name: 'Approve' }).click()
  await expect(ben.getByText('You approved it.').first()).toBeVisible()
  await expect(ben.getByText(/1 more of|bea/).first()).toBeVisible()
  expect((await service.item(id)).state).toBe('submitted')

  const bea = await people.signIn('bea')
  await openDialog(bea, id, 'Approve')
  await expect(dialogOf(bea)).toContainText('Your vote is 2 of 2.')
  await expect(dialogOf(bea)).toContainText('The item moves from submitted to approved.')
  await bea.keyboard.press('Escape')
  await openDialog(bea, id, 'Reject')
  await expect(dialogOf(bea)).toContainText('This ends the item. It cannot be undone.')
})

/** The answer about an item is altered on its way to the browser. */
async function alter(page: Page, id: string): Promise<void> {
  await page.route(`**/v1/items/${id}`, async (route) => {
    const answer = await route.fetch()
    const item = (await answer.json()) as { payload: Record<string, unknown> }
    item.payload.operation = 'SHOWN: pay 10'
    await route.fulfill({ response: answer, json: item })
  })
}

test('finding 4: a text that does not have its digest cannot be decided on', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Altered in transit', { operation: 'pay 1000000' })
  const ben = await people.signIn('ben')
  await alter(ben, id)
  await ben.goto(`/console/items/${id}`)
  await expect(ben.getByText('The text shown does not match its digest').first()).toBeVisible()
  await openDialog(ben, id, 'Approve')
  await expect(dialogOf(ben).getByRole('button', { name: 'Approve' })).toBeDisabled()
  await ben.keyboard.press('Control+Enter')
  expect((await service.item(id)).state).toBe('submitted')
})

test('findings 5 and 6: a long name takes no room from its value, and blanks in lists stay', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Squeezed', { ['k'.repeat(4_000)]: 'value', targets: ['a\nb', 'x   y', ' padded '] })
  const ben = await people.signIn('ben', `/console/items/${id}`)
  const value = ben.getByRole('region', { name: 'Other members' }).locator('dd').first()
  await expect(value).toHaveText('value')
  expect((await value.boundingBox())?.width ?? 0).toBeGreaterThan(300)
  expect(await ben.getByRole('region', { name: 'Content' }).locator('li bdi').allInnerTexts()).toEqual(['a↵\nb', 'x···y', '·padded·'])
})

test('finding 9: after a return the approver sees what changed, in another session too, and each edit shows its difference', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Returned and changed', { operation: 'transfer 100 EUR\nto account A' })
  await service.act('ben', id, 'return', { comment: 'Check the account.' })
  const { version } = await service.item(id)
  await edit(service, id, version, { operation: 'transfer 100000 EUR\nto account B' })
  await service.act('ana', id, 'submit')
  const ben = await people.signIn('ben', `/console/items/${id}`)
  const since = ben.getByRole('region', { name: 'Changed since you last saw it' })
  await expect(since).toContainText('Changed since you decided on it')
  await expect(since.locator('.line.gone')).toHaveText([/transfer 100 EUR/, /to account A/])
  await expect(since.locator('ins')).toHaveText(['100000', 'B'])
  await openDialog(ben, id, 'Approve')
  await expect(dialogOf(ben).locator('ins')).toHaveText(['100000', 'B'])
  await ben.keyboard.press('Escape')
  await ben.getByRole('region', { name: 'Timeline' }).getByText('What changed').click()
  await expect(ben.getByRole('region', { name: 'Timeline' }).locator('ins')).toHaveText(['100000', 'B'])
  // Once acknowledged, it is gone wherever this person signs in.
  await since.getByRole('button', { name: 'Mark as seen' }).click()
  await expect(since).toHaveCount(0)
  const elsewhere = await people.signIn('ben', `/console/items/${id}`)
  await expect(elsewhere.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Approve' })).toBeEnabled()
  await expect(elsewhere.getByRole('region', { name: 'Changed since you last saw it' })).toHaveCount(0)
})

async function edit(service: Service, id: string, version: number, payload: Record<string, unknown>): Promise<void> {
  const response = await fetch(`${service.url}/v1/items/${id}`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${service.tokens.ana}`, 'Content-Type': 'application/merge-patch+json', 'If-Match': `"${version}"` },
    body: JSON.stringify({ payload }),
  })
  expect(response.status, await response.text()).toBe(200)
}

test('findings 16 and 17: red stays red under the pointer, and success looks different from failure', async ({ people, service }) => {
  const id = await service.itemIn('executing', 'Dressed')
  const eli = await people.signIn('eli', `/console/items/${id}`)
  const colour = (name: string) => eli.getByRole('group', { name: 'Actions' }).getByRole('button', { name, exact: true }).evaluate((button) => `${getComputedStyle(button).backgroundColor} ${getComputedStyle(button).color}`)
  expect(await colour('Succeed')).not.toBe(await colour('Fail'))
  const other = await service.itemIn('submitted', 'Red')
  const ben = await people.signIn('ben')
  await openDialog(ben, other, 'Reject')
  const reject = dialogOf(ben).getByRole('button', { name: 'Reject' })
  const before = await reject.evaluate((button) => getComputedStyle(button).backgroundColor)
  await reject.hover()
  const hovered = await reject.evaluate((button) => getComputedStyle(button).backgroundColor)
  const accent = await ben.getByRole('dialog').evaluate((dialog) => getComputedStyle(dialog).getPropertyValue('--accent'))
  expect(before).not.toBe(accent)
  expect(redOf(hovered)).toBe(true)
})

/** More red than blue, however the browser writes it. */
function redOf(colour: string): boolean {
  const oklab = /oklab\(([\d.]+) ([-\d.]+) ([-\d.]+)\)/.exec(colour)
  if (oklab !== null) return Number(oklab[2]) > 0.05
  const [red = 0, , blue = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number)
  return red > blue
}

test('findings 18 and 19: an own lost answer is not called someone else, and an own decision not a change', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Lost answer')
  const ben = await people.signIn('ben')
  await openDialog(ben, id, 'Approve')
  await ben.route(`**/v1/items/${id}/transitions`, async (route) => {
    await route.fetch()
    await route.abort()
  }, { times: 1 })
  await dialogOf(ben).getByRole('button', { name: 'Approve' }).click()
  await expect(dialogOf(ben).getByRole('alert')).toContainText('Press again: if it was already done, it will not be done twice.')
  await expect(dialogOf(ben).getByRole('alert')).toBeInViewport()
  await expect(dialogOf(ben).getByText('The item changed while this was open')).toHaveCount(0)
  await dialogOf(ben).getByRole('button', { name: 'Approve' }).click()
  await expect(dialogOf(ben)).toHaveCount(0)
  await expect(ben.getByRole('region', { name: 'Changed since you last saw it' })).toHaveCount(0)
  const { history } = await service.call<{ history: { action: string }[] }>('ada', 'GET', `/v1/items/${id}/history`)
  expect(history.filter(({ action }) => action === 'approve')).toHaveLength(1)
})
