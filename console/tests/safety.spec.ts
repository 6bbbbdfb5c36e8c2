// Hostile text, a strict policy, and lists of any length.
import { expect, People, test } from './fixtures'
import { Service } from './service'

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(2)</script>',
  '<svg/onload=alert(3)>',
  "{@html '<img src=x onerror=alert(4)>'}",
  '<style>*{display:none}</style><a href="javascript:alert(5)">x</a>',
].join(' ')

test('hostile text in every field is shown as text and runs nothing', async ({ people, service }) => {
  const payload = {
    purpose: HOSTILE,
    operation: { command: HOSTILE, [HOSTILE]: HOSTILE },
    risk: 'low',
    rollback_plan: HOSTILE,
    targets: [HOSTILE],
    expected_outcome: HOSTILE,
    security_impact: HOSTILE,
    test_evidence: HOSTILE,
    links: ['javascript:alert(6)', 'data:text/html;base64,PHNjcmlwdD4=', 'https://example.org/%22onmouseover=%22alert(8)'],
    [HOSTILE]: { nested: [HOSTILE] },
  }
  const title = HOSTILE.slice(0, 180)
  const { id } = await service.draft(title, payload)
  const ana = await people.signIn('ana', `/console/items/${id}/edit`)
  await expect(ana.getByLabel('Title')).toHaveValue(title)
  await ana.getByRole('button', { name: 'Write it as JSON' }).click()
  await service.act('ana', id, 'submit')
  await service.call('ben', 'POST', `/v1/items/${id}/comments`, { text: HOSTILE })
  const ben = await people.signIn('ben', `/console/items/${id}`)
  await expect(ben.getByRole('heading', { level: 1 })).toHaveText(title)
  expect(await ben.locator('a[href^="javascript:" i], a[href^="data:" i]').count()).toBe(0)
  expect(await ben.locator('main img, main script, main style, main [onerror], main [onload]').count()).toBe(0)
  await ben.getByRole('button', { name: 'Approve' }).click()
  await expect(ben.getByRole('dialog')).toContainText('<img src=x onerror=alert(1)>')
  await ben.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click()
  await expect(ben.locator('.screen .badge').first()).toHaveText('approved')
  await service.act('sol', id, 'clear', { inputs: { not_after: new Date(Date.now() + 3_600_000).toISOString() } })
  await service.act('eli', id, 'start')
  const artifact = { name: HOSTILE, sha256: '0'.repeat(64), bytes: 1, uri: 'javascript:alert(9)' }
  await service.act('eli', id, 'succeed', { inputs: { result: HOSTILE, artifacts: [artifact] } })
  for (const path of [`/console/items/${id}`, '/console/items', '/console/inbox', '/console/live', `/console/items?q=${encodeURIComponent(HOSTILE)}`, `/console/${encodeURIComponent(HOSTILE)}`, `/console/workflows/${encodeURIComponent('<img src=x onerror=alert(1)>')}`]) {
    await ben.goto(path)
    await expect(ben.getByRole('heading', { level: 1 })).toBeVisible()
  }
  await ben.goto('/console/inbox')
  await expect(ben.getByText('onerror=alert(1)').first()).toBeVisible()
})

test('text without end or space does not break the page', async ({ people, service }) => {
  const { id } = await service.draft('W'.repeat(200), { operation: 'x'.repeat(40_000), [`member${'y'.repeat(400)}`]: 'z'.repeat(3_000) })
  await service.act('ana', id, 'submit')
  const page = await people.signIn('ben', `/console/items/${id}`, { viewport: { width: 360, height: 740 } })
  for (const path of [`/console/items/${id}`, '/console/items', '/console/inbox', '/console/live']) {
    await page.goto(path)
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible()
    await expect(page.getByText('WWWWWWWW').first()).toBeVisible()
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    expect(overflow, path).toBeLessThanOrEqual(0)
  }
})

