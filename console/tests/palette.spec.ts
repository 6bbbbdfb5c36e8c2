// Anything from anywhere, by keys, and told to those who do not see it.
import { expect, test } from './fixtures'
import { look } from './look'

test('screens, items and commands are found and taken by keys', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Found from anywhere', { operation: 'touch needle-4711' })
  const page = await people.signIn('ben')
  await expect(page.getByRole('heading', { name: 'Inbox' })).toBeFocused()
  await page.keyboard.press('Control+k')
  const input = page.getByRole('combobox', { name: 'A screen, an item or a command' })
  await expect(input).toBeFocused()
  await look(page, 'palette')
  await page.keyboard.type('overv')
  await expect(page.getByRole('option', { name: 'Overview' })).toHaveAttribute('aria-selected', 'true')
  await expect(input).toHaveAttribute('aria-activedescendant', 'choice-screen-overview')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Overview' })).toBeFocused()

  await page.keyboard.press('Control+k')
  await page.keyboard.type('needle-4711')
  await expect(page.getByRole('option', { name: /Found from anywhere/ })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(new RegExp(id))
  await expect(page.getByRole('heading', { level: 1, name: 'Found from anywhere' })).toBeFocused()

  // What one looked at is at hand, also before anything is typed.
  await page.goto('/console/live')
  await expect(page.getByRole('row').nth(1)).toBeVisible()
  await page.keyboard.press('Control+k')
  await expect(page.getByRole('group', { name: 'Recent items' }).getByRole('option', { name: /Found from anywhere/ })).toBeVisible()
  await page.keyboard.type('dark')
  await page.keyboard.press('Enter')
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark')
})

test('the way through the choices is a circle, and Escape leads back to where one was', async ({ people }) => {
  const page = await people.signIn('ana', '/console/items')
  const search = page.getByRole('searchbox')
  await search.focus()
  await page.keyboard.press('Control+k')
  const options = page.getByRole('listbox').getByRole('option')
  await expect(options.first()).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.press('ArrowUp')
  await expect(options.last()).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.press('ArrowDown')
  await expect(options.first()).toHaveAttribute('aria-selected', 'true')
  await page.keyboard.type('nothing is called this')
  await expect(page.getByRole('option', { name: /All items that match/ })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog')).toBeHidden()
  await expect(search).toBeFocused()
})

test('only whose screen it is finds it', async ({ people }) => {
  const page = await people.signIn('ben')
  await page.keyboard.press('Control+k')
  await page.keyboard.type('actors')
  await expect(page.getByRole('option', { name: 'Actors', exact: true })).toHaveCount(0)
})
