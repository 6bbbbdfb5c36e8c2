// Checks that the API's types, which the console shares with others, are those of the API's document.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'

const fresh = 'node_modules/.cache-openapi.d.ts'
const shared = '../clients/typescript/openapi.d.ts'
const options = ['../docs/reference/openapi.json', '--empty-objects-unknown', '--output', fresh]
execFileSync('node_modules/.bin/openapi-typescript', options)
if (readFileSync(fresh, 'utf8') !== readFileSync(shared, 'utf8')) {
  throw new Error(`${shared} is not what the API says; run \`cargo xtask console api\` and read the difference`)
}
rmSync(fresh)