test('the policy allows nothing unsafe, and Trusted Types are enforced', async ({ browser, service }) => {
  const answer = await fetch(service.url)
  const policy = answer.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("script-src 'self'")
  expect(policy).toContain("require-trusted-types-for 'script'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe|\*|http:|https:|data:/)
  const html = await answer.text()
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/i)
  // A page of its own without the watch: here violations are the point.
  const page = await browser.newPage()
  await page.goto(service.url)
  await expect(page.getByLabel('Your token')).toBeVisible()
  const verdicts = await page.evaluate(() => {
    const refused = (attempt: () => unknown) => {
      try {
        attempt()
        return false
      } catch {
        return true
      }
    }
    // From a timer, because what a debugger evaluates directly is exempt from the policy.
    return new Promise((resolve) => setTimeout(() => resolve({
      html: refused(() => (document.createElement('div').innerHTML = '<b>x</b>')),
      evaluation: refused(() => new Function('return 1')()),
      script: refused(() => (document.createElement('script').src = 'data:text/javascript,1')),
    })))
  })
  expect(verdicts).toEqual({ html: true, evaluation: true, script: true })
  await page.close()
})

test('files are kept by the browser for good, and the page is asked for each time', async ({ service }) => {
  const page = await fetch(service.url)
  expect(page.headers.get('cache-control')).toBe('no-cache')
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(await page.text())?.[1] ?? ''
  const file = await fetch(service.url + script, { headers: { 'Accept-Encoding': 'br' } })
  expect(file.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(file.headers.get('content-encoding')).toBe('br')
  const again = await fetch(service.url, { headers: { 'If-None-Match': page.headers.get('etag') ?? '' } })
  expect(again.status).toBe(304)
  const plain = await fetch(service.url + script, { headers: { 'Accept-Encoding': 'br;q=0, identity' } })
  expect(plain.headers.get('content-encoding')).toBeNull()
  for (const path of ['/assets/none.js', '/assets/../index.html', '/nothing', '/consoles']) {
    expect((await fetch(service.url + path)).status, path).toBe(404)
  }
})

test('among ten thousand items one is found, and a page is a page', async ({ browser }) => {
  const service = new Service()
  await service.start()
  const people = new People(browser, service)
  try {
    const titles = Array.from({ length: 10_000 }, (_, at) => `Item number ${at}`)
    const workers = Array.from({ length: 64 }, async () => {
      for (let title = titles.pop(); title !== undefined; title = titles.pop()) await service.draft(title)
    })
    await Promise.all(workers)
    const page = await people.signIn('ada', '/console/items')
    const rows = page.getByRole('row')
    await expect(rows).toHaveCount(51)
    for (const from of [51, 101, 151]) {
      await page.getByRole('link', { name: 'Older' }).click()
      await expect(page.getByText(`${from}–${from + 49} of 10,000`)).toBeVisible()
      await expect(rows).toHaveCount(51)
    }
    await page.goBack()
    await expect(page.getByText('101–150 of 10,000')).toBeVisible()
    await page.getByLabel('Search content, people or ids').fill('number 4711')
    await expect(page.getByRole('link', { name: 'Item number 4711' })).toBeVisible()
    await expect(rows).toHaveCount(2)
    await page.goto('/console/overview')
    await expect(page.getByText('Open now').locator('..')).toContainText('10,000')
    await people.settle()
  } finally {
    await service.remove()
  }
})

test('the watch over every page notices a violation, a script that ran and a token in an address', async ({ browser, service }) => {
  const people = new People(browser, service)
  const page = await people.visit('/')
  await page.evaluate((token) => {
    const style = document.createElement('style')
    style.textContent = 'body { color: red }'
    document.head.append(style)
    alert('ran')
    void fetch(`/healthz?${token}`)
  }, service.tokens.eli)
  await expect.poll(() => people.findings().sort().map((finding) => finding.split(' ').slice(0, 2).join(' '))).toEqual(
    expect.arrayContaining(['a script', 'a token', 'policy: style-src-elem']),
  )
  await page.close()
})
