// The page's side of the verifier: fetched when it is first wanted, and kept. From then on a verification needs nothing
// from the network.
import type { Failure, Order, Report } from './bundle.worker'
import workerFile from './bundle.worker?worker&url'
import type { Settings } from './program'
import { readAnswer, type Refusal, type Verdict } from './verdict'

/** Nothing if the console was built without it. */
const file = Object.values(import.meta.glob<string>('./pilot_verifier.wasm', { query: '?url', import: 'default', eager: true }))[0]
export const isThere = file !== undefined

/** A browser gives the verifier 4 GB. It holds the bundle, and what it reads out of it. */
export const BUNDLE_BYTES_MAX = 1_000_000_000

export class VerifierFailed extends Error {
  constructor(readonly failure: Failure | 'unloaded') {
    super(failure)
  }
}

interface ScriptUrls {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL: (url: string) => unknown }
}

/** The address of a script has to be vouched for; this vouches for one. */
const policy = (globalThis as { trustedTypes?: ScriptUrls }).trustedTypes?.createPolicy('pilot-verifier', {
  createScriptURL: (url) => {
    if (url === workerFile) return url
    throw new TypeError('only the verifier runs in a thread of its own')
  },
})

let worker: Promise<Worker> | null = null

/** Fetches the verifier, if that was not done before. */
export function prepare(): Promise<Worker> {
  worker ??= start().catch((error: unknown) => {
    worker = null
    throw error
  })
  return worker
}

async function start(): Promise<Worker> {
  if (file === undefined) throw new VerifierFailed('unloaded')
  const response = await fetch(file).catch(() => null)
  if (response === null || !response.ok) throw new VerifierFailed('unloaded')
  const program = await response.arrayBuffer().catch(() => {
    throw new VerifierFailed('unloaded')
  })
  const started = new Worker((policy?.createScriptURL(workerFile) ?? workerFile) as string, { type: 'module', name: 'verifier' })
  started.postMessage({ program } satisfies Order, [program])
  return started
}

/** One at a time. If it is stopped, there is no verdict, and the next one starts from the beginning. */
export async function verify(bundle: Blob, settings: Settings, signal: AbortSignal): Promise<{ verdict: Verdict; json: string } | { refusal: Refusal }> {
  const used = await prepare()
  signal.throwIfAborted()
  const report = await new Promise<Report>((resolve, reject) => {
    const end = () => {
      used.terminate()
      worker = null
    }
    used.onmessage = ({ data }: MessageEvent<Report>) => {
      // What memory it took is only given back by ending it.
      if ('failure' in data) end()
      resolve(data)
    }
    used.onerror = (event) => {
      event.preventDefault()
      end()
      reject(new VerifierFailed('unloaded'))
    }
    signal.addEventListener('abort', () => {
      end()
      reject(signal.reason as Error)
    })
    used.postMessage({ bundle, settings } satisfies Order)
  })
  if ('failure' in report) throw new VerifierFailed(report.failure)
  const answer = readAnswer(report.answer)
  return 'refused' in answer ? { refusal: answer.refused } : { verdict: answer, json: report.answer }
}
