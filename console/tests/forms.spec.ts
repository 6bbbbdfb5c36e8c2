// Writing a draft: nothing typed is lost, what is wrong is said where it is, and what is stored is what was shown.
import type { Page } from '@playwright/test'
import { enter, expect, test } from './fixtures'
import { look } from './look'
import type { Service } from './service'

const title = (page: Page) => page.getByRole('textbox', { name: 'Title', exact: true })
const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
const save = (page: Page) => page.getByRole('button', { name: /^Save (as a|the) draft$/ })
const idOf = (page: Page) => new URL(page.url()).pathname.split('/')[3] ?? ''
const payloadOf = async (service: Service, id: string) => (await service.call<{ payload: Record<string, unknown> }>('ana', 'GET', `/v1/items/${id}`)).payload

async function saved(page: Page): Promise<void> {
  await expect(page.getByText(/^Saved/)).toBeVisible()
}

test('faults are at their fields, the first is focused, and each is gone when its field changes', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await title(ana).fill('Unfinished')
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  const alert = ana.getByRole('alert')
  await expect(alert).toContainText('4 problems to fix')
  await expect(alert).toContainText('Operation: This is required.')
  await expect(field(ana, 'Operation')).toBeFocused()
  await expect(field(ana, 'Operation')).toBeInViewport()
  await expect(field(ana, 'Operation')).toHaveAccessibleDescription(/This is required\./)
  const risk = ana.getByRole('radiogroup', { name: 'Risk' })
  await expect(risk).toHaveAttribute('aria-invalid', 'true')
  await field(ana, 'Operation').fill('true')
  await expect(field(ana, 'Operation')).toHaveAttribute('aria-invalid', 'false')
  await expect(alert).toContainText('3 problems to fix')
  await alert.getByRole('button', { name: 'Risk' }).click()
  await expect(risk.getByRole('radio').first()).toBeFocused()
  await risk.getByRole('radio', { name: 'low' }).check()
  await expect(risk).toHaveAttribute('aria-invalid', 'false')
  await field(ana, 'Purpose').fill('p')
  await field(ana, 'Rollback plan').fill('r')
  await expect(alert).toBeHidden()
  await expect(ana.getByText('Everything needed to submit is there.')).toBeVisible()
})

test('a radio group that is wrong is focused when it is the first', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await title(ana).fill('Without a risk')
  await field(ana, 'Operation').fill('true')
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  await expect(ana.getByRole('radiogroup', { name: 'Risk' }).getByRole('radio').first()).toBeFocused()
})

test('a title that is too long is counted and kept whole', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await title(ana).fill('😀'.repeat(190))
  await expect(ana.getByText('190 of 200 characters')).toBeVisible()
  await title(ana).fill('x'.repeat(203))
  await expect(ana.getByText('203 characters, 3 too many')).toBeVisible()
  await save(ana).click()
  await expect(title(ana)).toBeFocused()
  await expect(title(ana)).toHaveAccessibleDescription(/This must have 1 to 200 characters\./)
  await expect(title(ana)).toHaveValue('x'.repeat(203))
})

test('a content that is too large is the fault of the whole', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await title(ana).fill('Too large')
  await field(ana, 'Purpose').fill('x'.repeat(70_000))
  await expect(ana.getByText(/too many for the service to store/)).toBeVisible()
  await save(ana).click()
  await expect(ana.getByRole('alert')).toContainText('Content: This is larger than the 65,536 bytes that the service stores.')
  await expect(ana.getByRole('alert')).toBeFocused()
  await expect(ana.getByText('A JSON object with anything else')).toBeHidden()
})

test('another workflow keeps what was typed', async ({ people, service }) => {
  const ana = await people.signIn('ana', '/console/new')
  await ana.getByLabel('Workflow', { exact: true }).selectOption({ label: 'Emergency operation' })
  await title(ana).fill('Moved')
  await field(ana, 'Incident').fill('INC-7')
  await field(ana, 'Purpose').fill('why')
  await field(ana, 'Operation').fill('op')
  await ana.getByLabel('Workflow', { exact: true }).selectOption({ label: 'Controlled operation' })
  await expect(field(ana, 'Incident')).toBeHidden()
  await expect(title(ana)).toHaveValue('Moved')
  await expect(field(ana, 'Purpose')).toHaveValue('why')
  await expect(field(ana, 'Other members')).toHaveValue(/"incident": "INC-7"/)
  await save(ana).click()
  await saved(ana)
  expect(await payloadOf(service, idOf(ana))).toEqual({ incident: 'INC-7', purpose: 'why', operation: 'op' })
})

