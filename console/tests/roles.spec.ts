// Each role's own work with the keyboard alone, and as a screen reader is told of it.
import type { Locator, Page } from '@playwright/test'
import { expect, test } from './fixtures'
import { PEOPLE, type Person, type Service } from './service'

/** From the sign-in to an item, by keys. */
async function enterByKeys(page: Page, service: Service, person: Person): Promise<void> {
  const { keyboard } = page
  await expect(page.getByLabel('Your token')).toBeFocused()
  await keyboard.insertText(service.tokens[person])
  await keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Is this you?' })).toBeFocused()
  await keyboard.press('Tab')
  await keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toBeFocused()
}

async function openByKeys(page: Page, title: string): Promise<void> {
  const { keyboard } = page
  await keyboard.press('/')
  await expect(page.getByRole('searchbox')).toBeFocused()
  await keyboard.type(title)
  await expect(page).toHaveURL(/q=/)
  await expect(page.getByRole('row')).toHaveCount(2)
  await expect(page.getByRole('link', { name: title })).toBeVisible()
  await keyboard.press('Tab')
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
  await keyboard.press('j')
  await expect(page.getByRole('link', { name: title })).toBeFocused()
  await keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: title })).toBeFocused()
}

/** Opens the dialog of an action among those the item offers. */
async function actByKeys(page: Page, action: string): Promise<void> {
  const { keyboard } = page
  await keyboard.press('.')
  const button = page.getByRole('group', { name: 'Actions' }).getByRole('button', { name: action, exact: true })
  for (let step = 0; step < 6 && !(await button.evaluate((element) => element === document.activeElement)); step += 1) await keyboard.press('Tab')
  await expect(button).toBeFocused()
  await keyboard.press('Enter')
  await expect(page.getByRole('dialog', { name: `${action} this item?` })).toBeVisible()
}

async function tabTo(page: Page, field: Locator): Promise<void> {
  for (let step = 0; step < 40 && !(await field.evaluate((element) => element === document.activeElement)); step += 1) await page.keyboard.press('Tab')
  await expect(field).toBeFocused()
}

/** Announced once, for those who listen. */
const said = (page: Page) => page.locator('[data-announcer]')

test('an initiator writes and submits a draft by keys', async ({ people, service }) => {
  const page = await people.visit('/')
  await enterByKeys(page, service, 'ana')
  await page.keyboard.press('g')
  await page.keyboard.press('n')
  await expect(page.getByRole('heading', { level: 1, name: 'New item' })).toBeVisible()
  for (const [field, text] of [['Title', 'Written by keys'], ['Operation', 'true'], ['Purpose', 'p'], ['Rollback plan', 'r']] as const) {
    const target = field === 'Operation' ? page.getByRole('textbox', { name: 'Operation' }) : page.getByLabel(field)
    await tabTo(page, target)
    await page.keyboard.insertText(text)
    if (field === 'Operation') {
      await tabTo(page, page.getByRole('radio', { name: 'low' }))
      await page.keyboard.press('Space')
    }
  }
  await tabTo(page, page.getByRole('button', { name: 'Save and submit…' }))
  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog', { name: 'Submit this item?' })).toBeVisible()
  await page.keyboard.press('Control+Enter')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(said(page)).toContainText('You submitted it.')
  await expect(page.getByRole('heading', { level: 1, name: 'Written by keys' })).toBeFocused()
})

const DECISIONS: [Person, 'submitted' | 'approved' | 'cleared', string, string, string][] = [
  ['ben', 'submitted', 'Approve', 'You approved it.', 'approved'],
  ['sol', 'approved', 'Clear', 'You cleared it.', 'cleared'],
  ['eli', 'cleared', 'Start', 'You started the operation.', 'executing'],
]

for (const [person, state, action, sentence, after] of DECISIONS) {
  test(`the ${PEOPLE[person].replace('_', ' ')} decides by keys, is told of it, and the tree says what is decided`, async ({ people, service }) => {
    const title = `By keys of ${person}`
    const id = await service.itemIn(state, title, { operation: 'keys rotate' })
    const page = await people.visit('/')
    await enterByKeys(page, service, person)
    await openByKeys(page, title)
    await expect(page.getByRole('main')).toMatchAriaSnapshot(`
      - heading "${title}" [level=1]
      - region "Content":
        - heading "Content" [level=2]
      - region "Timeline":
        - heading "Timeline" [level=2]
      - region "Now":
        - heading "Now" [level=2]
    `)
    await actByKeys(page, action)
    await expect(page.getByRole('dialog')).toMatchAriaSnapshot(`
      - dialog "${action} this item?":
        - heading "${action} this item?" [level=2]
        - region "What you decide on":
          - heading "What you decide on" [level=3]
        - region "What this does":
          - heading "What this does" [level=3]
    `)
    if (action === 'Clear') {
      await tabTo(page, page.getByLabel('Not after'))
      await tabTo(page, page.getByRole('button', { name: '+4 h' }))
      await page.keyboard.press('Enter')
    }
    await page.keyboard.press('Control+Enter')
    await expect(page.getByRole('dialog')).toHaveCount(0)
    await expect(said(page)).toContainText(sentence)
    expect((await service.item(id)).state).toBe(after)
  })
}

test('an auditor verifies an item by keys', async ({ people, service }) => {
  const id = await service.itemIn('approved', 'Verified by keys')
  const key = await service.verifierKey()
  const page = await people.visit(`/console/evidence?item=${id}`)
  await enterByKeys(page, service, 'ada')
  await tabTo(page, page.getByLabel("The log's verifier key"))
  await page.keyboard.insertText(key)
  await tabTo(page, page.getByRole('button', { name: 'Verify', exact: true }))
  await page.keyboard.press('Enter')
  await expect(page.getByText('Verified', { exact: false }).first()).toBeVisible()
})
