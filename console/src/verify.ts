// Verifying an item in the browser: the service delivers, and every claim is computed again. Each step is shown.
import { getCheckpoint, getEntryText, getProofs, listHistory, type Transition } from './api'
import { climb, fromBase64, leafHash, same, toBase64, type Step as Climb } from './merkle'
import { isSigned, readCheckpoint, readVerifierKey, type Checkpoint, type VerifierKey } from './note'
import { text } from './text'

export interface Step {
  title: string
  isGood: boolean
  /** What went wrong. */
  fault?: string
  facts: [string, string][]
  climb?: Climb[]
}

const say = text.evidence.steps

/** Goes on after a failed step: an auditor wants to know everything that is wrong. */
export async function verifyItem(id: string, keyLine: string, show: (step: Step) => void): Promise<boolean> {
  let isGood = true
  const tell = (step: Step) => {
    isGood &&= step.isGood
    show(step)
  }
  const key = await readVerifierKey(keyLine)
  tell({ title: say.key, isGood: key !== null, facts: key === null ? [] : [['name', key.name]], ...(key === null ? { fault: say.keyWrong } : {}) })
  const history = await listHistory(id)
  const pages = await getProofs(id)
  const lines = new Map(history.map((line) => [line.entry, line]))
  const proved = pages.flatMap((page) => page.proofs.map((proof) => proof.index))
  const isComplete = lines.size > 0 && proved.length === lines.size && proved.every((index) => lines.has(index))
  let shown: string | undefined
  for (const { checkpoint: note, proofs } of pages) {
    const checkpoint = readCheckpoint(note)
    if (note !== shown) {
      tell(readable(checkpoint))
      if (checkpoint === null) return false
      tell(await signature(checkpoint, key))
      tell(await freshness(checkpoint, key))
    }
    if (checkpoint === null) return false
    if (shown === undefined) {
      tell({ title: say.history(history.length), isGood: isComplete, facts: [], ...(isComplete ? {} : { fault: say.historyWrong }) })
    }
    shown = note
    for (const proof of proofs) tell(await entry(id, checkpoint, proof, lines.get(proof.index)))
  }
  return isGood
}

function readable(checkpoint: Checkpoint | null): Step {
  return {
    title: say.checkpoint,
    isGood: checkpoint !== null,
    facts: checkpoint === null ? [] : [['origin', checkpoint.origin], ['size', String(checkpoint.size)], [say.root, toBase64(checkpoint.root)]],
    ...(checkpoint === null ? { fault: say.checkpointWrong } : {}),
  }
}

async function signature(checkpoint: Checkpoint, key: VerifierKey | null): Promise<Step> {
  const isGood = key !== null && key.name === checkpoint.origin && (await isSigned(checkpoint, key))
  return { title: say.signature(key?.name ?? '?'), isGood, facts: [], ...(isGood ? {} : { fault: say.signatureWrong }) }
}

/** The one from the proof could be of another log than the one everyone else is shown. */
async function freshness(checkpoint: Checkpoint, key: VerifierKey | null): Promise<Step> {
  const other = readCheckpoint(await getCheckpoint())
  const isGood =
    other !== null &&
    other.origin === checkpoint.origin &&
    other.size >= checkpoint.size &&
    (other.size > checkpoint.size || same(other.root, checkpoint.root)) &&
    key !== null &&
    (await isSigned(other, key))
  return { title: say.fresh, isGood, facts: other === null ? [] : [['size', String(other.size)]], ...(isGood ? {} : { fault: say.freshWrong }) }
}

interface Proof {
  index: number
  leaf_hash: string
  hashes: string[]
}

async function entry(id: string, checkpoint: Checkpoint, proof: Proof, line: Transition | undefined): Promise<Step> {
  const bad = (fault: string, facts: [string, string][] = []): Step => ({ title: say.entry(proof.index), isGood: false, fault, facts })
  const raw = await getEntryText(proof.index)
  if (raw === null) return bad(say.leafWrong)
  const leaf = await leafHash(new TextEncoder().encode(raw))
  const facts: [string, string][] = [['entry', raw], [say.leaf, toBase64(leaf)]]
  const claimed = fromBase64(proof.leaf_hash)
  if (claimed === null || !same(claimed, leaf)) return bad(say.leafWrong, facts)
  if (!speaksOf(raw, id, proof.index, line)) return bad(say.aboutWrong, facts)
  const siblings = proof.hashes.map(fromBase64)
  if (siblings.some((sibling) => sibling === null || sibling.length !== 32)) return bad(say.rootWrong, facts)
  const steps = await climb(leaf, proof.index, checkpoint.size, siblings.filter((sibling) => sibling !== null))
  const top = steps?.at(-1)?.result ?? leaf
  if (steps === null || !same(top, checkpoint.root)) return bad(say.rootWrong, facts)
  return { title: say.entry(proof.index), isGood: true, facts, climb: steps }
}

/** The proved bytes must say what the timeline shows: who, what, when and where to. */
function speaksOf(raw: string, id: string, index: number, line: Transition | undefined): boolean {
  const read = JSON.parse(raw) as Record<string, unknown>
  if (read.item !== id || read.index !== index || line === undefined) return false
  const isSame = (name: 'actor_id' | 'role' | 'from' | 'to') => (read[name] ?? null) === line[name]
  const unnamed: Record<string, string> = { 'item.comment': 'comment', 'permit.issued': 'permit' }
  const action = unnamed[String(read.type)] ?? read.action
  return read.at === line.at && action === line.action && (['actor_id', 'role', 'from', 'to'] as const).every(isSame)
}
