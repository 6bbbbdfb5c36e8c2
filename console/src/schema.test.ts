import { expect, test } from 'vitest'
import { arranged, fieldsOf, read, typed, type Field } from './schema'

const SCHEMA = {
  required: ['purpose', 'risk'],
  properties: {
    risk: { type: 'string', enum: ['low', 'high'] },
    links: { type: 'array', items: { type: 'string' } },
    purpose: { type: 'string', description: 'why', maxLength: 500 },
    operation: { anyOf: [{ type: 'string' }, { type: 'object' }] },
    size: { type: 'integer' },
    sure: { type: 'boolean' },
    rest: { type: 'object' },
  },
}
const fields = fieldsOf(SCHEMA)
const named = (name: string): Field => {
  const field = fields.find((field) => field.name === name)
  if (field === undefined) throw new Error(`the form has ${name}`)
  return field
}

test('a form is made from a schema', () => {
  expect(fields.map(({ name, kind, charactersMax }) => `${name} ${kind} ${charactersMax}`)).toEqual([
    'purpose text 500',
    'risk choice null',
    'links lines null',
    'operation text_or_object null',
    'size number null',
    'sure boolean null',
    'rest json null',
  ])
})

test('what will be done comes first, then why, then what may be left out', () => {
  expect(arranged(fields).map(({ name }) => name)).toEqual(['operation', 'risk', 'purpose', 'links', 'size', 'sure', 'rest'])
})

test('every value that a service may hold comes back from its field as it was', () => {
  const values: unknown[] = [
    '', ' ', ' padded ', 'a\nb', 'a\r\nb', '\u2028', 'critical', '3', 'true',
    0, -0, 3, 1.5, 1e-7, -9007199254740991, true, false, null,
    [], [''], ['a', ''], [' padded ', '  '], ['a\nb'], ['a\rb'], [1], [['a']],
    {}, { c: null }, { __proto__x: 1 }, JSON.parse('{"__proto__": {"a": 1}}'),
  ]
  for (const field of fields) {
    for (const value of values) {
      const back = read(field, typed(field, value))
      // An object in the place of a text is written as JSON, and as nothing but an object.
      if (field.kind === 'text_or_object' && 'fault' in back) expect(typeof value === 'object' && !Array.isArray(value) && value !== null).toBe(false)
      else expect(back, `${JSON.stringify(value)} in ${field.name}`).toEqual({ value: value === 0 ? 0 : value })
    }
  }
})

test('list members keep their blanks, and an empty line is no member', () => {
  expect(typed(named('links'), [' padded ', 'x'])).toEqual({ text: ' padded \nx', isJson: false })
  expect(read(named('links'), { text: ' padded \n\nx\n', isJson: false })).toEqual({ value: [' padded ', 'x'] })
  expect(read(named('links'), { text: '\n', isJson: false })).toEqual({ value: undefined })
})

test('what cannot be read is a fault of its kind', () => {
  expect(read(named('operation'), { text: '{"c": 1', isJson: true })).toMatchObject({ fault: { kind: 'end' } })
  expect(read(named('operation'), { text: '[1]', isJson: true })).toEqual({ fault: 'object' })
  for (const text of ['three', '0x10', '1,5', '.5', '"3"']) expect(read(named('size'), { text, isJson: false }), text).toEqual({ fault: 'number' })
  expect(read(named('size'), { text: '9007199254740993', isJson: false })).toMatchObject({ fault: { kind: 'beyond' } })
  expect(read(named('size'), { text: ' 3 ', isJson: false })).toEqual({ value: 3 })
})
