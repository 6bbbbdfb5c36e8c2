// A form from a payload's JSON Schema: which field each member gets, and the way between what people type and what is
// sent. The service is the judge of both; nothing here decides whether a payload is right.
import { isObject } from './diff'

export type FieldKind = 'text' | 'choice' | 'lines' | 'number' | 'boolean' | 'text_or_object' | 'json'

export interface Field {
  name: string
  kind: FieldKind
  isRequired: boolean
  description: string
  choices: string[]
}

/** What stands in a field: always text, so that nothing typed is ever lost. */
export interface Typed {
  text: string
  /** For fields that take a text or an object. */
  isObject: boolean
}

export function fieldsOf(schema: Record<string, unknown>): Field[] {
  const properties = isObject(schema.properties) ? schema.properties : {}
  const required = Array.isArray(schema.required) ? schema.required : []
  const fields = Object.entries(properties).map(([name, value]) => {
    const rule = isObject(value) ? value : {}
    return {
      name,
      kind: kindOf(rule),
      isRequired: required.includes(name),
      description: typeof rule.description === 'string' ? rule.description : '',
      choices: Array.isArray(rule.enum) ? rule.enum.filter((choice) => typeof choice === 'string') : [],
    }
  })
  // What is required first, each group in the definition's own order of requiring it.
  const rank = (field: Field) => (field.isRequired ? required.indexOf(field.name) : required.length)
  return fields.sort((one, other) => rank(one) - rank(other))
}

function kindOf(rule: Record<string, unknown>): FieldKind {
  if (Array.isArray(rule.enum) && rule.enum.every((choice) => typeof choice === 'string')) return 'choice'
  if (rule.type === 'string') return 'text'
  if (rule.type === 'integer' || rule.type === 'number') return 'number'
  if (rule.type === 'boolean') return 'boolean'
  if (rule.type === 'array' && isObject(rule.items) && rule.items.type === 'string') return 'lines'
  const choices = [rule.anyOf, rule.oneOf].find(Array.isArray) ?? []
  const kinds = choices.map((choice: unknown) => (isObject(choice) ? choice.type : null))
  if (kinds.includes('string') && kinds.includes('object') && kinds.length === 2) return 'text_or_object'
  return 'json'
}

export function typed(field: Field, value: unknown): Typed {
  const isText = typeof value === 'string'
  if (value === undefined) return { text: '', isObject: false }
  if (field.kind === 'lines' && Array.isArray(value) && value.every((line) => typeof line === 'string' && !line.includes('\n'))) {
    return { text: value.join('\n'), isObject: false }
  }
  const takesText = field.kind === 'text' || field.kind === 'choice' || field.kind === 'text_or_object'
  if (takesText && isText) return { text: value, isObject: false }
  if (field.kind === 'json' || field.kind === 'lines' || !isText) {
    return { text: field.kind === 'number' || field.kind === 'boolean' ? String(value) : JSON.stringify(value, null, 2), isObject: !isText }
  }
  return { text: value, isObject: false }
}

export type Read = { value: unknown } | { fault: 'json' | 'number' }

/** The value of what was typed; `undefined` for an empty field, which is left out. */
export function read(field: Field, { text, isObject: asObject }: Typed): Read {
  if (text.trim() === '') return { value: undefined }
  switch (field.kind) {
    case 'text':
    case 'choice':
      return { value: text }
    case 'lines':
      return { value: text.split('\n').map((line) => line.trim()).filter((line) => line !== '') }
    case 'boolean':
      return { value: text === 'true' }
    case 'number': {
      const number = Number(text)
      return Number.isFinite(number) ? { value: number } : { fault: 'number' }
    }
    case 'text_or_object':
      return asObject ? readObject(text) : { value: text }
    case 'json':
      return readJson(text)
  }
}

function readJson(text: string): Read {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return { fault: 'json' }
  }
}

export function readObject(text: string): Read {
  if (text.trim() === '') return { value: undefined }
  const read = readJson(text)
  return 'value' in read && !isObject(read.value) ? { fault: 'json' } : read
}

/** `/payload/links/0` → `links`: which field a fault belongs to. */
export function fieldOfPointer(pointer: string): string | null {
  const [, first, second] = pointer.split('/')
  if (first === 'title') return 'title'
  if (first !== 'payload' || second === undefined) return null
  return second.replaceAll('~1', '/').replaceAll('~0', '~')
}
