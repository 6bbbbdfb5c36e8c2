// The identity provider of the service's own tests, as a place where people sign in.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const DIRECTORY = fileURLToPath(new URL('../../crates/pilot/tests/oauth/provider', import.meta.url))
const AUDIENCE = 'https://pilot.example'

export class Provider {
  url = ''
  #child: ChildProcess | null = null

  async start(options: { lifetime: number; refresh: boolean }): Promise<void> {
    if (!existsSync(`${DIRECTORY}/node_modules`)) {
      throw new Error(`${DIRECTORY}: has no packages; run \`npm install --no-save --ignore-scripts\` there`)
    }
    const text = JSON.stringify({ audience: AUDIENCE, console: true, ...options })
    const child = spawn('node', ['provider.mjs', text], { cwd: DIRECTORY, stdio: ['ignore', 'pipe', 'ignore'] })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      const port = /^ready (\d+)$/.exec(line)?.[1]
      if (port === undefined) continue
      this.url = `http://127.0.0.1:${port}`
      return
    }
    throw new Error('the provider did not start')
  }

  /** What makes a service trust it. */
  sections(): string {
    return [
      '[identity]\nmechanism = "oauth"',
      `[identity.oauth]\nissuer = "${this.url}"\naudience = "${AUDIENCE}"\nleeway_seconds = 0`,
      'console_client_id = "console"\nconsole_scopes = ["openid"]\n',
    ].join('\n')
  }

  stop(): void {
    this.#child?.kill()
  }
}
