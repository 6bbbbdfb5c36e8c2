// The console in German: every screen is, nothing of it is left in English, and it works and fits as it does in English.
import type { BrowserContextOptions, Page } from '@playwright/test'
import { german } from '../src/words/de'
import { english } from '../src/words/en'
import { expect, People, test as base } from './fixtures'
import { look } from './look'
import { PEOPLE, Service, type Person } from './service'

/** A service of its own: in the one that the other tests share, people wrote English. */
const test = base.extend<object, { service: Service }>({
  service: [
    async ({}, use) => {
      const service = new Service()
      await service.start()
      await use(service)
      await service.remove()
    },
    { scope: 'worker' },
  ],
})

const GERMAN: BrowserContextOptions = { locale: 'de-DE' }
const say = german.text

/** What people wrote is data, and here it is German too: whatever is English on a page was said by the console. */
const CONTENT = {
  purpose: 'Der Schlüssel ist zwei Jahre alt; die Revision verlangt jährlichen Austausch.',
  operation: 'schluessel tauschen --name zahlungen\nschluessel pruefen zahlungen',
  rollback_plan: 'schluessel zurueck zahlungen\nPartnerbanken anrufen.',
  targets: ['knoten-1.example.org', 'knoten-2.example.org'],
  links: ['https://tickets.example.org/OPS-1842'],
  expected_outcome: 'Beide Knoten signieren mit neuem Schlüssel.',
}

function sentences(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(sentences) : []
}
const SENTENCES = sentences(english).filter((sentence) => sentence.length > 12)
/** Words that German does not have, for sentences that are put together. */
const ENGLISH = /\b(the|of|and|with|this|that|your|you|are|is|has|been|from|for|by|to|it|or|item|items|draft|state|approve|approved|submit|submitted|token's|yes|no|new|low|high|ago|now)\b/i

/** Everything a page says, to eyes and ears: texts, names and hints. What is marked as another language or as code is not ours. */
function everythingSaid(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const DATA = 'code, pre, kbd, .code, .mono, [lang="en"], noscript, script, style'
    const found = [document.title]
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      if (node.parentElement?.closest(DATA) === null) found.push(node.textContent ?? '')
    }
    for (const element of document.body.querySelectorAll('[aria-label], [title], [placeholder], [alt], [data-name]')) {
      if (element.closest('[lang="en"]') !== null) continue
      for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'data-name']) found.push(element.getAttribute(name) ?? '')
    }
    return [...new Set(found.map((text) => text.trim()).filter((text) => text !== ''))]
  })
}

async function speaksGerman(page: Page, name: string): Promise<void> {
  await expect(page.locator('html')).toHaveAttribute('lang', 'de')
  const said = await everythingSaid(page)
  const left = said.filter((text) => ENGLISH.test(text) || SENTENCES.some((sentence) => text.includes(sentence)))
  expect.soft(left, `${name} says something in English`).toEqual([])
  await look(page, `german-${name}`)
}

async function enter(people: People, service: Service, person: Person, path = '/'): Promise<Page> {
  const page = await people.visit(path, GERMAN)
  await page.getByLabel(say.signIn.token).fill(service.tokens[person])
  await page.getByRole('button', { name: say.signIn.go }).click()
  await expect(page.getByText(`Sie sind ${person}, in der Rolle ${german.roles[PEOPLE[person]]}`)).toBeVisible()
  await page.getByRole('button', { name: say.signIn.confirm }).click()
  await expect(page.locator('#main')).toBeVisible()
  return page
}

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true })

test('a browser that prefers German is spoken to in German, from the sign-in on', async ({ people, service }) => {
  const page = await people.visit('/', GERMAN)
  await expect(heading(page, 'Anmelden')).toBeVisible()
  await speaksGerman(page, 'sign-in')
  await page.getByLabel(say.signIn.token).fill('zu kurz')
  await page.getByRole('button', { name: say.signIn.go }).click()
  await expect(page.getByText(say.signIn.shape)).toBeVisible()
  await page.getByLabel(say.signIn.token).fill('x'.repeat(40))
  await page.getByRole('button', { name: say.signIn.go }).click()
  await expect(page.getByText(say.signIn.refused)).toBeVisible()
  await speaksGerman(page, 'sign-in-refused')
  await page.getByLabel(say.signIn.token).fill(service.tokens.ana)
  await page.getByRole('button', { name: say.signIn.go }).click()
  await expect(heading(page, 'Sind Sie das?')).toBeVisible()
  await speaksGerman(page, 'confirm')
  await page.getByRole('button', { name: say.signIn.deny }).click()
  await speaksGerman(page, 'denied')
})

