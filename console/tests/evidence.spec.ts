// What an auditor takes away, and what anyone checks here.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { expect, People, test } from './fixtures'
import { look } from './look'
import { Service } from './service'

const keyField = (page: Page) => page.getByLabel("The log's verifier key")
const verify = (page: Page) => page.getByRole('button', { name: 'Verify', exact: true }).click()
const verdict = (page: Page) => page.getByRole('region', { name: 'Verify an item here' }).getByRole('status')

/** Changes what the service answers on the way to the browser. */
async function alter(page: Page, url: RegExp, change: (answer: never) => unknown): Promise<void> {
  await page.route(url, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: change((await response.json()) as never) })
  })
}

test('an item is verified here, with everything that is said about it', async ({ people, service }) => {
  const id = await service.itemIn('cleared', 'To be verified')
  await service.call('ben', 'POST', `/v1/items/${id}/comments`, { text: 'A word about it.' })
  const page = await people.signIn('ada', `/console/items/${id}`)
  await page.getByRole('link', { name: 'Verify or download the evidence' }).click()
  await keyField(page).fill(await service.verifierKey())
  await verify(page)
  await expect(verdict(page)).toContainText('Verified: To be verified')
  await expect(verdict(page)).toContainText('All 5 entries of this item are in the log')
  await expect(verdict(page)).toContainText('the title and content shown on its page, 1 content it has had, 1 comment, 1 set of inputs')
  await expect(page.getByText('Not checked here: whether every decision followed the rules')).toBeVisible()
  // What is good is folded.
  await expect(page.getByText('Each of 5 lines of the timeline has its entry')).toBeHidden()
  await page.getByText('The entries and the timeline').click()
  await expect(page.getByText('Each of 5 lines of the timeline has its entry')).toBeVisible()
  await page.getByText(/Entry \d+ is in the tree/).first().click()
  await expect(page.getByText(`"item":"${id}"`).first()).toBeVisible()
  await look(page, 'evidence-verified')
})

test('the log is followed from the proof to the newest checkpoint', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Followed')
  const page = await people.signIn('ada', `/console/evidence?item=${id}`)
  // Others go on working between the proof and the newest checkpoint.
  await page.route(/\/v1\/log\/checkpoint/, async (route) => {
    await service.draft('Meanwhile')
    await route.continue()
  })
  await keyField(page).fill(await service.verifierKey())
  await verify(page)
  await expect(verdict(page)).toContainText(/From [\d,]+ to [\d,]+ entries the log has only grown\./)
})

test('an item that is altered on the way does not match what was decided on', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'To be altered', { operation: 'pay 1000' })
  const page = await people.signIn('ben', `/console/evidence?item=${id}`)
  await alter(page, new RegExp(`/v1/items/${id}$`), (item: { payload: object }) => ({ ...item, payload: { ...item.payload, operation: 'pay 10' } }))
  await keyField(page).fill(await service.verifierKey())
  await verify(page)
  await expect(verdict(page)).toContainText(/Not verified\. 1 of \d+ checks failed\./)
  await expect(page.getByText('The title or content shown does not match the digest in the log: what you see is not what people decided on.')).toBeVisible()
  await look(page, 'evidence-failed')
})

test('a comment, an earlier content or an entry that is altered on the way is found out', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Altered in parts')
  await service.call('ana', 'POST', `/v1/items/${id}/comments`, { text: 'As agreed.' })
  const page = await people.signIn('ada', `/console/evidence?item=${id}`)
  await keyField(page).fill(await service.verifierKey())
  type Line = { comment: string | null }
  const cases: [RegExp, (answer: never) => unknown, RegExp][] = [
    [/\/history/, (page: { history: Line[] }) => ({ ...page, history: page.history.map((line) => (line.comment === null ? line : { ...line, comment: 'As forced.' })) }), /The text delivered does not have the digest in the log/],
    [/\/contents\//, (content: object) => ({ ...content, title: 'Another' }), /The text delivered does not have the digest in the log/],
    [/\/v1\/events\?/, (page: { events: { actor_id?: string }[] }) => ({ ...page, events: page.events.map((entry) => (entry.actor_id === 'ana' ? { ...entry, actor_id: 'eve' } : entry)) }), /The entry delivered does not have the proved hash/],
  ]
  for (const [url, change, fault] of cases) {
    await alter(page, url, change)
    await verify(page)
    await expect(verdict(page)).toContainText('Not verified.')
    await expect(page.getByRole('region', { name: 'What failed' }).getByText(fault).first()).toBeVisible()
    await page.unroute(url)
  }
  await verify(page)
  await expect(verdict(page)).toContainText('Verified: Altered in parts')
})

