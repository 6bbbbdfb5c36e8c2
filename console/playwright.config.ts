import { defineConfig } from '@playwright/test'

const CHROMIUM = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export default defineConfig({
  testDir: 'tests',
  outputDir: '../target/console-tests',
  fullyParallel: true,
  workers: 2,
  // Deadlines, not waits: a busy machine is slow, and a test that fails for that says nothing.
  timeout: 180_000,
  expect: { timeout: 20_000 },
  reporter: [['list']],
  forbidOnly: true,
  use: { locale: 'en-GB', timezoneId: 'Europe/Vienna', viewport: { width: 1280, height: 860 } },
  projects: [
    { name: 'chromium', use: { browserName: 'chromium', launchOptions: { executablePath: '/usr/bin/chromium', args: CHROMIUM } } },
    {
      name: 'firefox',
      testMatch: ['bundle-form.spec.ts', 'journey.spec.ts', 'keyboard.spec.ts'],
      use: {
        browserName: 'firefox',
        channel: 'moz-firefox',
        launchOptions: { executablePath: new URL('scripts/firefox.js', import.meta.url).pathname },
      },
    },
  ],
})
