// What an auditor takes away, and what an auditor checks here.
import { readFileSync } from 'node:fs'
import { expect, test } from './fixtures'

test('a proof is verified here, and a wrong key is found out', async ({ people, service }) => {
  const id = await service.itemIn('approved', 'To be verified')
  const key = await service.verifierKey()
  const page = await people.signIn('ada', `/console/items/${id}`)
  await page.getByRole('link', { name: 'Verify in the log' }).click()
  await page.getByLabel("The log's verifier key").fill(key)
  await page.getByRole('button', { name: 'Verify' }).click()
  await expect(page.getByRole('status').getByText('Verified', { exact: true })).toBeVisible()
  await expect(page.getByText('Each of 3 lines of the timeline has its entry')).toBeVisible()
  await page.getByText(/Entry \d+ is in the tree/).first().click()
  await expect(page.getByText(`"item":"${id}"`).first()).toBeVisible()

  const letter = key.at(-3) === 'A' ? 'B' : 'A'
  await page.getByLabel("The log's verifier key").fill(key.slice(0, -3) + letter + key.slice(-2))
  await page.getByRole('button', { name: 'Verify' }).click()
  await expect(page.getByText('Not verified.')).toBeVisible()
})

test('an entry that was tampered with on the way is found out', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'To be tampered with')
  const page = await people.signIn('ada', `/console/evidence?item=${id}`)
  await page.route(/\/v1\/events\?.*limit=1$/, async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, body: (await answer.text()).replace('"ana"', '"eve"') })
  })
  await page.getByLabel("The log's verifier key").fill(await service.verifierKey())
  await page.getByRole('button', { name: 'Verify' }).click()
  await expect(page.getByText('Not verified.')).toBeVisible()
  await expect(page.getByText('The entry delivered does not have the proved hash.').first()).toBeVisible()
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
  await expect(page.getByRole('alert')).toContainText('r-1')
})

test('only auditors are offered bundles, and only two roles see the actors', async ({ people }) => {
  const page = await people.signIn('eli', '/console/evidence')
  await expect(page.getByText('Bundles are for auditors.')).toBeVisible()
  await page.goto('/console/actors')
  await expect(page.getByText('Only security admins and auditors can see the actors.')).toBeVisible()
  await expect(page.getByRole('link', { name: 'Actors' })).toBeHidden()
})
