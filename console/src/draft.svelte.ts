// What is being written: a title and a payload, as fields or as JSON, and which of it is saved.
import type { Item, Problem, Workflow } from './api'
import { canonical } from './content'
import { isObject } from './diff'
import { memberField, placed, whole } from './faults'
import { patchTo } from './patch'
import { arranged, fieldsOf, read, readObject, typed, type Fault, type Field, type Typed } from './schema'
import { capital, text, words } from './text'

/** As it is being written, for someone who comes back to it. */
export interface Written {
  title: string
  isRaw: boolean
  raw: string
  others: string
  typed: [string, Typed][]
}

/** A member of the payload that has a field. */
export class Member {
  typed = $state<Typed>({ text: '', isJson: false })

  constructor(readonly field: Field) {}

  get key(): string {
    return memberField(this.field.name)
  }

  get label(): string {
    return capital(words(this.field.name))
  }
}

/** Controls are named as in `faults.ts`; these two are the form's own. */
export const RAW = 'raw'
export const OTHERS = 'others'

export interface Wrong {
  /** The control it is shown at; nothing for the whole. */
  at: string | null
  label: string
  sentence: string
}

interface Found extends Wrong {
  /** What stood there when it was found: once that changes, nobody knows whether it is still wrong. */
  when: string
}

type Payload = Record<string, unknown>

export class Draft {
  title = $state('')
  members = $state.raw<Member[]>([])
  /** Members that have no field, as JSON. */
  others = $state('')
  raw = $state('')
  isRaw = $state(false)
  #found = $state.raw<Found[]>([])
  #saved = $state.raw('')
  readonly #read = $derived.by(() => this.#readAll())
  /** What is wrong, as far as it has not been touched since. */
  readonly wrong = $derived(this.#found.filter(({ at, when }) => this.#standsAt(at) === when))
  readonly isChanged = $derived(this.#now() !== this.#saved)

  constructor(workflow: Workflow, item: { title: string; payload: Payload } | null) {
    this.#fill(workflow, item?.title ?? '', item?.payload ?? {})
    this.#saved = this.#now()
  }

  #fill(workflow: Workflow | null, title: string, payload: Payload): void {
    if (workflow !== null) this.members = arranged(fieldsOf(workflow.payload_schema)).map((field) => new Member(field))
    this.title = title
    for (const member of this.members) member.typed = typed(member.field, own(payload, member.field.name))
    const names = new Set(this.members.map(({ field }) => field.name))
    const others = Object.entries(payload).filter(([name]) => !names.has(name))
    this.others = others.length === 0 ? '' : JSON.stringify(Object.fromEntries(others), null, 2)
    this.raw = JSON.stringify(payload, null, 2)
  }

  /** By its meaning: the same value written differently is not a change. */
  #now(): string {
    const { payload, wrong } = this.#read
    return wrong.length === 0 ? `${this.title}\n${canonical(payload)}` : JSON.stringify(this.written())
  }

  written(): Written {
    const { title, isRaw, raw, others } = this
    return { title, isRaw, raw, others, typed: this.members.map(({ field, typed }) => [field.name, $state.snapshot(typed)]) }
  }

  resume({ title, isRaw, raw, others, typed }: Written): void {
    this.title = title
    this.isRaw = isRaw
    this.raw = raw
    this.others = others
    const kept = new Map(typed)
    for (const member of this.members) member.typed = kept.get(member.field.name) ?? member.typed
  }

  /** Begins with what another item has. Nothing of it is saved here. */
  copy({ title, payload }: { title: string; payload: Payload }): void {
    this.#fill(null, title, payload)
  }

  /** The answer to a save. What was typed while it was under way stays; otherwise the form shows what is stored. */
  settle(item: Item, sent: string): void {
    const isUntouched = this.sendable === sent
    if (isUntouched) this.#fill(null, item.title, item.payload)
    this.#found = []
    this.#saved = `${item.title}\n${canonical(item.payload)}`
  }

  /** What would be sent, to compare. */
  get sendable(): string {
    return JSON.stringify(this.written())
  }