test('leaving is asked about in the console, and what was typed waits', async ({ people, service }) => {
  const ana = await people.signIn('ana', '/console/inbox')
  await ana.getByRole('link', { name: 'New item' }).click()
  await title(ana).fill('Half written')
  await ana.getByRole('link', { name: 'Workflows', exact: true }).click()
  const dialog = ana.getByRole('dialog', { name: 'Leave without saving?' })
  await dialog.getByRole('button', { name: 'Keep editing' }).click()
  await expect(title(ana)).toHaveValue('Half written')
  // Back, with the browser's own button.
  await ana.goBack()
  await expect(dialog).toBeVisible()
  await dialog.getByRole('button', { name: 'Keep editing' }).click()
  await expect(title(ana)).toHaveValue('Half written')
  await ana.goBack()
  await dialog.getByRole('button', { name: 'Leave; keep it for later' }).click()
  await expect(ana.getByRole('heading', { name: 'Inbox' })).toBeVisible()
  await ana.getByRole('link', { name: 'New item' }).click()
  await expect(title(ana)).toHaveValue('Half written')
  await expect(ana.getByText('What you typed here earlier is back.')).toBeVisible()
  await ana.reload()
  await expect(title(ana)).toHaveValue('Half written')
  await ana.getByRole('button', { name: 'Sign out' }).click()
  await enter(ana, service, 'ana')
  await ana.goto('/console/new')
  await expect(title(ana)).toHaveValue('Half written')
  await ana.getByRole('button', { name: 'Discard it' }).click()
  await expect(title(ana)).toHaveValue('')
  await ana.reload()
  await expect(title(ana)).toHaveValue('')
})

test('what was typed over an older version says so before it replaces a newer one', async ({ people, service }) => {
  const { id } = await service.draft('First')
  const ana = await people.signIn('ana', `/console/items/${id}/edit`)
  await title(ana).fill('Typed here')
  await service.call('ana', 'PATCH', `/v1/items/${id}`, { title: 'Saved elsewhere' })
  await ana.reload()
  await expect(title(ana)).toHaveValue('Typed here')
  await expect(ana.getByText(/was saved elsewhere since then; saving now replaces that version/)).toBeVisible()
  await ana.getByRole('button', { name: 'Discard it' }).click()
  await expect(title(ana)).toHaveValue('Saved elsewhere')
})

test('an idle end keeps the draft for the same person, and for no one else', async ({ people, service }) => {
  const page = await people.visit('about:blank')
  await page.clock.install()
  await page.goto('/console/new')
  await enter(page, service, 'ana')
  await title(page).fill('Written before lunch')
  await page.clock.fastForward('16:00')
  await expect(page.getByText('You were signed out because you were idle for a while.')).toBeVisible()
  await enter(page, service, 'ana')
  await expect(title(page)).toHaveValue('Written before lunch')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await enter(page, service, 'ada')
  expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain('Written before lunch')
})

test('an item is the beginning of another one', async ({ people, service }) => {
  const { id } = await service.draft('To be repeated', { targets: [' padded ', 'b'], ticket: 7 })
  const ana = await people.signIn('ana', `/console/new?from=${id}`)
  await expect(title(ana)).toHaveValue('To be repeated')
  await expect(ana.getByText('Copied from')).toBeVisible()
  await save(ana).click()
  await saved(ana)
  expect(idOf(ana)).not.toBe(id)
  expect(await payloadOf(service, idOf(ana))).toEqual(await payloadOf(service, id))
})

test('two controls never have one name, and every width shows the form without a flaw', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await ana.locator('summary').first().click()
  await ana.locator('summary').last().click()
  for (const name of ['Operation', 'Title', 'Risk', 'Workflow']) await expect(ana.getByLabel(name, { exact: true })).toHaveCount(1)
  await look(ana, 'form')
  await ana.getByRole('button', { name: 'Save and submit…' }).click()
  await expect(ana.getByRole('alert')).toBeVisible()
  await look(ana, 'form-faults')
})

