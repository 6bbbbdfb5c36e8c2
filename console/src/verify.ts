// Verifying an item in the browser: the service delivers, and every claim is computed again. Each step is shown. What is
// covered: the entries of the item are in the log that the key signs, the log has only grown since, and what is shown of
// the item, its state, content, comments and inputs, is what those entries say or have the digest of.
import { getContent, getItem, getNewestCheckpoint, getProofs, getTile, listEvents, listHistory, Refused, type Entry, type Proofs, type Transition, type WholeItem } from './api'
import { hasOnlyGrown, tilePath } from './consistency'
import { canonical, commentDigest, contentDigest, inputsDigest } from './content'
import { climb, fromBase64, leafHash, same, toBase64, type Hash, type Step as Climb } from './merkle'
import { isSigned, readCheckpoint, type Checkpoint, type VerifierKey } from './note'
import { text } from './text'

export type Part = 'log' | 'entries' | 'texts'
/** Of what was erased nothing is left to compare. That is no failure, and no proof either. */
export type Verdict = 'good' | 'bad' | 'erased'

export interface Step {
  part: Part
  title: string
  verdict: Verdict
  /** What went wrong. */
  fault?: string
  facts: [string, string][]
  climb?: Climb[]
}

/** How much of each kind was found as it should be, and how much was erased. */
export interface Count {
  good: number
  erased: number
}

export interface Findings {
  title: string
  log: string
  /** Entries in the log, by the checkpoint of the proofs and by the newest one. */
  size: number
  newest: number
  entries: number
  /** The title and content as the item's page shows them now. */
  shown: Verdict
  contents: Count
  comments: Count
  inputs: Count
  steps: number
  failed: number
}

/** Someone may act while it is being gathered; then it is gathered again. What still does not fit is a finding. */
const TRIES = 3
/** How far apart entries may be to be asked for together, and how many the service gives at once. */
const NEAR = 50
const AT_ONCE = 200
const HASH_BYTES = 32
/** In the place of a title that was erased. */
const ERASED_TITLE = '(erased)'

const say = () => text.evidence.steps

/** Goes on after a failed step: an auditor wants to know everything that is wrong. */
export async function verifyItem(id: string, key: VerifierKey, show: (step: Step) => void): Promise<Findings> {
  return new Verification(id, key, show).run()
}

interface Gathered {
  item: WholeItem
  lines: Transition[]
  pages: Proofs[]
}

class Verification {
  readonly #findings: Findings
  readonly #id: string
  readonly #key: VerifierKey
  readonly #show: (step: Step) => void

  constructor(id: string, key: VerifierKey, show: (step: Step) => void) {
    this.#id = id
    this.#key = key
    this.#show = show
    const none = () => ({ good: 0, erased: 0 })
    this.#findings = { title: '', log: key.name, size: 0, newest: 0, entries: 0, shown: 'bad', contents: none(), comments: none(), inputs: none(), steps: 0, failed: 0 }
  }

  async run(): Promise<Findings> {
    const gathered = await this.#gather()
    this.#findings.title = gathered.item.title
    this.#tell({ part: 'log', title: say().key(this.#key.name), verdict: 'good', facts: [] })
    const checkpoints = await this.#checkpoints(gathered.pages)
    if (checkpoints === null) return this.#findings
    const proved = await this.#entries(gathered, checkpoints)
    this.#state(gathered.item, proved)
    for (const { entry, line } of proved) this.#texts(entry, line)
    await this.#contents(gathered.item, proved)
    return this.#findings
  }

  async #gather(): Promise<Gathered> {
    for (let left = TRIES; ; left -= 1) {
      const lines = await listHistory(this.#id)
      const pages = await getProofs(this.#id)
      const item = await getItem(this.#id)
      if (left <= 1 || (isEachProved(lines, pages) && lines.at(-1)?.version === item.version)) return { item, lines, pages }
    }
  }

  #tell(step: Step): void {
    this.#findings.steps += 1
    if (step.verdict === 'bad') this.#findings.failed += 1
    this.#show(step)
  }

  /** A step that holds or not. Tells which. */
  #check(part: Part, title: string, isGood: boolean, fault: string, facts: [string, string][] = []): boolean {
    this.#tell({ part, title, verdict: isGood ? 'good' : 'bad', facts, ...(isGood ? {} : { fault }) })
    return isGood
  }

