// Characters nobody sees: shown as marks to those who decide, and never able to move what stands around them.
import { expect, test } from './fixtures'
import { look } from './look'

const TITLE = 'Send user \u202egnp.exe\u202c to all'
const SHOWN_TITLE = 'Send user ⟨U+202E⟩gnp.exe⟨U+202C⟩ to all'
const OPERATION = 'rm -rf /srv/data/\u202epmt/ylno\u202c  # safe'
const SHOWN_OPERATION = 'rm -rf /srv/data/⟨U+202E⟩pmt/ylno⟨U+202C⟩··# safe'
const PAYLOAD = {
  operation: OPERATION,
  'operation\u200b': 'true',
  targets: ['a\nb', 'x   y', 'line\u2028end', 'שלום', 'https://example.org/\u200bx'],
  details: { 'risk\u00a0': 'low\u2066', list: ['שלום', 'עולם'] },
}
/** In the title 2, in the operation 2, then one each: a name, a target, a link, a name and a value in the details. */
const BANNER = 'This content contains 9 hidden characters. They are shown as marks.'

test('a Trojan title and payload are shown as marks wherever someone reads or decides', async ({ people, service }) => {
  const { id } = await service.draft(TITLE, PAYLOAD)
  await service.act('ana', id, 'submit')
  await service.call('ana', 'POST', `/v1/items/${id}/comments`, { text: 'looks\u2067 fine\u001b[2J\n  indented' })
  const ben = await people.signIn('ben', '/console/inbox')
  await expect(ben.getByRole('link', { name: SHOWN_TITLE })).toBeVisible()

  await ben.goto(`/console/items/${id}`)
  await expect(ben.getByRole('heading', { level: 1 })).toHaveText(SHOWN_TITLE)
  await expect(ben).toHaveTitle(new RegExp(`^(\\(\\d+\\) )?${SHOWN_TITLE.replace(/[+.]/g, '\\$&')} · Pilot$`))
  await expect(ben.getByText(BANNER)).toBeVisible()
  const content = ben.getByRole('region', { name: 'Content' })
  await expect(content.getByText(SHOWN_OPERATION)).toBeVisible()
  await expect(content.getByRole('region', { name: 'Other members' }).getByText('operation⟨U+200B⟩')).toBeVisible()
  await expect(content.getByText('line⟨U+2028⟩end')).toBeVisible()
  await expect(content.getByText('"risk⟨U+00A0⟩": "low⟨U+2066⟩"')).toBeVisible()
  await expect(content.getByTitle('U+202E right-to-left override').first()).toBeVisible()
  // Nobody can read where it leads.
  await expect(content.getByRole('link')).toHaveCount(0)
  // Two lines and three spaces stay what they are.
  expect(await content.locator('li bdi').allInnerTexts()).toEqual(['a↵\nb', 'x···y', 'line⟨U+2028⟩end', 'שלום', 'https://example.org/⟨U+200B⟩x'])
  await expect(ben.getByText('looks⟨U+2067⟩ fine⟨U+001B⟩[2J')).toBeVisible()
  await expectNothingHidden(ben)
  await look(ben, 'hidden-item')
  await ben.getByRole('button', { name: 'As JSON' }).click()
  await expect(content.getByText('"operation⟨U+200B⟩": "true"')).toBeVisible()
  await expectNothingHidden(ben)

  await ben.getByRole('button', { name: 'Approve' }).click()
  const dialog = ben.getByRole('dialog')
  await expect(dialog.getByText(SHOWN_TITLE)).toBeVisible()
  await expect(dialog.getByText(BANNER)).toBeVisible()
  await expect(dialog.getByText(SHOWN_OPERATION)).toBeVisible()
  await expectNothingHidden(ben)
  await look(ben, 'hidden-dialog')

  for (const path of ['/console/items', '/console/live', '/console/overview']) {
    await ben.goto(path)
    await expect(ben.getByRole('heading', { level: 1 })).toBeVisible()
    if (path !== '/console/overview') await expect(ben.getByRole('link', { name: SHOWN_TITLE }).first()).toBeVisible()
    await expectNothingHidden(ben)
  }
})

test('what runs from right to left stays within its own text', async ({ people, service }) => {
  const { id } = await service.draft('שלום', { list: { of: ['שלום', 'עולם'] } })
  const ana = await people.signIn('ana', `/console/items/${id}`)
  await expect(ana.getByText('hidden character')).toHaveCount(0)
  await ana.getByRole('button', { name: 'As JSON' }).click()
  const [first, second] = await ana.locator('.raw bdi bdi').evaluateAll((found) => found.map((text) => text.getBoundingClientRect().top))
  expect(first).toBeLessThan(second ?? 0)
  await expect(ana.locator('.raw > bdi')).toHaveCSS('direction', 'ltr')
  await expect(ana.locator('h1 bdi')).toHaveCSS('unicode-bidi', 'isolate')
})

test('someone who writes hidden characters is told', async ({ people }) => {
  const ana = await people.signIn('ana', '/console/new')
  await ana.getByLabel('Title').fill('a\u200bb')
  await expect(ana.getByText('What you wrote contains 1 hidden character')).toBeVisible()
  await ana.getByLabel('Title').fill('ab')
  await expect(ana.getByText('What you wrote contains')).toHaveCount(0)
})

/** Not in the text of the page, and not in what is read out or shown on hovering. */
async function expectNothingHidden(page: import('@playwright/test').Page): Promise<void> {
  const found = await page.evaluate(() => {
    const texts = [document.title, document.body.innerText]
    for (const element of document.querySelectorAll('*')) {
      for (const name of ['aria-label', 'title', 'alt', 'placeholder']) texts.push(element.getAttribute(name) ?? '')
    }
    return texts.filter((text) => /[\u00a0\u200b-\u200f\u2028-\u202e\u2066-\u2069\u001b]/.test(text))
  })
  expect(found).toEqual([])
}