test('what is written as JSON is stored as it is shown, or it is said why not', async ({ people, service }) => {
  const ana = await people.signIn('ana', '/console/new')
  await title(ana).fill('Exactly this')
  await ana.getByRole('button', { name: 'Write it as JSON' }).click()
  const raw = ana.getByLabel('The whole payload as one JSON object.')
  // A new item may have them.
  await raw.fill('{"n": null, "m": {"a": null}, "__proto__": {"x": 1}, "one": 1.0}')
  await save(ana).click()
  await saved(ana)
  expect(JSON.stringify(await payloadOf(service, idOf(ana)))).toBe('{"__proto__":{"x":1},"m":{"a":null},"n":null,"one":1}')
  await expect(raw).toHaveValue(/"one": 1\n/)
  await raw.fill('{"n": null, "m": {"a": null, "b": 2}, "l": [null, {"z": null}], "__proto__": {"x": 2}}')
  await save(ana).click()
  await saved(ana)
  expect(JSON.stringify(await payloadOf(service, idOf(ana)))).toBe('{"__proto__":{"x":2},"l":[null,{"z":null}],"m":{"a":null,"b":2},"n":null}')

  const refused: [string, RegExp][] = [
    ['{"n": null, "m": {"a": null, "c": null}}', /cannot store null in a member when a draft is edited: m, c\./],
    ['{\n  "operation": "a",\n  "operation": "b"\n}', /Line 3, column 3: “operation” is already given in line 2\./],
    ['{"big": 9007199254740993}', /Line 1, column 9: 9007199254740993 is beyond/],
    ['{"long": 0.1234567890123456789}', /it would be stored as 0\.12345678901234568/],
    ['{"n": [1, 2,]}', /Line 1, column 13: this is not valid JSON; “\]” cannot be here\./],
    ['[1]', /This is not a JSON object/],
  ]
  const before = JSON.stringify(await payloadOf(service, idOf(ana)))
  for (const [text, fault] of refused) {
    await raw.fill(text)
    await save(ana).click()
    await expect(raw).toBeFocused()
    await expect(raw).toHaveAccessibleDescription(fault)
    await expect(raw).toHaveValue(text)
  }
  expect(JSON.stringify(await payloadOf(service, idOf(ana)))).toBe(before)
})

test('editing one field leaves every other as it is stored', async ({ people, service }) => {
  const payload = { targets: [' padded ', 'x'], links: [], security_impact: 'a\r\nb', purpose: ' ', extra: { list: [' y '] } }
  const { id } = await service.draft('Left alone', payload)
  const before = await payloadOf(service, id)
  const ana = await people.signIn('ana', `/console/items/${id}/edit`)
  await expect(field(ana, 'Targets')).toHaveValue(' padded \nx')
  await expect(field(ana, 'Security impact')).toHaveValue('"a\\r\\nb"')
  await field(ana, 'Rollback plan').fill('another')
  await save(ana).click()
  await saved(ana)
  expect(await payloadOf(service, id)).toEqual({ ...before, rollback_plan: 'another' })
})

test('a member that has a field is not overwritten from the other members', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await title(ana).fill('Twice')
  await field(ana, 'Operation').fill('shown')
  await ana.locator('summary').last().click()
  await field(ana, 'Other members').fill('{"operation": "stored"}')
  await save(ana).click()
  await expect(field(ana, 'Other members')).toHaveAccessibleDescription(/“operation” has a field of its own: Operation\./)
})

test('an artifact says which of its parts is missing, at that part', async ({ people, service }) => {
  const id = await service.itemIn('executing', 'With artifacts')
  const eli = await people.signIn('eli', `/console/items/${id}`)
  await eli.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Succeed' }).click()
  const dialog = eli.getByRole('dialog')
  await dialog.getByLabel('Hash a file…').setInputFiles({ name: 'run.log', mimeType: 'text/plain', buffer: Buffer.from('done\n') })
  const where = dialog.getByRole('group', { name: 'Artifact 1' }).getByLabel('Where it is kept')
  await expect(where).toBeFocused()
  await expect(where).toHaveAttribute('aria-required', 'true')
  await dialog.getByRole('button', { name: 'Succeed' }).click()
  await expect(where).toBeFocused()
  await expect(where).toHaveAttribute('aria-invalid', 'true')
  await expect(where).toHaveAccessibleDescription('This must have 1 to 1,000 characters.')
  await where.fill('https://logs.example.org/run')
  await expect(where).toHaveAttribute('aria-invalid', 'false')
  await dialog.getByRole('button', { name: 'Succeed' }).click()
  await expect.poll(async () => (await service.item(id)).state).toBe('succeeded')
})
