// What is chosen, dropped and typed on the screen that verifies bundles, and what is said about it. In two browsers: their
// threads, policies and files differ.
import { choose, fileField, keyField, panel, sample, sampleKey, verdict, verify } from './bundles'
import { expect, test } from './fixtures'
import { look } from './look'

test('another key, a changed byte and what is not a bundle are each told apart', async ({ people, service }) => {
  const page = await people.visit('/console/verify')
  await choose(page, sample('whole'))
  await keyField(page).fill(await service.verifierKey())
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence does not hold.')
  await expect(page.getByRole('table', { name: 'Checks' }).getByRole('row', { name: /^manifest/ })).toContainText('fails')
  await keyField(page).fill(sampleKey())
  // What was said was about the other key.
  await expect(verdict(page)).toBeEmpty()
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds.')
  await fileField(page).setInputFiles(sample('changed'))
  await expect(verdict(page)).toBeEmpty()
  await verify(page)
  await expect(page.getByRole('region', { name: '1 fault' })).toContainText('checkpoint: its bytes were changed')
  for (const buffer of [Buffer.alloc(0), Buffer.from('not a zip file')]) {
    await fileField(page).setInputFiles({ name: 'broken.zip', mimeType: 'application/zip', buffer })
    await verify(page)
    await expect(page.getByRole('region', { name: '1 fault' })).toContainText('the bundle: byte 0: this is not a bundle')
  }
})

test('what is missing or mistyped is said at its field', async ({ people }) => {
  const page = await people.visit('/console/verify')
  await verify(page)
  await expect(fileField(page)).toBeFocused()
  await expect(fileField(page)).toHaveAccessibleDescription(/Choose a bundle first\./)
  await fileField(page).setInputFiles(sample('whole'))
  await expect(panel(page).getByText(/^whole\.zip, \d/)).toBeVisible()
  await verify(page)
  await expect(keyField(page)).toBeFocused()
  await keyField(page).fill(sampleKey().slice(0, -1))
  await verify(page)
  await expect(keyField(page)).toHaveAccessibleDescription(/The verifier cannot start: /)
  await keyField(page).fill(sampleKey())
  await page.getByText('Witnesses', { exact: true }).click()
  await page.getByLabel('How many must have signed').fill('2')
  await verify(page)
  await expect(page.getByLabel('How many must have signed')).toHaveAccessibleDescription(/2 are required, but 0 keys are given/)
  await page.getByLabel('How many must have signed').fill('')
  await page.getByLabel('The witnesses’ keys').fill(sampleKey())
  await verify(page)
  await expect(page.getByLabel('The witnesses’ keys')).toHaveAccessibleDescription(/the key has the wrong type/)
  await look(page, 'bundle-mistyped')
})

test('a file can be dropped, one at a time, and not one that memory cannot hold', async ({ people }) => {
  const page = await people.visit('/console/verify')
  await keyField(page).fill(sampleKey())
  const drop = async (...names: string[]) => {
    const files = names.map((name) => ({ name, base64: sample(name).buffer.toString('base64') }))
    const data = await page.evaluateHandle((files) => {
      const transfer = new DataTransfer()
      for (const { name, base64 } of files) transfer.items.add(new File([Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0))], `${name}.zip`))
      return transfer
    }, files)
    const place = page.getByText('or drop a file here')
    await place.dispatchEvent('dragover', { dataTransfer: data })
    await place.dispatchEvent('drop', { dataTransfer: data })
  }
  await drop('whole')
  await expect(panel(page).getByText(/^whole\.zip, \d/)).toBeVisible()
  await verify(page)
  await expect(verdict(page)).toContainText('The evidence holds.')
  await drop('whole', 'changed')
  await expect(fileField(page)).toHaveAccessibleDescription(/Drop one file at a time\./)
  await page.evaluate(() => Object.defineProperty(Blob.prototype, 'size', { get: () => 2_500_000_000 }))
  await drop('whole')
  await expect(fileField(page)).toHaveAccessibleDescription(/This file has 2\.5 GB, and a browser can verify at most 1\.0 GB\. Use pilot evidence verify\./)
  await verify(page)
  await expect(fileField(page)).toBeFocused()
})

test('everything can be done with the keyboard', async ({ people }) => {
  const page = await people.visit('/console/verify')
  await fileField(page).setInputFiles(sample('whole'))
  await fileField(page).focus()
  await page.keyboard.press('Tab')
  await expect(keyField(page)).toBeFocused()
  await page.keyboard.insertText(sampleKey())
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await expect(page.getByRole('button', { name: 'Verify the bundle' })).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(verdict(page)).toContainText('The evidence holds.')
  await page.keyboard.press('Tab')
  await expect(page.locator('summary', { hasText: 'Rotate the signing key' })).toBeFocused()
  await page.keyboard.press('Enter')
  const item = page.locator('details', { hasText: 'Rotate the signing key' })
  await expect(item.getByText('controlled-operation, version')).toBeVisible()
})
