// Checks every type, and that the checker itself still finds faults: one that silently passes everything looks the same
// as clean code. Then that the API's types are those of the API's document.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

const bin = (name) => `node_modules/.bin/${name}`
const run = (name, ...rest) => execFileSync(bin(name), rest, { stdio: 'inherit' })
const fails = (name, ...rest) => {
  try {
    execFileSync(bin(name), rest, { stdio: 'ignore' })
    return false
  } catch {
    return true
  }
}

const canary = 'src/canary.svelte'
try {
  writeFileSync(canary, '<script lang="ts">\n  const wrong: number = "text"\n</script>\n\n{wrong}\n')
  if (!fails('svelte-check', '--fail-on-warnings')) throw new Error('the type checker no longer finds a plain fault')
} finally {
  rmSync(canary, { force: true })
}
run('svelte-check', '--fail-on-warnings')

const fresh = 'node_modules/.cache-openapi.d.ts'
execFileSync(bin('openapi-typescript'), ['../docs/reference/openapi.json', '--empty-objects-unknown', '--output', fresh])
if (readFileSync(fresh, 'utf8') !== readFileSync('src/openapi.d.ts', 'utf8')) {
  throw new Error('src/openapi.d.ts is not what the API says; run `npm run api` and read the difference')
}
rmSync(fresh)
