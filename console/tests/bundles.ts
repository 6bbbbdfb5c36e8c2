// The screen that verifies bundles, and bundles that come with the program's answers.
import { readFileSync } from 'node:fs'
import type { Page } from '@playwright/test'

export const SAMPLES = new URL('../../crates/pilot-verify/tests/bundles/', import.meta.url)
export const sample = (name: string) => ({ name: `${name}.zip`, mimeType: 'application/zip', buffer: Buffer.from(readFileSync(new URL(`${name}.base64`, SAMPLES), 'utf8'), 'base64') })
export const sampleKey = () => readFileSync(new URL('log.pub', SAMPLES), 'utf8').trim()

export const fileField = (page: Page) => page.getByLabel('Bundle', { exact: true })
export const keyField = (page: Page) => page.getByLabel('Verifier key of the log')
export const verify = (page: Page) => page.getByRole('button', { name: 'Verify the bundle' }).click()
export const panel = (page: Page) => page.getByRole('region', { name: 'Verify a bundle' })
export const verdict = (page: Page) => panel(page).getByRole('status').last()

/** The verifier is fetched when a bundle is chosen; from then on the network is not needed. */
export async function choose(page: Page, bundle: { name: string; mimeType: string; buffer: Buffer }): Promise<void> {
  const loading = page.waitForResponse(/\.wasm$/)
  const starting = page.waitForEvent('worker')
  await fileField(page).setInputFiles(bundle)
  await (await loading).finished()
  await starting
}
