// At 200 and 400 percent, and on touch, everything can still be read and hit.
import { expect, test } from './fixtures'
import { axeOf } from './look'

for (const [percent, width] of [[200, 640], [400, 320]] as const) {
  test(`at ${percent} % nothing needs scrolling in two directions, and tables keep their headers`, async ({ people, service }) => {
    const id = await service.itemIn('submitted', `At ${percent} percent, with a title that needs more than one line on such a screen`)
    const ben = await people.signIn('ben', '/console/items', { viewport: { width, height: 480 } })
    for (const path of ['/console/inbox', '/console/items', `/console/items/${id}`, '/console/live', '/console/overview', '/console/workflows', '/console/evidence']) {
      await ben.goto(path)
      await expect(ben.getByRole('heading', { level: 1 })).toBeVisible()
      const overflow = await ben.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      expect.soft(overflow, `${path} is wider than the screen`).toBeLessThanOrEqual(0)
      const { violations } = await axeOf(ben).withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']).analyze()
      expect.soft(violations.map(({ id, nodes }) => `${path}: ${id} at ${nodes.map((node) => node.target.join(' ')).join(', ')}`)).toEqual([])
    }
    await ben.goto('/console/items')
    await expect(ben.getByRole('columnheader').first()).toBeAttached()
    await ben.goto(`/console/items/${id}`)
    await ben.getByRole('group', { name: 'Actions' }).getByRole('button', { name: 'Approve' }).click()
    const dialog = ben.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Approve' }).scrollIntoViewIfNeeded()
    await expect(dialog.getByRole('button', { name: 'Approve' })).toBeInViewport()
  })
}

test('on touch every control is at least 44 pixels high', async ({ people, service }) => {
  const id = await service.itemIn('submitted', 'Touched')
  const ben = await people.signIn('ben', `/console/items/${id}`, { hasTouch: true, isMobile: true, viewport: { width: 390, height: 800 } })
  await expect(ben.getByRole('button', { name: 'Approve' })).toBeVisible()
  const small = await ben.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>('button, select, input:not([type="checkbox"], [type="radio"]), .button')]
      .filter((element) => element.checkVisibility() && element.getBoundingClientRect().height > 0 && element.getBoundingClientRect().height < 44)
      .map((element) => `${element.tagName} ${element.className} ${element.textContent?.trim().slice(0, 30)} ${element.getBoundingClientRect().height}`),
  )
  expect(small).toEqual([])
})