test('English stays English, and does not load another language', async ({ people }) => {
  const page = await people.visit('/')
  const files = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname))
  expect(files.filter((file) => file.startsWith('/assets/')).length).toBeGreaterThan(0)
  expect(files.filter((file) => /\/de[-.]/.test(file))).toEqual([])
  await expect(page.locator('html')).toHaveAttribute('lang', 'en')
})

test('daily work is in German, and a decision goes through', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Signaturschlüssel der Zahlungen tauschen', { ...CONTENT, risk: 'high', OPS: 7 })
  await service.itemIn('executing', 'Abrechnung neu starten', CONTENT)
  await service.call('ana', 'POST', `/v1/items/${id}/comments`, { text: 'Termin steht.' })
  const page = await enter(people, service, 'ben', '/console/inbox')
  await expect(page.getByRole('link', { name: 'Signaturschlüssel' })).toBeVisible()
  await speaksGerman(page, 'inbox')
  await page.goto('/console/items')
  await expect(page.getByRole('link', { name: 'Abrechnung neu starten' })).toBeVisible()
  await speaksGerman(page, 'items')
  await page.getByLabel(say.items.search).fill('kommt nirgends vor')
  await expect(page.getByText(say.items.empty)).toBeVisible()
  await speaksGerman(page, 'items-empty')

  await page.goto(`/console/items/${id}`)
  await expect(page.getByRole('button', { name: 'Genehmigen', exact: true })).toBeVisible()
  await expect(page.getByText('ana hat den Vorgang eingereicht')).toBeVisible()
  // 18. Nov., 10:42
  await expect(page.locator('time').filter({ hasText: /^\d{1,2}\. \p{L}+\.?,? (um )?\d{2}:\d{2}$/u }).first()).toBeVisible()
  await expect(page.locator('time').filter({ hasText: /^(vor|in) |gerade eben/ }).first()).toBeVisible()
  await speaksGerman(page, 'item')
  await page.getByRole('button', { name: 'Genehmigen', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Diesen Vorgang genehmigen?' })
  await expect(dialog).toContainText('Ihre Stimme ist die 1. von 2.')
  await expect(dialog).toContainText('Der Zustand bleibt „eingereicht“, bis genug Stimmen da sind.')
  await speaksGerman(page, 'approve')
  await dialog.getByRole('button', { name: 'Genehmigen' }).click()
  await expect(page.getByText('Sie haben den Vorgang genehmigt.').first()).toBeVisible()
  await expect(page.getByText('1 von 2 für „genehmigen“')).toBeVisible()
  await speaksGerman(page, 'item-approved')
  await service.act('bea', id, 'approve')
  await expect(page.locator('[data-announcer]')).toContainText('bea hat den Vorgang genehmigt.')
  expect((await service.item(id)).state).toBe('approved')

  await page.getByRole('group', { name: say.item.actions }).getByRole('button', { name: 'Zurückgeben' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Zurückgeben' }).click()
  await expect(page.getByText(say.act.fieldRequired)).toBeVisible()
  await speaksGerman(page, 'return-refused')
  await page.keyboard.press('Escape')
  await page.keyboard.press('?')
  await expect(page.getByRole('dialog', { name: 'Tastenkürzel' })).toBeVisible()
  await speaksGerman(page, 'help')
  await page.keyboard.press('Escape')
  await page.goto('/console/gibt/es/nicht')
  await expect(heading(page, say.noSuchScreen)).toBeVisible()
  await speaksGerman(page, 'no-screen')
})

test('drafts are written in German, and what is wrong with them is said in German', async ({ people, service }) => {
  const page = await enter(people, service, 'ana', '/console/new')
  await expect(page.getByLabel('Titel')).toBeVisible()
  await expect(page.getByText('Genau das, was ausgeführt wird')).toBeVisible()
  await speaksGerman(page, 'new')
  await page.getByLabel('Titel').fill('Halbfertig')
  await page.getByRole('button', { name: say.form.submit }).click()
  await expect(page.getByText(say.faults.required).first()).toBeVisible()
  await speaksGerman(page, 'new-refused')
  const { id } = await service.draft('Zu bearbeiten', CONTENT)
  await page.goto(`/console/items/${id}/edit`)
  await expect(page.getByLabel('Titel')).toHaveValue('Zu bearbeiten')
  await speaksGerman(page, 'edit')
})

test('execution is in German: clearing, a hold, starting and reporting', async ({ people, service }) => {
  const id = await service.itemIn('approved', 'Archiv verlagern', CONTENT)
  const sol = await enter(people, service, 'sol', `/console/items/${id}`)
  await sol.getByRole('button', { name: 'Freischalten', exact: true }).click()
  await expect(sol.getByRole('dialog')).toContainText('höchstens 30 Tage lang')
  await speaksGerman(sol, 'clear')
  await sol.getByRole('button', { name: '+4 h' }).click()
  await sol.getByRole('dialog').getByRole('button', { name: 'Freischalten' }).click()
  await expect(sol.getByText('Sie haben den Vorgang freigeschaltet.').first()).toBeVisible()
  await service.act('sol', id, 'hold', { comment: 'Kurz warten.' })
  const eli = await enter(people, service, 'eli', `/console/items/${id}`)
  await expect(eli.getByText('Angehalten von sol').first()).toBeVisible()
  await speaksGerman(eli, 'held')
  await service.act('sol', id, 'release', { comment: 'Weiter.' })
  await eli.getByRole('button', { name: 'Ausführung starten' }).click()
  await expect(eli.getByRole('dialog', { name: 'Ausführung starten?' })).toContainText(say.act.startsEffect)
  await eli.getByRole('dialog').getByRole('button', { name: 'Ausführung starten' }).click()
  await expect(heading(eli, say.heartbeat.title)).toBeVisible()
  await speaksGerman(eli, 'executing')
  await eli.getByRole('button', { name: 'Erfolg melden' }).click()
  await eli.getByRole('button', { name: say.act.addArtifact }).click()
  await speaksGerman(eli, 'succeed')
  await eli.getByRole('dialog').getByLabel(say.act.result).fill('Alles verlagert.')
  await eli.getByRole('dialog').getByRole('button', { name: 'Erfolg melden' }).click()
  await expect(eli.getByRole('dialog').getByText(/Ablageort|SHA-256/).first()).toBeVisible()
  await speaksGerman(eli, 'succeed-refused')
})

test('oversight is in German: live, workflows, figures, actors, credentials and evidence', async ({ people, service }) => {
  const id = await service.itemIn('succeeded', 'Archiv prüfen', CONTENT)
  await service.call('ben', 'POST', `/v1/items/${id}/transitions`, { action: 'approve' }).catch(() => {})
  const ada = await enter(people, service, 'ada', '/console/inbox')
  await expect(ada.getByText(say.inbox.aboutAuditor)).toBeVisible()
  await speaksGerman(ada, 'audit')
  await ada.goto('/console/live')
  await expect(ada.getByRole('row').nth(3)).toBeVisible()
  await speaksGerman(ada, 'live')
  await ada.goto('/console/workflows')
  await expect(ada.getByRole('link', { name: 'Kontrollierter Eingriff' })).toBeVisible()
  await speaksGerman(ada, 'workflows')
  for (const [name, title] of [['controlled-operation', 'Kontrollierter Eingriff'], ['emergency-operation', 'Notfalleingriff']] as const) {
    await ada.goto(`/console/workflows/${name}`)
    await expect(heading(ada, title)).toBeVisible()
    await speaksGerman(ada, name)
  }
  await ada.goto('/console/overview')
  await expect(heading(ada, say.overview.decisions)).toBeVisible()
  await speaksGerman(ada, 'overview')
  await ada.goto(`/console/evidence?item=${id}`)
  await ada.getByLabel(say.evidence.key).fill(await service.verifierKey())
  await ada.getByRole('button', { name: say.evidence.go }).click()
  await expect(ada.getByRole('status').getByText(say.evidence.passed).first()).toBeVisible()
  await speaksGerman(ada, 'evidence')
  const sol = await enter(people, service, 'sol', '/console/actors')
  await expect(sol.getByRole('cell', { name: 'ada', exact: true })).toBeVisible()
  await speaksGerman(sol, 'actors')
})

test('an emergency and an unclear outcome are in German, down to the choices of a dialog', async ({ people, service }) => {
  const { id } = await service.call<{ id: string }>('ana', 'POST', '/v1/items', { workflow: 'emergency-operation', title: 'Datenbank retten', payload: { ...CONTENT, incident: 'INC-7', risk: 'high' } })
  await service.act('ana', id, 'submit')
  await service.act('sol', id, 'clear', { inputs: { not_after: new Date(Date.now() + 3_600_000).toISOString() } })
  await service.act('eli', id, 'start')
  await service.act('eli', id, 'unknown', { comment: 'Verbindung verloren.' })
  const page = await enter(people, service, 'bea', `/console/items/${id}`)
  await expect(page.getByText('eli hat einen unbekannten Ausgang gemeldet')).toBeVisible()
  await page.getByRole('button', { name: 'Klären', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Diesen Vorgang klären?' })
  await expect(dialog.getByRole('radio', { name: 'Erfolgreich' })).toBeVisible()
  await speaksGerman(page, 'reconcile')
  await page.keyboard.press('Escape')
  await service.act('bea', id, 'reconcile', { comment: 'Daten sind da.', inputs: { outcome: 'succeeded' } })
  await service.act('ben', id, 'condemn', { comment: 'Ohne Not.' })
  await page.getByRole('button', { name: 'Billigen', exact: true }).click()
  await expect(page.getByRole('dialog', { name: 'Diesen Vorgang billigen?' })).toBeVisible()
  await speaksGerman(page, 'ratify')
})

test('settings, search, calendar and tour are in German, and the language is one of the settings', async ({ browser }) => {
  const service = new Service('[console]\nname = "Demo"\n')
  await service.start()
  const people = new People(browser, service)
  try {
    await service.itemIn('cleared', 'Archiv umziehen', CONTENT)
    await service.itemIn('cleared', 'Archiv sichern', CONTENT)
    const page = await enter(people, service, 'ana')
    await page.getByRole('button', { name: say.tour.take }).click()
    await expect(heading(page, 'Was auf Sie wartet')).toBeFocused()
    await speaksGerman(page, 'tour')
    for (let number = 2; number <= 8; number += 1) {
      await page.getByRole('button', { name: say.tour.next }).click()
      await expect(page.getByText(`Schritt ${number} von 8`)).toBeVisible()
      expect.soft((await everythingSaid(page)).filter((text) => ENGLISH.test(text))).toEqual([])
    }
    await page.getByRole('button', { name: say.tour.done }).click()
    await page.keyboard.press('Control+k')
    await expect(page.getByRole('combobox', { name: say.palette.label })).toBeFocused()
    await speaksGerman(page, 'palette')
    await page.keyboard.press('Escape')
    await page.goto('/console/calendar')
    await expect(page.getByText(/auch in/).first()).toBeVisible()
    await speaksGerman(page, 'calendar')
    await page.getByRole('button', { name: say.settings.title }).click()
    await expect(page.getByRole('dialog', { name: say.settings.title })).toBeVisible()
    await speaksGerman(page, 'settings')
    await page.getByLabel(say.settings.language).selectOption('en')
    await expect(page.locator('html')).toHaveAttribute('lang', 'en')
    await expect(heading(page, english.text.calendar.title)).toBeVisible()
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('the end of a token and its revocation are in German', async ({ browser }) => {
  const DAY = 86_400
  const service = new Service('[identity]\nmechanism = "credential_file"\n', { ana: 4.5 * DAY, ben: 10.5 * 3_600 })
  await service.start()
  const people = new People(browser, service)
  try {
    const ana = await enter(people, service, 'ana')
    await expect(ana.getByText(/^Ihr Token läuft am \d+\. \p{L}+ ab \(in 4 Tagen\)\. Lassen Sie sich ein neues geben\.$/u)).toBeVisible()
    const ben = await enter(people, service, 'ben')
    await expect(ben.getByText(/^Ihr Token läuft am \p{L}+ um \d\d:\d\d Uhr ab \(in 10 Stunden\)\.$/u)).toBeVisible()
    await speaksGerman(ben, 'ends-today')
    const sol = await enter(people, service, 'sol', '/console/actors')
    await sol.getByRole('button', { name: `${service.credentialOf('ben')} widerrufen` }).click()
    await expect(sol.getByRole('dialog', { name: say.credentials.revokeTitle })).toContainText('ben braucht ein neues Token.')
    await speaksGerman(sol, 'revoke')
    await sol.getByRole('dialog').getByRole('button', { name: say.credentials.revoke }).click()
    await expect(sol.getByText(/ ist widerrufen\. Das ist Eintrag \d+ im Protokoll\.$/)).toBeVisible()
    await speaksGerman(sol, 'revoked')
    await expect(ben.getByText(german.endings.refused)).toBeVisible()
    await speaksGerman(ben, 'signed-out')
    await people.settle()
  } finally {
    await service.remove()
  }
})
