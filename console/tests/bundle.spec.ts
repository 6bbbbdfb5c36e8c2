// A bundle is verified in the browser, by anyone who has one and the log's key: with the program's own verdict, and
// without a word to the service.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Page } from '@playwright/test'
import { choose, fileField, keyField, panel, sample, sampleKey, SAMPLES, verdict, verify } from './bundles'
import { expect, test } from './fixtures'
import { look } from './look'
import { PROGRAM, type Service } from './service'

/** The bundle of an item, as an auditor downloads it. */
async function bundleOf(service: Service, id: string, more = ''): Promise<{ name: string; mimeType: string; buffer: Buffer }> {
  const answer = await fetch(`${service.url}/v1/evidence?item=${id}${more}`, { headers: { Authorization: `Bearer ${service.tokens.ada}` } })
  expect(answer.status).toBe(200)
  return { name: 'evidence.zip', mimeType: 'application/zip', buffer: Buffer.from(await answer.arrayBuffer()) }
}

/** What the program says about the same file. */
function programSays(service: Service, bundle: Buffer, key: string): string {
  writeFileSync(service.path('bundle.zip'), bundle)
  return spawnSync(PROGRAM, ['evidence', 'verify', service.path('bundle.zip'), '--key', key, '--output', 'json'], { encoding: 'utf8' }).stdout
}

async function saved(page: Page): Promise<string> {
  const downloading = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Save the verdict' }).click()
  return readFileSync(await (await downloading).path(), 'utf8')
}

