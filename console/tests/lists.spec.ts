// Lists: found by what is in them, sorted, paged both ways, kept as views, taken along as a file; and left and come back to.
import { readFileSync } from 'node:fs'
import { expect, People, test } from './fixtures'
import { Service } from './service'

test('items are found by content and by a part of the id, and rows say risk, state and who is waited for', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'A change with a ticket', { operation: 'deploy host-500', risk: 'high', links: ['https://tickets.example.org/CHG-77'] })
  const page = await people.signIn('ada', '/console/items')
  for (const word of ['CHG-77', 'host-500', id.slice(0, 18)]) {
    await page.getByRole('searchbox').fill(word)
    await expect(page).toHaveURL(new RegExp(`q=${word}`))
    const row = page.getByRole('row').filter({ hasText: 'A change with a ticket' })
    await expect(row).toContainText('high')
    await expect(row).toContainText('submitted')
    await expect(row).toContainText('approver')
    await expect(row).toContainText('Controlled operation')
    await expect(row).toContainText(`${id.slice(0, 8)}…${id.slice(-4)}`)
  }
  await expect(page.getByRole('columnheader').allTextContents()).resolves.toEqual(expect.arrayContaining(['Item', 'Risk', 'State', 'Waits for']))
})

test('the column headers stay in the accessibility tree on narrow screens and at 200 % zoom', async ({ people, service }) => {
  await service.draft('A row that is a card')
  const page = await people.signIn('ana', '/console/items', { viewport: { width: 640, height: 430 } })
  const row = page.getByRole('row').filter({ hasText: 'A row that is a card' })
  await expect(row).toBeVisible()
  await expect(page.getByRole('columnheader')).toHaveCount(7)
  await expect(row.getByRole('cell')).not.toHaveCount(0)
  expect(await row.locator('.state').evaluate((cell) => getComputedStyle(cell, '::before').content)).toContain('State')
})

test('a title of two hundred characters takes two lines, and its link has the whole of it as its name', async ({ people, service }) => {
  const title = `${'Long words in a title '.repeat(9)}end`.slice(0, 200)
  await service.draft(title)
  const page = await people.signIn('ana', '/console/items', { viewport: { width: 1000, height: 800 } })
  const link = page.getByRole('link', { name: title, exact: true })
  await expect(link).toBeVisible()
  const { height } = (await link.boundingBox()) ?? { height: 0 }
  expect(height).toBeLessThan(50)
})

test('finding 29: Mine switches between mine and all, whoever was filtered before', async ({ people, service }) => {
  await service.draft('One of mine')
  const page = await people.signIn('ana', '/console/items?created_by=someone')
  await expect(page.getByText('No items match.')).toBeVisible()
  const mine = page.getByRole('button', { name: 'Mine' })
  await expect(mine).toHaveAttribute('aria-pressed', 'false')
  await mine.click()
  await expect(page).toHaveURL(/created_by=ana/)
  await expect(mine).toHaveAttribute('aria-pressed', 'true')
  await expect(page.getByRole('link', { name: 'One of mine' })).toBeVisible()
  await mine.click()
  await expect(page).not.toHaveURL(/created_by/)
})

test('lists are sorted by the service, paged forth and back, kept as views and exported without formulas', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    for (let at = 0; at < 120; at += 1) await service.draft(`Item ${String(at).padStart(3, '0')}`)
    await service.draft('=HYPERLINK("https://example.org","Aaa")')
    const page = await people.signIn('ana', '/console/items')
    const first = page.getByRole('row').nth(1).getByRole('link')
    await expect(page.getByText('1–50 of 121')).toBeVisible()
    await page.getByRole('link', { name: 'Older' }).click()
    await page.getByRole('link', { name: 'Older' }).click()
    await expect(page.getByText('101–121 of 121')).toBeVisible()
    await page.getByRole('link', { name: 'Newer' }).click()
    await expect(page.getByText('51–100 of 121')).toBeVisible()
    await page.getByRole('link', { name: 'Newer' }).click()
    await expect(page.getByText('1–50 of 121')).toBeVisible()

    await page.getByRole('columnheader', { name: 'Item' }).getByRole('link').click()
    await expect(page.getByRole('columnheader', { name: 'Item' })).toHaveAttribute('aria-sort', 'ascending')
    await expect(first).toHaveText('=HYPERLINK("https://example.org","Aaa")')
    await page.getByRole('searchbox').fill('Item 11')
    await expect(page).toHaveURL(/q=Item\+11/)
    await expect(first).toHaveText('Item 110')

    await page.getByRole('button', { name: 'Save this view' }).click()
    await page.getByLabel('Name of the view').fill('Eleventh')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await expect(page.getByText('1–50 of 121')).toBeVisible()
    await page.reload()
    await page.getByRole('link', { name: 'Eleventh' }).click()
    await expect(first).toHaveText('Item 110')
    await page.getByRole('button', { name: 'Delete the view Eleventh' }).click()
    await expect(page.getByRole('link', { name: 'Eleventh' })).toBeHidden()

    await page.goto('/console/items')
    await expect(page.getByText('1–50 of 121')).toBeVisible()
    const saving = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export CSV' }).click()
    const lines = readFileSync(await (await saving).path(), 'utf8').slice(0, -2).split('\r\n')
    expect(lines).toHaveLength(122)
    expect(lines[0]).toBe('\ufeffid,title,workflow,risk,state,held,waits_for,due_at,created_by,created_at,updated_at')
    expect(lines.filter((line) => line.includes('HYPERLINK'))).toEqual([expect.stringContaining(`,"'=HYPERLINK(""https://example.org"",""Aaa"")",`)])
    await expect(page.getByRole('listitem').filter({ hasText: 'Exported 121 items.' })).toBeVisible()
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('back from an item the focus is on its row, and the keys go on from there', async ({ people, service }) => {
  for (const title of ['Back to row three', 'Back to row two', 'Back to row one']) await service.draft(title)
  const page = await people.signIn('ana', '/console/items?q=Back+to+row')
  const row = (name: string) => page.getByRole('link', { name: `Back to row ${name}` })
  await row('two').click()
  await expect(page.getByRole('heading', { level: 1, name: 'Back to row two' })).toBeFocused()
  await page.goBack()
  await expect(row('two')).toBeFocused()
  await page.keyboard.press('j')
  await expect(row('three')).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1, name: 'Back to row three' })).toBeFocused()
})
