// Execution windows: seen in their week, marked where two touch the same target, and reachable by keys.
import { expect, test } from './fixtures'
import { look } from './look'

test('windows that meet and touch the same target are marked, and every window is in a list', async ({ people, service }) => {
  await service.itemIn('cleared', 'First on the database', { targets: ['db-7', 'web-1'] })
  await service.itemIn('cleared', 'Second on the database', { targets: ['db-7'] })
  await service.itemIn('cleared', 'Somewhere else', { targets: ['web-9'] })
  const page = await people.signIn('ada', '/console/calendar')
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) })
  await expect(row('First on the database')).toContainText('db-7: also in Second on the database')
  await expect(row('Second on the database')).toContainText('db-7: also in First on the database')
  await expect(row('Somewhere else')).not.toContainText('also in')
  await expect(page.locator('.bar')).not.toHaveCount(0)
  await look(page, 'calendar')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await expect(page).toHaveURL(/items\//)
  await page.goBack()
  await page.getByRole('link', { name: 'A week later' }).click()
  await page.getByRole('link', { name: 'A week later' }).click()
  await expect(page.getByText('No execution windows in these two weeks.')).toBeVisible()
  await expect(page).toHaveURL(/week=\d{4}-\d\d-\d\d/)
})