test('a bundle is verified without signing in, and without a network', async ({ people, service }) => {
  const id = await service.itemIn('succeeded', 'To be shown elsewhere')
  const [bundle, key] = [await bundleOf(service, id), await service.verifierKey()]
  const page = await people.visit('/')
  await page.getByRole('link', { name: 'Verify a bundle without signing in' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Verify a bundle')
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused()
  await choose(page, bundle)
  const requests: string[] = []
  page.on('request', (request) => requests.push(request.url()))
  await keyField(page).fill(key)
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds.')
  await expect(verdict(page)).toContainText('Not checked')
  // The check that someone else has dated the entries, not the control that times never run backwards.
  await expect(verdict(page)).toContainText('times: no witness key was given')
  await expect(verdict(page)).toContainText('witnesses: no witness key was given')
  await expect(page.getByRole('table', { name: 'Checks' }).getByRole('row', { name: 'by the rules' })).toContainText('holds')
  await page.getByText('To be shown elsewhere').click()
  await expect(page.getByText('ana (initiator), ben (approver), eli (executor), sol (security admin)')).toBeVisible()
  expect(requests).toEqual([])
  expect(await saved(page)).toBe(programSays(service, bundle.buffer, key))
  await look(page, 'bundle-holds')
  await page.context().setOffline(true)
  await fileField(page).setInputFiles(sample('whole'))
  await keyField(page).fill(sampleKey())
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds.')
  await page.context().setOffline(false)
  await page.getByRole('link', { name: 'Sign in' }).click()
  await expect(page.getByLabel('Your token')).toBeVisible()
})

test('a bundle without its documents holds as far as it could be checked, and what is open comes first', async ({ people, service }) => {
  const id = await service.itemIn('succeeded', 'Not to be read by everyone')
  const [bundle, key] = [await bundleOf(service, id, '&documents=none'), await service.verifierKey()]
  const page = await people.visit('/console/verify')
  await choose(page, bundle)
  await keyField(page).fill(key)
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds as far as it could be checked.')
  await expect(verdict(page)).toContainText('documents: 0 documents that match the digests in their entries')
  await expect(panel(page).getByRole('heading').first()).toHaveText('Open questions')
  await expect(page.getByRole('region', { name: 'Open questions' })).toContainText('whether title and payload fit the definition')
  await expect(page.getByText('title left out')).toBeVisible()
  expect(await saved(page)).toBe(programSays(service, bundle.buffer, key))
  await look(page, 'bundle-as-far-as-checked')
})

test('a forged bundle does not hold, and says where and why', async ({ people }) => {
  const page = await people.visit('/console/verify')
  await choose(page, sample('forged'))
  await keyField(page).fill(sampleKey())
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence does not hold.')
  await expect(page.getByRole('region', { name: /\d faults?$/ })).toContainText('ana took part in this item as initiator')
  await expect(page.getByRole('region', { name: /\d faults?$/ })).toContainText('[separation_of_duties]')
  // Its title would turn what comes after it around.
  await expect(page.getByRole('region', { name: '1 item' })).toContainText('Remove ⟨U+202E⟩nothing')
  expect(await saved(page)).toBe(readFileSync(new URL('forged.json', SAMPLES), 'utf8'))
  await look(page, 'bundle-does-not-hold')
})

test('a verifier that does not arrive, or is stopped, gives no verdict, and can be asked again', async ({ people }) => {
  const page = await people.visit('/console/verify')
  await page.route(/\.wasm$/, (route) => route.abort())
  await fileField(page).setInputFiles(sample('whole'))
  await keyField(page).fill(sampleKey())
  await verify(page)
  await expect(panel(page).getByRole('alert')).toHaveText('The verifier could not be loaded. Check the connection to the service, then try again.')
  await page.unroute(/\.wasm$/)
  let go = () => {}
  const held = new Promise<void>((resolve) => (go = resolve))
  await page.route(/\.wasm$/, async (route) => {
    await held
    await route.continue()
  })
  await verify(page)
  await expect(page.getByText('Loading the verifier…').last()).toBeVisible()
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect(panel(page).getByRole('alert')).toHaveText('Stopped. There is no verdict.')
  go()
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds.')
})

test('those who are signed in find it with the rest of the evidence', async ({ people, service }) => {
  const page = await people.signIn('eli', '/console/evidence')
  await choose(page, sample('whole'))
  await keyField(page).fill(sampleKey())
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds.')
  await look(page, 'bundle-among-evidence')
  await page.goto('/console/verify')
  await expect(keyField(page)).toHaveValue(sampleKey())
  await page.getByRole('main').getByRole('link', { name: 'Evidence' }).click()
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Evidence')
  expect(service.url).not.toBe('')
})

test('the thread of the verifier may compile it and send nothing; the page may not even compile it', async ({ browser, people, service }) => {
  const page = await people.visit('/console/verify')
  const answering = page.waitForResponse(/bundle\.worker-.*\.js$/)
  const starting = page.waitForEvent('worker')
  await fileField(page).setInputFiles(sample('whole'))
  const policy = (await (await answering).headerValue('content-security-policy')) ?? ''
  expect(policy).toBe("default-src 'none'; script-src 'wasm-unsafe-eval'; require-trusted-types-for 'script'; trusted-types 'none'")
  const worker = await starting
  const sent = await worker.evaluate((url) => fetch(url).then(() => 'sent', () => 'refused'), service.url)
  expect(sent).toBe('refused')
  // A page of its own without the watch: here a violation is the point.
  const other = await browser.newPage()
  await other.goto(`${service.url}/console/verify`)
  const compiled = await other.evaluate(() => {
    // From a timer, because what a debugger evaluates directly is exempt from the policy.
    const compile = () => WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => 'compiled', () => 'refused')
    return new Promise((resolve) => setTimeout(() => resolve(compile())))
  })
  expect(compiled).toBe('refused')
  await other.close()
})

test('it is said in German as well', async ({ people }) => {
  const page = await people.visit('/console/verify', { locale: 'de-AT' })
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('Ein Nachweispaket verifizieren')
  await page.getByLabel('Nachweispaket', { exact: true }).setInputFiles(sample('redacted'))
  await page.getByLabel('Prüfschlüssel des Protokolls, aus dem es stammt').fill(sampleKey())
  await page.getByRole('button', { name: 'Nachweispaket prüfen' }).click()
  await expect(page.getByRole('region', { name: 'Ein Nachweispaket verifizieren' }).getByRole('status').last()).toContainText('Der Nachweis hält, soweit er geprüft werden konnte.')
  await expect(page.getByRole('region', { name: 'Offene Fragen' })).toContainText('ob Titel und Inhalt zur Definition passen')
  await look(page, 'bundle-german')
})
