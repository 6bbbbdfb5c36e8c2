// A download that needs an Authorization header: fetched, counted, and only then handed to the browser.
import { open, Unreachable } from './api'
import { inNumbers } from './text'

export interface Progress {
  /** How many entries are to come, when the service says so. */
  entries: number | null
  bytes: number
  whole: number | null
}

export async function download(path: string, fallback: string, signal: AbortSignal, tell: (progress: Progress) => void): Promise<{ name: string; bytes: number }> {
  const response = await open(path, {}, signal)
  const length = Number(response.headers.get('Content-Length'))
  const whole = length > 0 ? length : null
  const counted = Number(response.headers.get('Evidence-Entries'))
  const entries = counted > 0 ? counted : null
  const name = nameOf(response.headers.get('Content-Disposition')) ?? fallback
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let bytes = 0
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader()
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      // Half a bundle is none: it is not kept.
      if (signal.aborted) throw error
      throw new Unreachable()
    })
    if (done) break
    chunks.push(value)
    bytes += value.length
    tell({ bytes, whole, entries })
  }
  save(new Blob(chunks, { type: 'application/zip' }), name)
  return { name, bytes }
}

/** A file name and nothing else: no directory, no control character. */
export function nameOf(disposition: string | null): string | null {
  const name = /filename="?([^";]+)"?/i.exec(disposition ?? '')?.[1]?.replace(/[^\w.@+-]/g, '_')
  return name === undefined || /^\.*$/.test(name) ? null : name
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

export function sizeOf(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB']
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000
    unit += 1
  }
  return `${inNumbers(value, unit === 0 ? 0 : 1)} ${units[unit]}`
}
