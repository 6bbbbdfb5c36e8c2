// Packs the built files for readers who can unpack them, and holds the first load to its size.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const LIMIT = 150_000
let total = 0
for (const entry of readdirSync('dist', { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !/\.(html|js|css|svg)$/.test(entry.name)) continue
  const path = `${entry.parentPath}/${entry.name}`
  const bytes = readFileSync(path)
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })
  const gzip = gzipSync(bytes, { level: 9 })
  writeFileSync(`${path}.br`, brotli)
  writeFileSync(`${path}.gz`, gzip)
  total += gzip.length
  console.log(`${path}: ${bytes.length} bytes, gzip ${gzip.length}, brotli ${brotli.length}`)
}
// The directory itself is in the repository, so that the service can be built without a console.
writeFileSync('dist/.gitkeep', '')
console.log(`first load: ${total} bytes with gzip, at most ${LIMIT}`)
if (total > LIMIT) throw new Error('the first load is too large')