  /** One for each page of proofs, in their order; nothing when one of them cannot be read. */
  async #checkpoints(pages: Proofs[]): Promise<Checkpoint[] | null> {
    const newest = readCheckpoint(await getNewestCheckpoint())
    const read: Checkpoint[] = []
    let seen: string | undefined
    for (const { checkpoint: note } of pages) {
      const checkpoint = readCheckpoint(note)
      if (note !== seen) {
        const facts: [string, string][] = checkpoint === null ? [] : [[say().facts.origin, checkpoint.origin], [say().facts.size, String(checkpoint.size)], [say().root, toBase64(checkpoint.root)]]
        this.#check('log', say().checkpoint, checkpoint !== null, say().checkpointWrong, facts)
        if (checkpoint === null) return null
        await this.#signature(say().signature(this.#key.name), checkpoint)
        await this.#growth(checkpoint, newest)
        this.#findings.size = checkpoint.size
      }
      if (checkpoint === null) return null
      seen = note
      read.push(checkpoint)
    }
    return read
  }

  async #signature(title: string, checkpoint: Checkpoint): Promise<void> {
    const isGood = this.#key.name === checkpoint.origin && (await isSigned(checkpoint, this.#key))
    this.#check('log', title, isGood, say().signatureWrong)
  }

  /** The checkpoint of the proofs could be of another log than the one everyone else is shown. */
  async #growth(checkpoint: Checkpoint, newest: Checkpoint | null): Promise<void> {
    if (newest === null) {
      this.#check('log', say().newest, false, say().checkpointWrong)
      return
    }
    this.#findings.newest = newest.size
    await this.#signature(say().newestSigned(newest.size), newest)
    const asked: string[] = []
    const tiles = async (level: number, index: number, width: number) => {
      const path = tilePath(level, index, width)
      asked.push(path)
      return hashesIn(await getTile(path))
    }
    const isGood =
      newest.origin === checkpoint.origin &&
      (await hasOnlyGrown(checkpoint.root, checkpoint.size, newest.root, newest.size, tiles).catch((error: unknown) => {
        // A tile that is not there, or too short, proves nothing.
        if (error instanceof Refused || error instanceof RangeError) return false
        throw error
      }))
    const facts: [string, string][] = [[say().root, toBase64(newest.root)], ...asked.map((path): [string, string] => [say().tile, path])]
    this.#check('log', say().grown(checkpoint.size, newest.size), isGood, say().grownWrong, facts)
  }

  async #entries({ lines, pages }: Gathered, checkpoints: Checkpoint[]): Promise<Proved[]> {
    this.#check('entries', say().history(lines.length), isEachProved(lines, pages), say().historyWrong)
    const entries = await entriesAt(pages.flatMap((page) => page.proofs.map(({ index }) => index)))
    const byIndex = new Map(lines.map((line) => [line.entry, line]))
    const proved: Proved[] = []
    for (const [at, { proofs }] of pages.entries()) {
      const checkpoint = checkpoints[at]
      if (checkpoint === undefined) break
      for (const proof of proofs) {
        const [entry, line] = [entries.get(proof.index), byIndex.get(proof.index)]
        const step = await entryStep(this.#id, checkpoint, proof, entry, line)
        this.#tell(step)
        if (step.verdict !== 'good' || entry === undefined || line === undefined) continue
        proved.push({ entry, line })
        this.#findings.entries += 1
      }
    }
    return proved
  }

  /** What the page says of the item must be what its last entries say. */
  #state(item: WholeItem, proved: Proved[]): void {
    const last = proved.findLast(({ entry }) => entry.to !== undefined)?.entry
    const version = proved.at(-1)?.entry.version
    const isGood = item.id === this.#id && last !== undefined && item.state === last.to && item.version === version && item.workflow.digest === last.definition
    const facts: [string, string][] = [[say().facts.state, item.state], [say().facts.version, String(item.version)], [say().facts.definition, item.workflow.digest]]
    this.#check('entries', say().state, isGood, say().stateWrong, facts)
  }

  #texts(entry: Entry, line: Transition): void {
    const kinds = [
      { kind: 'comments', digest: entry.comment, value: line.comment, computed: line.comment_nonce && line.comment !== null ? commentDigest(line.comment, line.comment_nonce) : null },
      { kind: 'inputs', digest: entry.inputs, value: line.inputs, computed: line.inputs_nonce && line.inputs !== null ? inputsDigest(line.inputs, line.inputs_nonce) : null },
    ] as const
    for (const { kind, digest, value, computed } of kinds) {
      const title = say()[kind](entry.index)
      if (digest === undefined && value === null) continue
      if (digest === undefined) this.#check('texts', title, false, say().unbacked)
      else if (value === null) this.#erased(title, kind, digest)
      else if (this.#check('texts', title, computed === digest, say().digestWrong, [[say().facts.digest, digest], ['computed', computed ?? '–']])) this.#findings[kind].good += 1
    }
  }

  #erased(title: string, kind: 'contents' | 'comments' | 'inputs', digest: string): void {
    this.#findings[kind].erased += 1
    this.#tell({ part: 'texts', title, verdict: 'erased', facts: [[say().facts.digest, digest]] })
  }

  async #contents(item: WholeItem, proved: Proved[]): Promise<void> {
    const first = new Map<string, number>()
    for (const { entry } of proved) if (entry.content !== undefined && !first.has(entry.content)) first.set(entry.content, entry.index)
    for (const [digest, index] of first) await this.#content(digest, index)
    const last = proved.findLast(({ entry }) => entry.content !== undefined)?.entry.content
    this.#shown(item, last)
  }

  async #content(digest: string, index: number): Promise<void> {
    const title = say().contents(index)
    const content = await getContent(this.#id, digest).catch((error: unknown) => {
      if (error instanceof Refused && error.problem.status === 404) return null
      throw error
    })
    if (content === null) {
      this.#erased(title, 'contents', digest)
      return
    }
    const computed = content.nonce === null ? null : contentDigest(content, content.nonce)
    if (this.#check('texts', title, computed === digest, say().digestWrong, [[say().facts.digest, digest], ['computed', computed ?? '–']])) this.#findings.contents.good += 1
  }

  /** Title and payload as the item's page shows them: the part that people read before they decide. */
  #shown(item: WholeItem, last: string | undefined): void {
    const { title, payload, content_nonce: nonce, content_digest: digest } = item
    const isGone = nonce === null && title === ERASED_TITLE && Object.keys(payload).length === 0
    if (isGone && digest === last) {
      this.#findings.shown = 'erased'
      this.#tell({ part: 'texts', title: say().shown, verdict: 'erased', facts: [[say().facts.digest, digest]] })
      return
    }
    const computed = nonce === null ? null : contentDigest({ title, payload }, nonce)
    const isGood = last !== undefined && digest === last && computed === last
    if (this.#check('texts', say().shown, isGood, say().shownWrong, [[say().facts.digest, last ?? '–'], ['computed', computed ?? '–']])) this.#findings.shown = 'good'
  }
}

