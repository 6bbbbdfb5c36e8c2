// The verifier in a thread of its own, so that the page goes on while it computes. Its file is served with a policy of
// its own (`crates/pilot-server/src/api/console.rs`): it may compile the verifier, and may not send anything anywhere.
import { OutOfMemory, Unreadable, verifyBundle, type Settings } from './program'

export type Order = { program: ArrayBuffer } | { bundle: Blob; settings: Settings }
/** `memory`: there was too little of it. `stopped`: the verifier ended without a verdict. */
export type Failure = 'memory' | 'unreadable' | 'stopped'
export type Report = { answer: string } | { failure: Failure }

let program: Promise<WebAssembly.Module> | null = null

addEventListener('message', ({ data }: MessageEvent<Order>) => {
  if ('program' in data) program = WebAssembly.compile(data.program)
  else void work(data.bundle, data.settings).then((report) => postMessage(report))
})

async function work(bundle: Blob, settings: Settings): Promise<Report> {
  try {
    if (program === null) throw new Error('the verifier comes first')
    return { answer: await verifyBundle(await program, bundle, settings) }
  } catch (error) {
    if (error instanceof Unreadable) return { failure: 'unreadable' }
    // The verifier ends by a trap where memory is refused to it, and says nothing about it.
    return { failure: error instanceof OutOfMemory || error instanceof RangeError ? 'memory' : 'stopped' }
  }
}
