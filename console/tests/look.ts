// A screen looked at in light and dark, wide and narrow.
import AxeBuilder from '@axe-core/playwright'
import { expect, type Page } from '@playwright/test'

/**
 * Without the blank page in which results of several frames are put together, which costs more than looking: the console's
 * policy allows no frames.
 */
export const axeOf = (page: Page) => new AxeBuilder({ page }).setLegacyMode()

/** With a directory here, the screens are also kept as pictures. */
const PICTURES = process.env.PICTURES

export async function look(page: Page, name: string): Promise<void> {
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    const axe = axeOf(page)
    // Only colours differ in the dark.
    if (scheme === 'dark') axe.withRules('color-contrast')
    else axe.withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'])
    const { violations } = await axe.analyze()
    const found = violations.map(({ id, nodes }) => `${name} in ${scheme}: ${id} at ${nodes.map((node) => node.target.join(' ')).join(', ')}`)
    expect.soft(found).toEqual([])
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}-${scheme}.png` })
  }
  // Those who ask for more contrast get it in both, and those whose system chooses the colours lose nothing but colours.
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme, contrast: 'more' })
    const { violations } = await axeOf(page).withRules('color-contrast').analyze()
    expect.soft(violations.flatMap(({ nodes }) => nodes.map((node) => `${name} with more contrast in ${scheme}: ${node.target.join(' ')}`))).toEqual([])
  }
  if (PICTURES) {
    await page.emulateMedia({ colorScheme: 'dark', contrast: null, forcedColors: 'active' })
    await page.screenshot({ path: `${PICTURES}/${name}-forced.png` })
  }
  await page.emulateMedia({ colorScheme: 'light', contrast: null, forcedColors: null })
  await page.setViewportSize({ width: 360, height: 740 })
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
  expect.soft(overflow, `${name} is wider than a narrow screen`).toBeLessThanOrEqual(0)
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}-narrow.png`, fullPage: true })
  await page.setViewportSize({ width: 1280, height: 860 })
}
