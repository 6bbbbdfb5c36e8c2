// What people met in their first week and must not meet again, where no other test is about it.
import { expect, test } from './fixtures'

test('findings 20 and 21: faults are sentences with their field, and no pointers', async ({ people, service }) => {
  const id = await service.itemIn('executing', 'Faults in words')
  const eli = await people.signIn('eli', `/console/items/${id}`)
  await eli.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Succeed' }).click()
  const dialog = eli.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Add manually' }).click()
  await dialog.getByRole('button', { name: 'Succeed' }).click()
  // Finding 24: what must be given is said where it must be given.
  await expect(dialog.getByText(/required|must/i).first()).toBeInViewport()
  await expect(dialog.getByText(/\/inputs|See `errors`/)).toHaveCount(0)
})

test('finding 22: a second emergency is refused for what it is', async ({ people, service }) => {
  const payload = { purpose: 'p', operation: 'o', risk: 'high', rollback_plan: 'r', incident: 'INC-1' }
  await service.call('ana', 'POST', '/v1/items', { workflow: 'emergency-operation', title: 'First', payload })
  const ana = await people.signIn('ana', '/console/new')
  await ana.getByLabel('Workflow', { exact: true }).selectOption('emergency-operation')
  await ana.getByLabel('Title').fill('Second')
  await ana.getByRole('button', { name: 'Save as a draft' }).click()
  const alert = ana.getByRole('alert').filter({ hasText: 'ana has another' })
  await expect(alert).toContainText('This is not possible in the present state.')
  await expect(ana.getByText('Someone else was faster')).toHaveCount(0)
})

test('finding 27: the console is at its root as well', async ({ service }) => {
  for (const path of ['/console', '/console/']) {
    const answer = await fetch(service.url + path)
    expect([path, answer.status, answer.headers.get('content-type')?.startsWith('text/html')]).toEqual([path, 200, true])
  }
})

test('finding 32: an item is new to someone once', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'New once')
  const ben = await people.signIn('ben', `/console/items/${id}`)
  const actions = ben.getByRole('group', { name: 'Actions' })
  await actions.getByRole('button', { name: 'Approve' }).click()
  await expect(ben.getByRole('dialog').getByText('You have not seen this item before.')).toBeVisible()
  await ben.keyboard.press('Escape')
  await ben.reload()
  await actions.getByRole('button', { name: 'Approve' }).click()
  await expect(ben.getByRole('dialog').getByText(/Unchanged since you looked at it/)).toBeVisible()
  await expect(ben.getByText('You have not seen this item before.')).toHaveCount(0)
})

test('finding 34: nothing is said to be below or beside what moves with the width', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/evidence')
  await expect(ana.getByRole('heading', { level: 1, name: 'Evidence' })).toBeVisible()
  await expect(ana.getByText(/\b(below|above|to the left|to the right)\b/)).toHaveCount(0)
})

test('finding 35: deciding acknowledges what was decided on, and no later change of others', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Changed by others', { risk: 'high', operation: 'one' })
  const ben = await people.signIn('ben', `/console/items/${id}`)
  await ben.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Approve' }).click()
  await ben.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
  await expect(ben.getByText('You approved it.').first()).toBeVisible()
  await service.act('bea', id, 'return', { comment: 'Two, please.' })
  const { version } = await service.item(id)
  const response = await fetch(`${service.url}/v1/items/${id}`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${service.tokens.ana}`, 'Content-Type': 'application/merge-patch+json', 'If-Match': `"${version}"` },
    body: JSON.stringify({ payload: { operation: 'two' } }),
  })
  expect(response.status).toBe(200)
  await service.act('ana', id, 'submit')
  const since = ben.getByRole('region', { name: 'Changed since you last saw it' })
  await expect(since.locator('.line.new')).toContainText('two')
})

test('two thousand entries in the live view leave the page as large as five hundred', async ({ people, service }) => {
  test.setTimeout(300_000)
  const ids = [await service.draft('Many entries'), await service.draft('Many more')].map(({ id }) => id)
  const ada = await people.signIn('ada', '/console/live')
  const comment = (number: number) => service.call('ana', 'POST', `/v1/items/${ids[number % 2]}/comments`, { text: `comment ${number}` })
  for (let number = 0; number < 2_000; number += 20) await Promise.all(Array.from({ length: 20 }, (_, at) => comment(number + at)))
  await expect.poll(() => ada.getByRole('row').count(), { timeout: 60_000 }).toBeGreaterThan(200)
  expect(await ada.getByRole('row').count()).toBeLessThanOrEqual(501)
})
