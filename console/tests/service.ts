// The real service, on a port and in a directory of its own, with people whose tokens only the test knows.
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export const PROGRAM = process.env.PILOT_PROGRAM ?? new URL('../../target/debug/pilot', import.meta.url).pathname

export const PEOPLE = {
  ana: 'initiator',
  ben: 'approver',
  bea: 'approver',
  sol: 'security_admin',
  eli: 'executor',
  ada: 'auditor',
} as const
export type Person = keyof typeof PEOPLE

export interface ItemView {
  id: string
  version: number
  state: string
  title: string
  content_digest: string
  actions: string[]
}

export class Service {
  url = ''
  tokens = {} as Record<Person, string>
  readonly #directory = mkdtempSync(join(tmpdir(), 'pilot-console-'))
  #child: ChildProcess | null = null

  /** `sections` are further ones of the configuration; `lives` say in how many seconds a person's credential ends. */
  constructor(readonly sections = '', public lives: Partial<Record<Person, number>> | null = null) {
    for (const person of Object.keys(PEOPLE) as Person[]) this.tokens[person] = randomBytes(30).toString('base64url')
    const actors = Object.entries(PEOPLE).map(([actor_id, role]) => ({ actor_id, role }))
    this.#write('role-map.json', { schema_version: 1, approved_by: ['Ina', 'Jo'], actors })
    this.#writeCredentials()
    this.#configure('127.0.0.1:0')
  }

  #write(name: string, content: unknown): void {
    writeFileSync(this.path(name), JSON.stringify(content), { mode: 0o600 })
  }

  path(name: string): string {
    return join(this.#directory, name)
  }

  #writeCredentials(): void {
    const credentials = (Object.keys(PEOPLE) as Person[]).map((actor_id) => ({
      actor_id,
      roles: [PEOPLE[actor_id]],
      token_sha3_256: createHash('sha3-256').update(this.tokens[actor_id]).digest('hex'),
    }))
    if (this.lives === null) this.#write('credentials.json', { schema_version: 1, credentials })
    else this.#write('credentials.json', { schema_version: 2, credentials: credentials.map((entry) => this.#living(entry)) })
  }

  /** Each token has its own name, as the second version of the file has it, and an end. */
  #living<T extends { actor_id: Person; token_sha3_256: string }>(entry: T): object {
    const seconds = this.lives?.[entry.actor_id] ?? 90 * 86_400
    const expires_at = new Date(Date.now() + seconds * 1_000).toISOString()
    return { ...entry, credential_id: `${entry.actor_id}-${entry.token_sha3_256.slice(0, 6)}`, expires_at }
  }

  /** What the credential of someone's token is called. */
  credentialOf(person: Person): string {
    return `${person}-${createHash('sha3-256').update(this.tokens[person]).digest('hex').slice(0, 6)}`
  }

  #configure(listen: string): void {
    const text = `listen = "${listen}"\n[credentials]\nrole_map = "role-map.json"\n${this.sections}`
    writeFileSync(this.path('pilot.toml'), text, { mode: 0o600 })
  }

  async start(): Promise<void> {
    const child = spawn(PROGRAM, ['serve', '--config', 'pilot.toml', '--log-level', 'error'], {
      cwd: this.#directory,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    for await (const line of createInterface({ input: child.stdout })) {
      this.url = line.replace('listening on ', '')
      // The same address after a restart, as in life.
      this.#configure(new URL(this.url).host)
      return
    }
    throw new Error('the service did not start listening')
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === null || child.exitCode !== null) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    await ended
    this.#child = null
  }

  /** What rotation ends with: another token, and a restart. */
  async rotate(person: Person): Promise<void> {
    await this.stop()
    this.tokens[person] = randomBytes(30).toString('base64url')
    this.#writeCredentials()
    await this.start()
  }

  async remove(): Promise<void> {
    await this.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** The log's verifier key, as an auditor would have it written down. */
  async verifierKey(): Promise<string> {
    return (await this.run('log', 'key')).trim()
  }

  /** Another command of the program, for this service. Gives what it prints. */
  run(...command: string[]): Promise<string> {
    const child = spawn(PROGRAM, [...command, '--config', 'pilot.toml'], { cwd: this.#directory })
    let text = ''
    child.stdout.on('data', (chunk) => (text += String(chunk)))
    return new Promise((resolve, reject) => child.once('exit', (code) => (code === 0 ? resolve(text) : reject(new Error(`${command.join(' ')} ended with ${code}`)))))
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8')
  }

  async call<T>(person: Person, method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(this.url + path, {
      method,
      headers: { Authorization: `Bearer ${this.tokens[person]}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }

  draft(title: string, payload: Record<string, unknown> = {}): Promise<ItemView> {
    const whole = { purpose: 'a test', operation: 'true', risk: 'low', rollback_plan: 'false', ...payload }
    return this.call('ana', 'POST', '/v1/items', { workflow: 'controlled-operation', title, payload: whole })
  }

  item(id: string): Promise<ItemView> {
    return this.call('ada', 'GET', `/v1/items/${id}`)
  }

  async act(person: Person, id: string, action: string, more: Record<string, unknown> = {}): Promise<void> {
    const { content_digest } = await this.item(id)
    await this.call(person, 'POST', `/v1/items/${id}/transitions`, { action, content_digest, ...more })
  }

  /** An item that has come as far as the given state. */
  async itemIn(state: 'draft' | 'submitted' | 'approved' | 'cleared' | 'executing' | 'succeeded', title: string, payload = {}): Promise<string> {
    const { id } = await this.draft(title, payload)
    const inputs = { not_after: new Date(Date.now() + 3_600_000).toISOString() }
    const way: [string, Person, string, Record<string, unknown>?][] = [
      ['submitted', 'ana', 'submit'],
      ['approved', 'ben', 'approve'],
      ['cleared', 'sol', 'clear', { inputs }],
      ['executing', 'eli', 'start'],
      ['succeeded', 'eli', 'succeed'],
    ]
    if (state === 'draft') return id
    for (const [reached, person, action, more] of way) {
      await this.act(person, id, action, more)
      if (reached === state) break
    }
    return id
  }
}
