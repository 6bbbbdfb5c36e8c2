// An issuer of certificates, and a service that knows people by them.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { PEOPLE, Service, type Person } from './service'

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
const LEAF = ['-addext', 'basicConstraints=critical,CA:FALSE']

export class Certificates {
  readonly service: Service

  constructor() {
    const [certificate, key, client_ca] = ['tls.pem', 'tls.key', 'clients.pem']
    const tls = `[tls]\ncertificate = "${certificate}"\nkey = "${key}"\nclient_ca = "${client_ca}"\n`
    this.service = new Service(`${tls}[identity]\nmechanism = "mutual_tls"\n`)
    const actors = (Object.keys(PEOPLE) as Person[]).map((actor_id) => ({ actor_id, role: PEOPLE[actor_id], subject: `CN=${actor_id},O=Example` }))
    const map = { schema_version: 1, approved_by: ['Ina', 'Jo'], actors }
    writeFileSync(this.service.path('role-map.json'), JSON.stringify(map), { mode: 0o600 })
    this.#make('tls', ['-subj', '/CN=pilot', '-days', '2', '-addext', 'subjectAltName=IP:127.0.0.1', ...LEAF])
    this.#make('clients', ['-subj', '/CN=Clients', '-days', '20'])
  }

  #make(name: string, more: string[]): void {
    const { service } = this
    const files = ['-keyout', service.path(`${name}.key`), '-out', service.path(`${name}.pem`)]
    execFileSync('openssl', ['req', '-x509', ...KEY, ...files, ...more], { stdio: ['ignore', 'ignore', 'pipe'] })
  }

  /** What a browser has to show for this person. */
  issue(name: string, days: number): { origin: string; certPath: string; keyPath: string } {
    const { service } = this
    const issuer = ['-CA', service.path('clients.pem'), '-CAkey', service.path('clients.key')]
    this.#make(name, [...issuer, '-subj', `/O=Example/CN=${name}`, '-days', String(days), '-addext', 'extendedKeyUsage=clientAuth', ...LEAF])
    return { origin: service.url, certPath: service.path(`${name}.pem`), keyPath: service.path(`${name}.key`) }
  }
}
