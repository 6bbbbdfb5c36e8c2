// A form from a payload's JSON Schema: which field each member gets, and the way between what people type and what is
// sent. The service is the judge of both; nothing here decides whether a payload is right.
import { canonical } from './content'
import { isObject } from './diff'
import { readStrictly, type JsonFault } from './strict'

export type FieldKind = 'text' | 'choice' | 'lines' | 'number' | 'boolean' | 'text_or_object' | 'json'
/** What is to be done, why and how, and what may be left out. */
export type Group = 'what' | 'why' | 'optional'

export interface Field {
  name: string
  kind: FieldKind
  isRequired: boolean
  description: string
  choices: string[]
  /** The most characters the schema allows. */
  charactersMax: number | null
}

/** What stands in a field: always text, so that nothing typed is ever lost. */
export interface Typed {
  text: string
  /** The text is JSON, because it is an object or because nothing else would write exactly this value. */
  isJson: boolean
}

const EMPTY: Typed = { text: '', isJson: false }

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
      charactersMax: typeof rule.maxLength === 'number' ? rule.maxLength : null,
    }
  })
  // What is required first, each group in the definition's own order of requiring it.
  const rank = (field: Field) => (field.isRequired ? required.indexOf(field.name) : required.length)
  return fields.sort((one, other) => rank(one) - rank(other))
}

/** These say what will be done, and are read first by everyone who decides. */
const FIRST = ['operation', 'risk', 'targets']

export function groupOf(field: Field): Group {
  if (FIRST.includes(field.name)) return 'what'
  return field.isRequired ? 'why' : 'optional'
}

/** In the order in which they stand in a form. */
export function arranged(fields: Field[]): Field[] {
  const groups: Group[] = ['what', 'why', 'optional']
  const first = FIRST.flatMap((name) => fields.filter((field) => field.name === name))
  const all = [...first, ...fields.filter((field) => !first.includes(field))]
  return groups.flatMap((group) => all.filter((field) => groupOf(field) === group))
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

/** In the field's own way of writing, if that brings back exactly this value; otherwise as JSON. */
export function typed(field: Field, value: unknown): Typed {
  if (value === undefined) return { ...EMPTY }
  const plain = { text: plainText(field, value), isJson: false }
  const back = read(field, plain)
  if ('value' in back && back.value !== undefined && canonical(back.value) === canonical(value)) return plain
  return { text: JSON.stringify(value, null, 2), isJson: true }
}

function plainText(field: Field, value: unknown): string {
  if (field.kind === 'json') return JSON.stringify(value, null, 2)
  // A text field of the browser turns every carriage return into a line feed.
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value).replaceAll('\r', '\n')
  return Array.isArray(value) ? value.join('\n').replaceAll('\r', '\n') : ''
}

export type Fault = JsonFault | 'object' | 'number'
export type Read = { value: unknown } | { fault: Fault }

/** The value of what was typed; `undefined` for an empty field, which is left out. */
export function read(field: Field, { text, isJson }: Typed): Read {
  if (text === '') return { value: undefined }
  if (isJson) return field.kind === 'text_or_object' ? readObject(text) : readJson(text)
  switch (field.kind) {
    case 'text':
    case 'text_or_object':
      return { value: text }
    case 'choice':
      return field.choices.includes(text) ? { value: text } : { value: undefined }
    case 'lines': {
      // A line with nothing on it is no element; every other is one, with its blanks.
      const lines = text.split('\n').filter((line) => line !== '')
      return { value: lines.length === 0 ? undefined : lines }
    }
    case 'boolean':
      return { value: text === 'true' ? true : text === 'false' ? false : undefined }
    case 'number': {
      if (text.trim() === '') return { value: undefined }
      const number = readJson(text)
      if ('fault' in number) return isNumber(number.fault) ? number : { fault: 'number' }
      return typeof number.value === 'number' ? number : { fault: 'number' }
    }
    case 'json':
      return readJson(text)
  }
}

/** It is one, but cannot be stored as it is written. */
function isNumber(fault: Fault): boolean {
  return typeof fault === 'object' && (fault.kind === 'beyond' || fault.kind === 'digits')
}

function readJson(text: string): Read {
  return text.trim() === '' ? { value: undefined } : readStrictly(text)
}

export function readObject(text: string): Read {
  const read = readJson(text)
  return 'value' in read && read.value !== undefined && !isObject(read.value) ? { fault: 'object' } : read
}
