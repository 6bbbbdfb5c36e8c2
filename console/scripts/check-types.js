// Checks every type, and that the checker itself still finds faults: one that silently passes everything looks the same
// as clean code. Then that the API's types are those of the API's document.
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'

const bin = (name) => `node_modules/.bin/${name}`
const run = (name, ...rest) => execFileSync(bin(name), rest, { stdio: 'inherit' })
const outputOf = (name, ...rest) => spawnSync(bin(name), rest, { encoding: 'utf8' }).stdout

const found = outputOf('svelte-check', '--tsconfig', 'scripts/canary/tsconfig.json')
if (!found.includes("Type 'string' is not assignable to type 'number'")) {
  throw new Error(`the type checker no longer finds a plain fault:\n${found}`)
}
run('svelte-check', '--fail-on-warnings')

const fresh = 'node_modules/.cache-openapi.d.ts'
execFileSync(bin('openapi-typescript'), ['../docs/reference/openapi.json', '--empty-objects-unknown', '--output', fresh])
if (readFileSync(fresh, 'utf8') !== readFileSync('src/openapi.d.ts', 'utf8')) {
  throw new Error('src/openapi.d.ts is not what the API says; run `cargo xtask console api` and read the difference')
}
rmSync(fresh)
