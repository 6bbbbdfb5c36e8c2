// What is being written: a title and a payload, as fields or as JSON, and which of it is saved.
import type { Item, Problem, Workflow } from './api'
import { isObject, mergePatch } from './diff'
import { fieldOfPointer, fieldsOf, read, readObject, typed, type Field, type Typed } from './schema'
import { text } from './text'

export interface Written {
  title: string
  isRaw: boolean
  raw: string
  further: string
  typed: Record<string, Typed>
}

export class Draft {
  title = $state('')
  fields = $state.raw<Field[]>([])
  typed = $state<Record<string, Typed>>({})
  /** Members that the schema does not name, as JSON. */
  further = $state('')
  raw = $state('')
  isRaw = $state(false)
  faults = $state.raw<Record<string, string[]>>({})
  #saved = $state.raw('')

  constructor(workflow: Workflow, item: Item | null) {
    this.fields = fieldsOf(workflow.payload_schema)
    this.#fill(item?.title ?? '', item?.payload ?? {})
    this.#saved = this.#now()
  }

  #fill(title: string, payload: Record<string, unknown>): void {
    this.title = title
    this.typed = Object.fromEntries(this.fields.map((field) => [field.name, typed(field, payload[field.name])]))
    const names = new Set(this.fields.map((field) => field.name))
    const further = Object.entries(payload).filter(([name]) => !names.has(name))
    this.further = further.length === 0 ? '' : JSON.stringify(Object.fromEntries(further), null, 2)
    this.raw = JSON.stringify(payload, null, 2)
  }

  #now(): string {
    return JSON.stringify([this.title, this.isRaw, this.isRaw ? this.raw : [this.typed, this.further]])
  }

  /** As it is being written, for someone who comes back to it. */
  written(): Written {
    const { title, isRaw, raw, further } = this
    return { title, isRaw, raw, further, typed: $state.snapshot(this.typed) }
  }

  resume({ title, isRaw, raw, further, typed }: Written): void {
    Object.assign(this, { title, isRaw, raw, further, typed })
  }

  get isChanged(): boolean {
    return this.#now() !== this.#saved
  }

  markSaved(): void {
    this.#saved = this.#now()
  }

  /** The payload as typed, or nothing when part of it cannot be read; the faults say what. */
  payload(): Record<string, unknown> | null {
    const faults: Record<string, string[]> = {}
    const payload: Record<string, unknown> = {}
    if (this.isRaw) {
      const whole = readObject(this.raw)
      if ('fault' in whole) faults.raw = [text.form.badJson]
      else Object.assign(payload, whole.value)
    } else {
      for (const field of this.fields) {
        const value = read(field, this.typed[field.name] ?? { text: '', isObject: false })
        if ('fault' in value) faults[field.name] = [value.fault === 'json' ? text.form.badJson : text.form.badNumber]
        else if (value.value !== undefined) payload[field.name] = value.value
      }
      const further = readObject(this.further)
      if ('fault' in further) faults.further = [text.form.badJson]
      else if (isObject(further.value)) Object.assign(payload, further.value)
    }
    this.faults = faults
    return Object.keys(faults).length === 0 ? payload : null
  }

  /** Between fields and JSON nothing typed is lost; what cannot be read keeps one where one is. */
  turn(toRaw: boolean): void {
    const wasChanged = this.isChanged
    const payload = this.payload()
    if (payload === null) return
    const title = this.title
    this.isRaw = toRaw
    this.#fill(title, payload)
    if (!wasChanged) this.markSaved()
  }

  /** What turns the saved item into this; nothing when there is no difference. */
  patchOf(item: Item, payload: Record<string, unknown>): { title?: string; payload?: Record<string, unknown> } | null {
    const patch = mergePatch(item.payload, payload)
    const changed = {
      ...(this.title === item.title ? {} : { title: this.title }),
      ...(Object.keys(patch).length === 0 ? {} : { payload: patch }),
    }
    return Object.keys(changed).length === 0 ? null : changed
  }

  /** The service's faults, each at its field; those without one stay with the whole. */
  place(problem: Problem): void {
    const faults: Record<string, string[]> = {}
    for (const { pointer, detail } of problem.errors ?? []) {
      const name = fieldOfPointer(pointer)
      const isField = name === 'title' || this.fields.some((field) => field.name === name)
      const at = name !== null && isField ? name : this.isRaw ? 'raw' : 'further'
      faults[at] = [...(faults[at] ?? []), at === name ? detail : `${pointer} ${detail}`]
    }
    this.faults = faults
  }
}
