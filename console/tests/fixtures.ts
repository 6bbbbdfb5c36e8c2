// What every test shares: a service for each worker, people in tabs of their own, and a watch over each of their pages.
import { expect, test as base, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from '@playwright/test'
import { PEOPLE, Service, type Person } from './service'

const ROLE_WORDS: Record<string, string> = {
  initiator: 'initiator',
  approver: 'approver',
  security_admin: 'security admin',
  executor: 'executor',
  auditor: 'auditor',
}

/** Everything on a page that must never happen, whatever the test is about. */
export class Watch {
  readonly findings: string[] = []
  readonly #secrets: string[]

  constructor(page: Page, secrets: string[]) {
    this.#secrets = secrets
    page.on('console', (message) => {
      const text = message.text()
      // The browser itself reports answers of 4xx and lost connections; those are what some tests are about.
      if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(text)) this.findings.push(`console: ${text}`)
      this.#leak('console', text)
    })
    page.on('pageerror', (error) => this.findings.push(`page: ${error.message}`))
    page.on('dialog', (dialog) => {
      if (dialog.type() === 'beforeunload') return dialog.accept()
      // The console itself never alerts; it asks before unsaved work is lost, and is told to stay.
      if (dialog.type() !== 'confirm') this.findings.push(`a script ran: ${dialog.message()}`)
      return dialog.dismiss()
    })
    page.on('request', (request) => {
      this.#leak('an address', request.url())
      this.#leak('a body', request.postData() ?? '')
      this.#leak('a referrer', request.headers().referer ?? '')
      if (!/^(blob:)?https?:\/\/127\.0\.0\.1:/.test(request.url())) {
        this.findings.push(`a request to somewhere else: ${request.url()}`)
      }
    })
  }

  #leak(where: string, text: string): void {
    if (this.#secrets.some((secret) => text.includes(secret))) this.findings.push(`a token in ${where}`)
  }
}

export class People {
  readonly #watches: Watch[] = []
  readonly #contexts: BrowserContext[] = []
  readonly #browser: Browser
  readonly #service: Service

  constructor(browser: Browser, service: Service) {
    this.#browser = browser
    this.#service = service
  }

  /** A browser of one's own, at the sign-in. */
  async visit(path = '/', options: BrowserContextOptions = {}): Promise<Page> {
    const context = await this.#browser.newContext({ baseURL: this.#service.url, ...options })
    this.#contexts.push(context)
    const page = await context.newPage()
    await this.watch(page)
    await page.goto(path)
    return page
  }

  async watch(page: Page): Promise<void> {
    const watch = new Watch(page, Object.values(this.#service.tokens))
    this.#watches.push(watch)
    await page.exposeFunction('reportViolation', (what: string) => watch.findings.push(`policy: ${what}`))
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        const { reportViolation } = window as unknown as { reportViolation: (what: string) => void }
        reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`)
      })
    })
  }

  async signIn(person: Person, path = '/', options: BrowserContextOptions = {}): Promise<Page> {
    const page = await this.visit(path, options)
    await enter(page, this.#service, person)
    return page
  }

  async settle(): Promise<void> {
    await Promise.all(this.#contexts.map((context) => context.close()))
    expect(this.findings()).toEqual([])
  }

  findings(): string[] {
    return this.#watches.flatMap((watch) => watch.findings)
  }
}

export async function enter(page: Page, service: Service, person: Person): Promise<void> {
  await page.getByLabel('Your token').fill(service.tokens[person])
  await page.getByRole('button', { name: 'Continue' }).click()
  await expect(page.getByText(`You are ${person}, acting as ${ROLE_WORDS[PEOPLE[person]]}`)).toBeVisible()
  await page.getByRole('button', { name: 'Yes, continue' }).click()
  await expect(page.locator('#main')).toBeVisible()
}

export const test = base.extend<{ people: People }, { service: Service }>({
  service: [
    async ({}, use) => {
      const service = new Service()
      await service.start()
      await use(service)
      await service.remove()
    },
    { scope: 'worker' },
  ],
  people: async ({ browser, service }, use) => {
    const people = new People(browser, service)
    await use(people)
    await people.settle()
  },
})

export { expect }
