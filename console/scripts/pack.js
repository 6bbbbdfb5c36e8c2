// Packs the built files for readers who can unpack them, and holds the first load to its size.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const LIMIT = 150_000
const sizes = new Map()
for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(html|js|css|svg|wasm)$/.test(entry.name)) continue
  const path = `${entry.parentPath}/${entry.name}`
  const bytes = readFileSync(path)
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
  const gzip = gzipSync(bytes, { level: 9 })
  writeFileSync(`${path}.br`, brotli)
  writeFileSync(`${path}.gz`, gzip)
  sizes.set(path, gzip.length)
  console.log(`${path}: ${bytes.length} bytes, gzip ${gzip.length}, brotli ${brotli.length}`)
}

// The first load is the page, what it names, and what that imports at once; not what is loaded when it is wanted.
const first = new Set()
const named = (path) => [...readFileSync(path, 'utf8').matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, name]) => `dist/${name}`)
const imported = (path) => [...readFileSync(path, 'utf8').matchAll(/(?:from|^import|;import)\s*"\.\/([^"]+\.js)"/g)].map(([, name]) => `dist/assets/${name}`)
function load(path) {
  if (first.has(path)) return
  if (!sizes.has(path)) throw new Error(`${path} is wanted first and was not built`)
  first.add(path)
  for (const next of path.endsWith('.html') ? named(path) : path.endsWith('.js') ? imported(path) : []) load(next)
}
load('dist/index.html')
const total = [...first].reduce((sum, path) => sum + sizes.get(path), 0)
if (first.size < 4) throw new Error('a page, a script, a style and an icon are the least there is')

// The directory itself is in the repository, so that the service can be built without a console.
writeFileSync('dist/.gitkeep', '')
console.log(`first load: ${total} bytes with gzip, at most ${LIMIT}`)
if (total > LIMIT) throw new Error('the first load is too large')
// What is here has passed: it need not be built again until a source changes.
writeFileSync('dist/.packed', '')
