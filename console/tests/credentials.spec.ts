// Credentials have an end: what people are told before it, when it comes, and how a security admin brings it about.
import type { Browser, Page } from '@playwright/test'
import { enter, expect, People, test } from './fixtures'
import { look } from './look'
import { Service, type Person } from './service'

const DAY = 86_400
const PRODUCTION = '[identity]\nmechanism = "credential_file"\n'

interface Stage {
  service: Service
  people: People
}

async function stage(browser: Browser, lives: Partial<Record<Person, number>>, play: (stage: Stage) => Promise<void>) {
  const service = new Service(PRODUCTION, lives)
  await service.start()
  const people = new People(browser, service)
  try {
    await play({ service, people })
    await people.settle()
  } finally {
    await service.remove()
  }
}

interface Revoked {
  index: number
  actor_id: string
  details: { credential: { credential_id: string } }
}

async function revocations(service: Service): Promise<Revoked[]> {
  const { events } = await service.call<{ events: (Revoked & { type: string })[] }>('ada', 'GET', '/v1/events?limit=200')
  return events.filter(({ type }) => type === 'credential.revoked')
}

function rowOf(page: Page, id: string) {
  return page.getByRole('row').filter({ has: page.getByRole('cell', { name: id, exact: true }) })
}

test('the end of a token is said on every screen for two weeks, and plainly on the last day', async ({ browser }) => {
  await stage(browser, { ana: 4.5 * DAY, ben: 10.5 * 3_600 }, async ({ people, service }) => {
    const ana = await people.signIn('ana')
    const said = ana.getByText(/^Your token stops working on \d+ \w+, in 4 days\. Ask for a new one\.$/)
    for (const screen of ['Items', 'Workflows', 'Live']) {
      await ana.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: screen }).click()
      await expect(said).toBeVisible()
    }
    await ana.reload()
    await expect(said).toBeVisible()
    await look(ana, 'ends-soon')
    const ben = await people.signIn('ben')
    await expect(ben.getByText(/^Your token stops working on \w+ at \d\d:\d\d, in 10 hours\.$/)).toBeVisible()
    await expect(ben.getByText('after that you cannot sign in')).toBeVisible()
    await look(ben, 'ends-today')
    // With ninety days left there is nothing to say. It is asked for when the page is loaded.
    const ada = await people.visit()
    await enter(ada, service, 'ada')
    const answered = ada.waitForResponse((response) => response.url().endsWith('/v1/session'))
    await ada.reload()
    await answered
    await expect(ada.getByRole('heading', { name: 'Inbox' })).toBeVisible()
    await expect(ada.getByText('stops working')).toBeHidden()
  })
})

test('a token that comes to its end while someone writes takes nothing along', async ({ browser }) => {
  await stage(browser, { ana: 15 }, async ({ people, service }) => {
    const page = await people.signIn('ana', '/console/new')
    await page.getByLabel('Title').fill('Written at three in the morning')
    await expect(page.getByText('Your token has expired.')).toBeVisible()
    expect(await page.evaluate(() => Object.keys({ ...sessionStorage }))).toEqual(['pilot.typed'])
    service.lives = {}
    await service.rotate('ana')
    await enter(page, service, 'ana')
    await expect(page.getByLabel('Title')).toHaveValue('Written at three in the morning')
  })
})

test('a security admin revokes a token, and its owner is out at once with nothing lost', async ({ browser }) => {
  await stage(browser, { bea: 3 * DAY, eli: -DAY }, async ({ people, service }) => {
    const ana = await people.signIn('ana', '/console/new')
    await ana.getByLabel('Title').fill('Half a sentence')
    const sol = await people.signIn('sol', '/console/actors')
    const [id, soon, over] = [service.credentialOf('ana'), service.credentialOf('bea'), service.credentialOf('eli')]
    // What needs attention comes first.
    await expect(sol.getByRole('region', { name: 'Credentials' }).getByRole('row').nth(1)).toContainText(over)
    await expect(rowOf(sol, over)).toContainText('has no other: locked out')
    await expect(sol.getByRole('region', { name: 'Credentials' }).getByRole('row').nth(2)).toContainText(soon)
    await expect(rowOf(sol, soon)).toContainText('expires soon')
    await expect(sol.getByText('2 need attention')).toBeVisible()
    await look(sol, 'credentials')
    await sol.getByRole('button', { name: `Revoke ${id}` }).click()
    const dialog = sol.getByRole('dialog', { name: 'Revoke this credential?' })
    await expect(dialog).toContainText('ana is signed out everywhere immediately, including live views.')
    await expect(dialog).toContainText('This cannot be undone; ana needs a new token.')
    await expect(dialog).toContainText('After this nobody can sign in as initiator: it is the last one.')
    await expect(dialog.getByText('This is one of your own.')).toBeHidden()
    await look(sol, 'revoke')
    await dialog.getByLabel('Reason').fill('The laptop was stolen')
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click()
    const done = sol.getByText(/is revoked\. This is entry \d+ of the ledger\./)
    await expect(done).toBeVisible()
    await expect(rowOf(sol, id)).toContainText('revoked')
    await expect(sol.getByRole('button', { name: `Revoke ${id}` })).toHaveCount(0)
    const entry = Number(/entry (\d+)/.exec((await done.textContent()) ?? '')?.[1])
    expect(await revocations(service)).toMatchObject([{ index: entry, actor_id: 'sol', details: { credential: { credential_id: id } } }])
    await look(sol, 'revoked')

    await expect(ana.getByText('The service no longer accepts your token.')).toBeVisible()
    expect(await ana.evaluate(() => Object.keys({ ...sessionStorage }))).toEqual(['pilot.typed'])
    await service.rotate('ana')
    await enter(ana, service, 'ana')
    await expect(ana.getByLabel('Title')).toHaveValue('Half a sentence')

    for (const [screen, words] of [['live', `revoked a credential ${id} of ana`], ['overview', `sol revoked a credential: ${id} of ana`]]) {
      await sol.goto(`/console/${screen}`)
      await expect(sol.getByText(words ?? '')).toBeVisible()
      await look(sol, `credentials-${screen}`)
    }
  })
})