test('a slip in the key or the id is the fault of its field, and no verdict', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Typed by hand')
  const key = await service.verifierKey()
  const page = await people.signIn('ada', `/console/evidence?item=${id}`)
  const letter = key.at(-3) === 'A' ? 'B' : 'A'
  await keyField(page).fill(key.slice(0, -3) + letter + key.slice(-2))
  await verify(page)
  await expect(keyField(page)).toBeFocused()
  await expect(keyField(page)).toHaveAccessibleDescription(/This is not a verifier key\./)
  await expect(page.getByText('Not verified')).toBeHidden()
  await keyField(page).fill(key)
  await expect(keyField(page)).toHaveAttribute('aria-invalid', 'false')
  const ids = page.getByLabel('Item id').first()
  await ids.fill(id.slice(0, -1))
  await verify(page)
  await expect(ids).toBeFocused()
  await expect(ids).toHaveAccessibleDescription(/This is not the id of an item\./)
  await ids.fill(`${id.slice(0, -4)}0000`)
  await verify(page)
  await expect(ids).toHaveAccessibleDescription('There is no item with this id.')
  await ids.fill(id)
  await verify(page)
  await expect(verdict(page)).toContainText('Verified: Typed by hand')
  // A verdict is gone as soon as it would be about something else.
  await ids.press('End')
  await ids.press('Backspace')
  await expect(verdict(page)).toBeEmpty()
})

test('the key of another log verifies nothing', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Of this log')
  const page = await people.signIn('ada', `/console/evidence?item=${id}`)
  await keyField(page).fill('log.example.org+711fd88a+AYWtcnqezBtHlBgm3RRoKFLeTfCpCoCvV7mnKb/Y5dFk')
  await verify(page)
  await expect(verdict(page)).toContainText('Not verified.')
  await expect(page.getByText('this is the key of another log, or the checkpoint was changed').first()).toBeVisible()
})

test('what was erased is said, and the rest is verified', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    const { id } = await service.draft('To be erased')
    await service.call('ana', 'POST', `/v1/items/${id}/comments`, { text: 'Forget me.' })
    await service.act('ana', id, 'withdraw')
    await service.stop()
    await service.run('evidence', 'erase', '--item', id, '--why', 'a test')
    await service.start()
    const page = await people.signIn('ada', `/console/evidence?item=${id}`)
    await keyField(page).fill(await service.verifierKey())
    await verify(page)
    await expect(verdict(page)).toContainText('Verified: (erased)')
    await expect(verdict(page)).toContainText('Not verified: 2 texts that were erased, of which nothing is left to compare.')
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('a bundle is downloaded with its name, and a refusal is shown in words', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'To be taken away')
  const page = await people.signIn('ada', `/console/evidence?item=${id}`)
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download' }).click()
  const download = await downloading
  expect(download.suggestedFilename()).toMatch(/^evidence-[\w.-]+\.zip$/)
  const bytes = readFileSync(await download.path())
  expect(bytes.subarray(0, 2).toString()).toBe('PK')
  await expect(page.getByText(`Saved as ${download.suggestedFilename()}`)).toBeVisible()
  await page.route(/\/v1\/evidence\?from=/, (route) =>
    route.fulfill({ status: 503, contentType: 'application/problem+json', body: JSON.stringify({ type: '', title: 'Unavailable', status: 503, detail: 'busy', code: 'unavailable', request_id: 'r-1' }) }),
  )
  await page.getByRole('radio', { name: 'A period' }).check()
  await page.getByLabel('From').fill('2026-01-01T00:00')
  await page.getByLabel('To', { exact: true }).fill('2026-12-31T00:00')
  await page.getByRole('button', { name: 'Download' }).click()
  await expect(page.getByRole('alert')).toContainText('The service cannot write right now.')
})

test('a period is chosen by name, stays in its panel at every width, and ends after it begins', async ({ people }) => {
  const page = await people.signIn('ada', '/console/evidence')
  await page.getByRole('radio', { name: 'A period' }).check()
  const [from, to] = [page.getByLabel('From'), page.getByLabel('To', { exact: true })]
  for (const name of ['Today', 'Last 7 days', 'Last 30 days', 'This month']) {
    await page.getByRole('button', { name }).click()
    const period = [await from.inputValue(), await to.inputValue()] as const
    expect(Date.parse(period[0])).toBeLessThan(Date.parse(period[1]))
  }
  const asking = page.waitForRequest(/\/v1\/evidence\?from=/)
  await page.getByRole('button', { name: 'Last 7 days' }).click()
  await page.getByRole('button', { name: 'Download' }).click()
  const asked = new URL((await asking).url()).searchParams
  expect(Math.round((Date.parse(asked.get('to') ?? '') - Date.parse(asked.get('from') ?? '')) / 86_400_000)).toBe(7)
  await from.fill('2026-12-31T00:00')
  await to.fill('2026-01-01T00:00')
  await page.getByRole('button', { name: 'Download' }).click()
  await expect(to).toBeFocused()
  await expect(to).toHaveAccessibleDescription(/This must be later than “From”\./)
  const panel = page.getByRole('region', { name: 'Download a bundle' })
  for (const width of [1280, 1000, 920, 760, 360]) {
    await page.setViewportSize({ width, height: 860 })
    const [inner, outer] = [await to.boundingBox(), await panel.boundingBox()]
    expect((inner?.x ?? 0) + (inner?.width ?? 0), `at ${width}`).toBeLessThanOrEqual((outer?.x ?? 0) + (outer?.width ?? 0))
  }
})

test('only auditors are offered bundles, and only two roles see the actors', async ({ people }) => {
  const page = await people.signIn('eli', '/console/evidence')
  await expect(page.getByText('Bundles are for auditors. Everyone can verify an item on this page.')).toBeVisible()
  await page.goto('/console/actors')
  await expect(page.getByText('Only security admins and auditors can see the actors.')).toBeVisible()
  await expect(page.getByRole('link', { name: 'Actors' })).toBeHidden()
})