  #readAll(): { payload: Payload; wrong: Wrong[] } {
    return this.isRaw ? this.#readRaw() : this.#readFields()
  }

  #readRaw(): { payload: Payload; wrong: Wrong[] } {
    const value = readObject(this.raw)
    if ('fault' in value) return { payload: {}, wrong: [{ at: RAW, label: text.form.rawName, sentence: sentenceOf(value.fault) }] }
    return { payload: isObject(value.value) ? value.value : {}, wrong: [] }
  }

  #readFields(): { payload: Payload; wrong: Wrong[] } {
    const wrong: Wrong[] = []
    const entries: [string, unknown][] = []
    for (const { field, typed, key, label } of this.members) {
      const value = read(field, typed)
      if ('fault' in value) wrong.push({ at: key, label, sentence: sentenceOf(value.fault) })
      else if (value.value !== undefined) entries.push([field.name, value.value])
    }
    const others = readObject(this.others)
    const label = text.form.groups.others
    if ('fault' in others) wrong.push({ at: OTHERS, label, sentence: sentenceOf(others.fault) })
    else if (isObject(others.value)) {
      for (const [name, value] of Object.entries(others.value)) {
        const member = this.members.find(({ field }) => field.name === name)
        if (member === undefined) entries.push([name, value])
        else wrong.push({ at: OTHERS, label, sentence: text.form.hasField(name, member.label) })
      }
    }
    // Not by assignment: `__proto__` is a name like any other.
    return { payload: Object.fromEntries(entries), wrong }
  }

  /** How much of what the service stores is used. */
  get bytes(): number {
    return new TextEncoder().encode(JSON.stringify(this.#read.payload)).length
  }

  /** The payload as typed, or nothing when part of it cannot be read; then it is said where. */
  payload(): Payload | null {
    const { payload, wrong } = this.#read
    this.#tell(wrong)
    return wrong.length === 0 ? payload : null
  }

  /** Required to submit, and still empty. */
  get missing(): string[] {
    if (this.isRaw) return this.members.filter(({ field }) => field.isRequired && own(this.#read.payload, field.name) === undefined).map(({ label }) => label)
    return this.members.filter(({ field, typed }) => field.isRequired && typed.text.trim() === '').map(({ label }) => label)
  }

  /** Between fields and JSON nothing typed is lost; what cannot be read keeps one where one is. */
  turn(toRaw: boolean): boolean {
    const payload = this.payload()
    if (payload === null) return false
    this.isRaw = toRaw
    this.#fill(null, this.title, payload)
    return true
  }

  /** Into the form of another workflow: members it knows too are in its fields, the rest among the others. */
  moveTo(workflow: Workflow): boolean {
    const payload = this.payload()
    if (payload === null) return false
    this.#fill(workflow, this.title, payload)
    return true
  }

  /** What turns the saved item into exactly this. Nothing when an edit cannot do that; then it is said where. */
  patchOf(item: Item, payload: Payload): { title?: string; payload?: Payload } | null {
    const change = patchTo(item.payload, payload)
    if ('unreachable' in change) {
      this.#tell([this.#unreachable(change.unreachable)])
      return null
    }
    return {
      ...(this.title === item.title ? {} : { title: this.title }),
      ...(Object.keys(change.patch).length === 0 ? {} : { payload: change.patch }),
    }
  }

  #unreachable(path: string[]): Wrong {
    const member = this.members.find(({ field }) => field.name === path[0])
    const sentence = text.form.noNull(path.join(', '))
    if (this.isRaw) return { at: RAW, label: text.form.rawName, sentence }
    return member === undefined ? { at: OTHERS, label: text.form.groups.others, sentence } : { at: member.key, label: member.label, sentence }
  }

  wrongAt(key: string): string[] {
    return this.wrong.filter(({ at }) => at === key).map(({ sentence }) => sentence)
  }

  /** The service's faults, each at its field; those without one stay with the whole. */
  place(problem: Problem): void {
    const members = this.isRaw ? [] : this.members.map(({ field }) => field.name)
    this.#tell(
      placed(problem, members).map(({ field, label, sentence }) => {
        const isHere = field === 'title' || field?.startsWith('payload/')
        if (field === 'title' && this.title.trim() === '') return { at: field, label, sentence: text.faults.required }
        return isHere ? { at: field, label, sentence } : { at: null, label: '', sentence: whole({ label, sentence }) }
      }),
    )
  }

  #tell(wrong: Wrong[]): void {
    const order = ['title', RAW, ...this.members.map(({ key }) => key), OTHERS]
    const place = ({ at }: Wrong) => (at === null ? -1 : order.indexOf(at))
    this.#found = wrong.map((one) => ({ ...one, when: this.#standsAt(one.at) })).sort((one, other) => place(one) - place(other))
  }

  #standsAt(key: string | null): string {
    if (key === null) return this.sendable
    if (key === 'title') return this.title
    if (key === RAW) return this.raw
    if (key === OTHERS) return this.others
    return JSON.stringify(this.members.find((member) => member.key === key)?.typed ?? null)
  }
}

function own(payload: Payload, name: string): unknown {
  return Object.hasOwn(payload, name) ? payload[name] : undefined
}

function sentenceOf(fault: Fault): string {
  const say = text.form
  if (fault === 'object') return say.badObject
  if (fault === 'number') return say.badNumber
  return say.badJson(fault.line, fault.column, say.jsonFaults[fault.kind](fault.what, fault.other))
}
