// People who are known by the certificate in their browser: no token to ask for, to keep or to send.
import type { Browser, Page } from '@playwright/test'
import { Certificates } from './certificates'
import { expect, People, test } from './fixtures'
import { look } from './look'

interface Stage {
  certificates: Certificates
  people: People
}

async function stage(browser: Browser, play: (stage: Stage) => Promise<void>) {
  const certificates = new Certificates()
  const { service } = certificates
  await service.start()
  const people = new People(browser, service)
  try {
    await play({ certificates, people })
    await people.settle()
  } finally {
    await service.remove()
  }
}

const CONTINUE = 'Continue with your certificate'

async function visitAs({ certificates, people }: Stage, name: string, days: number, path = '/'): Promise<Page> {
  return people.visit(path, { ignoreHTTPSErrors: true, clientCertificates: [certificates.issue(name, days)] })
}

async function signInAs(page: Page, sentence: string): Promise<void> {
  await page.getByRole('button', { name: CONTINUE }).click()
  await expect(page.getByText(sentence)).toBeVisible()
  await page.getByRole('button', { name: 'Yes, continue' }).click()
  await expect(page.locator('#main')).toBeVisible()
}

test('a certificate is all one needs, and there is no token anywhere', async ({ browser }) => {
  await stage(browser, async (stage) => {
    const page = await visitAs(stage, 'ana', 5, '/console/new')
    const headers: (string | undefined)[] = []
    page.on('request', (request) => void headers.push(request.headers().authorization))
    await expect(page.getByRole('button', { name: CONTINUE })).toBeFocused()
    await expect(page.getByLabel('Your token')).toHaveCount(0)
    await look(page, 'certificate')
    await signInAs(page, 'You are ana, acting as initiator')
    await expect(page.getByText(/^Your certificate stops working on \d+ \w+, in 5 days\. Ask for a new one\.$/)).toBeVisible()
    await page.getByLabel('Title').fill('Written under a certificate')
    await page.getByRole('button', { name: 'Save as a draft' }).click()
    await expect(page.getByText(/^Saved/)).toBeVisible()
    expect(headers.length).toBeGreaterThan(0)
    expect(headers.filter((value) => value !== undefined)).toEqual([])
    expect(await page.evaluate(() => sessionStorage.getItem('pilot.token'))).toBeNull()
    await page.goto('/console/items')
    await expect(page.getByRole('link', { name: 'Written under a certificate' })).toBeVisible()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await expect(page.getByText('You are signed out in this tab. The browser still has your certificate.')).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
    await page.reload()
    await expect(page.getByRole('button', { name: CONTINUE })).toBeVisible()
  })
})

test('without a certificate that counts, one is told which steps to take', async ({ browser }) => {
  await stage(browser, async (stage) => {
    const none = await stage.people.visit('/', { ignoreHTTPSErrors: true })
    const stranger = await visitAs(stage, 'eve', 5)
    for (const page of [none, stranger]) {
      await page.getByRole('button', { name: CONTINUE }).click()
      await expect(page.getByRole('alert')).toContainText('Your browser did not present a certificate that this service knows.')
      await expect(page.getByRole('alert')).toContainText('Open this page again, and choose your certificate')
      await expect(page.getByRole('button', { name: CONTINUE })).toBeEnabled()
    }
    await look(none, 'certificate-refused')
  })
})

test('a page of another site cannot act with the certificate of whoever looks at it', async ({ browser }) => {
  await stage(browser, async (stage) => {
    const { service } = stage.certificates
    const page = await visitAs(stage, 'sol', 400, '/console/live')
    await signInAs(page, 'You are sol, acting as security admin')
    const elsewhere = service.url.replace(/:\d+$/, ':1/')
    await page.route(elsewhere, (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>Elsewhere</title>' }))
    await page.goto(elsewhere)
    const answered = page.waitForResponse('**/revocation')
    await page.evaluate(async (url) => {
      await fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include' })
    }, `${service.url}/v1/credentials/x509:${'0'.repeat(32)}/revocation`)
    expect((await answered).status()).toBe(401)
    // The very same from the service's own page is done: it is the page that makes the difference.
    await page.goto('/console/live')
    const own = await page.evaluate(async (path) => (await fetch(path, { method: 'POST' })).status, `/v1/credentials/x509:${'0'.repeat(32)}/revocation`)
    expect(own).toBe(201)
  })
})

test('a revoked certificate ends its own sessions, and whoever revokes it is told what its owner has left', async ({ browser }) => {
  await stage(browser, async (stage) => {
    const old = await visitAs(stage, 'ben', 100)
    await signInAs(old, 'You are ben, acting as approver')
    const ben = await visitAs(stage, 'ben', 400)
    await signInAs(ben, 'You are ben, acting as approver')
    const sol = await visitAs(stage, 'sol', 400, '/console/actors')
    await signInAs(sol, 'You are sol, acting as security admin')
    const dialog = sol.getByRole('dialog')
    const revoke = async (until: string, ...sentences: string[]) => {
      const row = sol.getByRole('region', { name: 'Credentials' }).getByRole('row').filter({ hasText: 'ben' }).filter({ hasText: until })
      await expect(row).toContainText(/x509:[0-9a-f]{32}/)
      await row.getByRole('button', { name: /^Revoke/ }).click()
      for (const sentence of sentences) await expect(dialog).toContainText(sentence)
      await dialog.getByRole('button', { name: 'Revoke', exact: true }).click()
      await expect(sol.getByText(/is revoked\. This is entry \d+/)).toBeVisible()
      await expect(row).toContainText('revoked')
    }
    await look(sol, 'certificates')
    await revoke('in 100 days', 'Anyone who uses it is signed out immediately', 'ben can still sign in with x509:')
    await expect(old.getByText('The service no longer accepts your certificate.')).toBeVisible()
    await ben.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Items' }).click()
    await expect(ben.getByRole('heading', { name: 'Items' })).toBeVisible()
    await revoke('in 400 days', 'ben is signed out everywhere immediately', 'This cannot be undone; ben needs a new certificate.')
    await expect(ben.getByText('The service no longer accepts your certificate.')).toBeVisible()
  })
})
