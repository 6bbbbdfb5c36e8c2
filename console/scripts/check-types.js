// Checks every type, and that the checker itself still finds faults: one that silently passes everything looks the same
// as clean code.
import { execFileSync, spawnSync } from 'node:child_process'

const bin = (name) => `node_modules/.bin/${name}`
const run = (name, ...rest) => execFileSync(bin(name), rest, { stdio: 'inherit' })
const outputOf = (name, ...rest) => spawnSync(bin(name), rest, { encoding: 'utf8' }).stdout

const found = outputOf('svelte-check', '--tsconfig', 'scripts/canary/tsconfig.json')
if (!found.includes("Type 'string' is not assignable to type 'number'")) {
  throw new Error(`the type checker no longer finds a plain fault:\n${found}`)
}
run('svelte-check', '--fail-on-warnings')
