// Contents made to be mistaken for others. Of any two that differ, the page must differ in what is seen and in what is
// read out.
import { createHash } from 'node:crypto'
import type { Locator, Page } from '@playwright/test'
import { expect, test } from './fixtures'

const nested = (depth: number, leaf: unknown): unknown => (depth === 0 ? leaf : { d: nested(depth - 1, leaf) })

/** Each a payload of its own; the first of each pair is what a reader expects, the others pretend to be it. */
const CONTENTS: Record<string, unknown>[] = [
  // Trojan source: reordering, isolates and marks.
  ...['rm -rf /srv/data/only/tmp  # safe', 'rm -rf /srv/data/\u202epmt/ylno\u202c  # safe', 'rm -rf /srv/data/\u2067only/tmp\u2069  # safe', 'rm -rf /srv/data/\u200fonly/tmp  # safe', 'rm -rf /srv/data/only/tmp\u061c  # safe'],
  ...['if (admin) { run() }', 'if (admin\u202e) { run() }\u202c', 'if (admin\u2066) { run() }\u2069', 'if (\u200eadmin) { run() }'],
  // Zero width and other nothings.
  ...['pay 100', 'pay\u200b 100', 'pay\u200d 100', 'pay\u2060 100', 'pay\ufeff 100', 'pay\u00ad 100', 'pay 1\u034f00', 'pay\u180e 100', 'pay 100\u{e0031}', 'pay\ufe0f 100'],
  // Blanks.
  ...['copy a b', 'copy a\u00a0b', 'copy a\u2003b', 'copy a\u3000b', 'copy a  b', 'copy a\tb', 'copy a b ', ' copy a b', 'copy a\nb', 'copy a\r\nb', 'copy a\u2028b', 'copy a\u0085b', 'copy a b\n', 'copy a·b', 'copy·a·b', 'copy a ↵b', 'copy a⇥b'],
  // Letters and signs of other alphabets.
  ...['admin', '\u0430dmin', 'adm\u0456n', '\uff41dmin', '\u{1d41a}dmin', 'admi\u0578', 'ad\u217fin'],
  ...['scope', '\u0455\u0441\u043e\u0440\u0435'],
  ...['http://example.org', 'http:\u2215/example.org', 'http://example\u2024org', 'http://\u0435xample.org', 'http\ua789//example.org'],
  ...['rm -f x', 'rm \u2010f x', 'rm \u2212f x', 'rm \u2011f x', 'rm \u2012f x'],
  ...['caf\u00e9', 'cafe\u0301', '\u212bngstrom', '\u00c5ngstrom', 'A\u030angstrom', 'office', 'o\ufb03ce', 'x/y', 'x\u2044y', 'K', '\u212a', ';', '\u037e', "'", '\u02b9', '\u2032'],
  // Control characters.
  ...['ls', 'ls\u001b[2K', 'ls\u0007', 'ls\b\bxx', 'ls\u007f', 'ls\u009b2K'],
  // What pretends to be a mark.
  ...['a⟨U+202E⟩b', 'a\u202eb'],
].map((operation): Record<string, unknown> => ({ operation }))

CONTENTS.push(
  // Names.
  { note: '1' }, { 'note\u200b': '1' }, { 'n\u043ete': '1' }, { ' note': '1' }, { 'note ': '1' }, { Note: '1' }, { note_: '1' }, { __note: '1' }, { '': '1' }, { __proto__x: '1' },
  JSON.parse('{"__proto__": "1"}') as Record<string, unknown>,
  // Values that are written alike.
  { value: 1 }, { value: '1' }, { value: ['1'] }, { value: '["1"]' }, { value: null }, { value: 'null' }, { value: '' }, { value: [] }, { value: '[]' }, { value: {} }, { value: true }, { value: 'true' }, { value: [''] }, { value: ['a', 'b'] }, { value: ['a\nb'] }, { value: ['a', ' b'] }, { value: { a: 'b' } }, { value: '{\n  "a": "b"\n}' },
  // Long and deep.
  { ['k'.repeat(3_000)]: 'v' }, { ['k'.repeat(3_001)]: 'v' }, { deep: nested(20, 'x') }, { deep: nested(21, 'x') }, { deep: nested(20, 'x ') },
  { operation: 'x'.repeat(20_000) }, { operation: `${'x'.repeat(19_999)}\u0445` }, { operation: 'line\n'.repeat(3_000) }, { operation: `${'line\n'.repeat(2_999)}line \n` },
  { operation: `${'a\n'.repeat(20_000)}` }, { operation: 'y'.repeat(60_000) },
)

test('of all hostile contents no two look the same or are read the same', async ({ people, service }) => {
  test.setTimeout(600_000)
  expect(CONTENTS.length).toBeGreaterThanOrEqual(60)
  const ben = await people.signIn('ben')
  await ben.setViewportSize({ width: 1280, height: 900 })
  const seen = new Map<string, number>()
  const read = new Map<string, number>()
  const twins: string[] = []
  for (const [at, content] of CONTENTS.entries()) {
    const title = `Hostile ${at}`
    const { id } = await service.call<{ id: string }>('ana', 'POST', '/v1/items', { workflow: 'controlled-operation', title, payload: content })
    await follow(ben, `/console/items/${id}`)
    await expect(ben.getByRole('heading', { name: title, exact: true })).toBeVisible()
    const region = ben.getByRole('region', { name: 'Content' })
    await expect(ben.getByText('The text shown matches its digest')).toBeVisible()
    const tree = await region.ariaSnapshot()
    // A picture of a page of many lines is cut: its end is looked at as well.
    const pictures = [await shot(region, 0)]
    if ((await region.boundingBox())!.height > 8_000) pictures.push(await shot(region, 1))
    const picture = createHash('sha256').update(Buffer.concat(pictures)).digest('hex')
    for (const [kind, known, value] of [['look', seen, picture], ['are read', read, tree]] as const) {
      const other = known.get(value)
      if (other !== undefined) twins.push(`${JSON.stringify(CONTENTS[other]).slice(0, 80)} and ${JSON.stringify(content).slice(0, 80)} ${kind} the same`)
      known.set(value, at)
    }
  }
  expect(twins).toEqual([])
})

/** As a link of the page: loading all of it again for each content takes most of the time. */
async function follow(page: Page, path: string): Promise<void> {
  await page.evaluate((path) => {
    const link = document.createElement('a')
    link.href = path
    document.body.append(link)
    link.click()
    link.remove()
  }, path)
}

/** The region from its top, or up to its end. */
async function shot(region: Locator, end: 0 | 1): Promise<Buffer> {
  const page = region.page()
  const box = (await region.boundingBox())!
  const height = Math.min(box.height, 8_000)
  const top = await page.evaluate(() => scrollY)
  return page.screenshot({ fullPage: true, clip: { x: box.x, y: top + box.y + (end === 1 ? box.height - height : 0), width: box.width, height }, caret: 'hide', animations: 'disabled' })
}