test('an answer that is lost on the way revokes nothing twice', async ({ browser }) => {
  await stage(browser, {}, async ({ people, service }) => {
    const sol = await people.signIn('sol', '/console/actors')
    const keys: (string | undefined)[] = []
    await sol.route('**/revocation', async (route) => {
      keys.push(route.request().headers()['idempotency-key'])
      if (keys.length > 1) return route.continue()
      await route.fetch()
      await route.abort()
    })
    await sol.getByRole('button', { name: `Revoke ${service.credentialOf('eli')}` }).click()
    const revoke = sol.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true })
    await revoke.click()
    await expect(sol.getByText('The connection broke before an answer came.')).toBeVisible()
    await revoke.click()
    await expect(sol.getByText(/is revoked\. This is entry \d+/)).toBeVisible()
    expect(await revocations(service)).toHaveLength(1)
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys[1]).toBe(keys[0])
  })
})

test('by keys alone: one key too many revokes nothing, and the outcome has the focus', async ({ browser }) => {
  await stage(browser, {}, async ({ people, service }) => {
    const page = await people.signIn('sol', '/console/actors', { viewport: { width: 360, height: 740 } })
    const { keyboard } = page
    const button = page.getByRole('button', { name: `Revoke ${service.credentialOf('bea')}` })
    await button.focus()
    await keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Revoke this credential?' })
    await expect(dialog).toContainText('bea is signed out everywhere')
    await expect(dialog.getByText('it is the last one')).toBeHidden()
    await keyboard.press('Enter')
    await keyboard.press('Escape')
    await expect(dialog).toBeHidden()
    await expect(button).toBeFocused()
    expect(await revocations(service)).toEqual([])
    await keyboard.press('Enter')
    await expect(dialog).toBeVisible()
    await keyboard.press('Control+Enter')
    await expect(page.locator(':focus')).toContainText('is revoked. This is entry')
    expect(await revocations(service)).toHaveLength(1)
  })
})

test("one's own credential is revoked with a warning, and one is out", async ({ browser }) => {
  await stage(browser, {}, async ({ people, service }) => {
    const page = await people.signIn('sol', '/console/actors')
    await page.getByRole('searchbox').fill('sol')
    await expect(page.getByRole('region', { name: 'Credentials' }).getByRole('row')).toHaveCount(2)
    await page.getByRole('button', { name: `Revoke ${service.credentialOf('sol')}` }).click()
    await expect(page.getByText('This is one of your own.')).toBeVisible()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await expect(page.getByText('The service no longer accepts your token.')).toBeVisible()
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0)
  })
})

test('auditors see how credentials stand and can end none; others see neither', async ({ browser }) => {
  await stage(browser, {}, async ({ people, service }) => {
    const ada = await people.signIn('ada', '/console/actors')
    await expect(rowOf(ada, service.credentialOf('ana'))).toContainText('live')
    await expect(ada.getByRole('button', { name: /Revoke/ })).toHaveCount(0)
    await ada.getByRole('searchbox').fill('nobody of that name')
    await expect(ada.getByText('No actor matches.')).toBeVisible()
    await expect(ada.getByText('No credential matches.')).toBeVisible()
    const asked: string[] = []
    const ben = await people.visit('/console/actors')
    ben.on('request', (request) => void asked.push(new URL(request.url()).pathname))
    await enter(ben, service, 'ben')
    await expect(ben.getByText('Only security admins and auditors can see the actors.')).toBeVisible()
    expect(asked.filter((path) => path.startsWith('/v1/credentials') || path.startsWith('/v1/actors'))).toEqual([])
  })
})