interface Proved {
  entry: Entry
  line: Transition
}

interface Proof {
  index: number
  leaf_hash: string
  hashes: string[]
}

function isEachProved(lines: Transition[], pages: Proofs[]): boolean {
  const known = new Set(lines.map(({ entry }) => entry))
  const proved = pages.flatMap((page) => page.proofs.map(({ index }) => index))
  return lines.length > 0 && known.size === lines.length && proved.length === known.size && new Set(proved).size === proved.length && proved.every((index) => known.has(index))
}

/** Entries by their index, neighbours in one request. */
async function entriesAt(indices: number[]): Promise<Map<number, Entry>> {
  const wanted = [...new Set(indices)].sort((one, other) => one - other)
  const found = new Map<number, Entry>()
  for (let at = 0; at < wanted.length; ) {
    const first = wanted[at] ?? 0
    let last = first
    while (at < wanted.length && (wanted[at] ?? 0) - last <= NEAR && (wanted[at] ?? 0) - first < AT_ONCE) {
      last = wanted[at] ?? last
      at += 1
    }
    const { events } = await listEvents(first === 0 ? null : first - 1, last - first + 1)
    for (const entry of events) found.set(entry.index, entry)
  }
  return found
}

function hashesIn(bytes: Uint8Array<ArrayBuffer>): Hash[] {
  return Array.from({ length: Math.floor(bytes.length / HASH_BYTES) }, (_, at) => bytes.slice(at * HASH_BYTES, (at + 1) * HASH_BYTES))
}

async function entryStep(id: string, checkpoint: Checkpoint, proof: Proof, entry: Entry | undefined, line: Transition | undefined): Promise<Step> {
  const title = say().entry(proof.index)
  const bad = (fault: string, facts: [string, string][] = []): Step => ({ part: 'entries', title, verdict: 'bad', fault, facts })
  if (entry === undefined) return bad(say().leafWrong)
  // The log has the canonical form, so what was parsed is written again and must have the proved hash.
  const bytes = canonical(entry)
  const leaf = await leafHash(new TextEncoder().encode(bytes))
  const facts: [string, string][] = [[say().bytes, bytes], [say().leaf, toBase64(leaf)]]
  const claimed = fromBase64(proof.leaf_hash)
  if (claimed === null || !same(claimed, leaf)) return bad(say().leafWrong, facts)
  if (!speaksOf(entry, id, proof.index, line)) return bad(say().aboutWrong, facts)
  const siblings = proof.hashes.map(fromBase64)
  if (siblings.some((sibling) => sibling === null || sibling.length !== HASH_BYTES)) return bad(say().rootWrong, facts)
  const steps = await climb(leaf, proof.index, checkpoint.size, siblings.filter((sibling) => sibling !== null))
  const top = steps?.at(-1)?.result ?? leaf
  if (steps === null || !same(top, checkpoint.root)) return bad(say().rootWrong, facts)
  return { part: 'entries', title, verdict: 'good', facts, climb: steps }
}

/** The proved entry must say what the timeline shows: who, what, when, where to and on which content. */
function speaksOf(entry: Entry, id: string, index: number, line: Transition | undefined): boolean {
  if (entry.item !== id || entry.index !== index || line === undefined || line.item_id !== id) return false
  const unnamed: Record<string, string> = { 'item.comment': 'comment', 'permit.issued': 'permit' }
  const action = unnamed[entry.type] ?? entry.action
  const pairs: [unknown, unknown][] = [
    [entry.at, line.at],
    [action, line.action],
    [entry.actor_id, line.actor_id],
    [entry.role, line.role],
    [entry.operated_by, line.operated_by],
    [entry.from, line.from],
    [entry.to, line.to],
    [entry.version, line.version],
    [entry.content, line.content_digest],
  ]
  return pairs.every(([proved, shown]) => (proved ?? null) === (shown ?? null))
}
