// Everything with the keyboard alone, from the sign-in to a decision.
import { expect, test } from './fixtures'

test('an approver signs in, finds the item and approves it without a mouse', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Approved by keys alone')
  const page = await people.visit('/')
  const { keyboard } = page
  await expect(page.getByLabel('Your token')).toBeFocused()
  await keyboard.insertText(service.tokens.ben)
  await keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Is this you?' })).toBeFocused()
  await keyboard.press('Tab')
  await expect(page.getByRole('button', { name: 'Yes, continue' })).toBeFocused()
  await keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Inbox' })).toBeFocused()
  await expect(page.getByRole('link', { name: 'Approved by keys alone' })).toBeVisible()

  // On a page just loaded the first stop leads past the navigation.
  await page.reload()
  await expect(page.getByRole('link', { name: 'Approved by keys alone' })).toBeVisible()
  await keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
  await keyboard.press('Enter')
  await expect(page.getByRole('main')).toBeFocused()

  await keyboard.press('/')
  await expect(page.getByRole('searchbox')).toBeFocused()
  await keyboard.type('by keys')
  await expect(page).toHaveURL(/q=by\+keys/)
  await expect(page.getByRole('row')).toHaveCount(2)
  await keyboard.press('Tab')
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
  await keyboard.press('j')
  await expect(page.getByRole('link', { name: 'Approved by keys alone' })).toBeFocused()
  await keyboard.press('Enter')
  await expect(page.getByRole('heading', { name: 'Approved by keys alone' })).toBeFocused()
  await expect(page.getByRole('button', { name: 'Approve' })).toBeVisible()

  await keyboard.press('.')
  await expect(page.getByRole('button', { name: 'Approve' })).toBeFocused()
  await keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Approve this item?' })
  await expect(dialog).toBeVisible()
  // One key too many decides nothing.
  await keyboard.press('Enter')
  expect((await service.item(id)).state).toBe('submitted')
  await keyboard.press('Escape')
  await expect(dialog).toBeHidden()
  await expect(page.getByRole('button', { name: 'Approve' })).toBeFocused()
  await keyboard.press('Enter')
  await keyboard.press('Control+Enter')
  await expect(page.locator('.screen .badge').first()).toHaveText('approved')
})

test('screens are two keys away, and the keys can be turned off', async ({ people }) => {
  const page = await people.signIn('ada')
  const { keyboard } = page
  for (const [key, heading] of [['t', 'Items'], ['l', 'Live'], ['w', 'Workflows'], ['e', 'Evidence'], ['a', 'Actors'], ['o', 'Overview'], ['c', 'Calendar'], ['i', 'Inbox']] as const) {
    await keyboard.press('g')
    await keyboard.press(key)
    await expect(page.getByRole('heading', { level: 1, name: heading })).toBeFocused()
  }
  await keyboard.press('d')
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
  await keyboard.press('?')
  await page.getByRole('checkbox', { name: 'Single-key shortcuts' }).uncheck()
  await keyboard.press('Escape')
  await keyboard.press('g')
  await keyboard.press('t')
  await expect(page.getByRole('heading', { level: 1, name: 'Inbox' })).toBeVisible()
})
