import { expect, test } from 'vitest'
import type { Problem } from './api'
import { placed, whole } from './faults'

const problem = (...errors: [string, string][]): Problem => ({
  type: '',
  title: '',
  status: 422,
  detail: '',
  code: 'invalid_request',
  request_id: '',
  errors: errors.map(([pointer, detail]) => ({ pointer, detail })),
})

/** One line for each fault: where it is shown, and what is said there. */
function said(errors: [string, string][], members: string[] = []): string[] {
  return placed(problem(...errors), members).map((fault) => (fault.field === null ? `whole | ${whole(fault)}` : `${fault.field} | ${fault.label} | ${fault.sentence}`))
}

test('a fault has the field, the name and the sentence that people know', () => {
  expect(
    said(
      [
        ['/payload/rollback_plan', 'is required'],
        ['/title', 'must have 1 to 200 characters'],
        ['/comment', 'is required: say why (reject)'],
        ['/text', 'must have 1 to 4000 characters'],
        ['/inputs/not_after', 'must be within 4h from now'],
        ['/inputs/not_before', 'must be before not_after'],
        ['/inputs/artifacts/0/name', 'must be a string of 1 to 1,000 characters'],
        ['/inputs/artifacts/11/uri', 'must be a string of 1 to 1,000 characters'],
        ['/inputs/outcome', 'must be succeeded or failed'],
      ],
      ['rollback_plan'],
    ),
  ).toEqual([
    'payload/rollback_plan | Rollback plan | This is required.',
    'title | Title | This must have 1 to 200 characters.',
    'comment | Comment | This is required. Say why.',
    'comment | Comment | This must have 1 to 4,000 characters.',
    'not_after | Not after | This must be within 4 hours from now.',
    'not_before | Not before | This must be earlier than “Not after”.',
    'artifacts/0/name | Artifact 1, name | This must have 1 to 1,000 characters.',
    'artifacts/11/uri | Artifact 12, where it is kept | This must have 1 to 1,000 characters.',
    'outcome | Outcome | This must be succeeded or failed.',
  ])
})

test('a fault inside a field says where in it', () => {
  expect(said([['/payload/targets/1', 'must not be empty'], ['/payload/links/0', 'this is not a "uri"'], ['/payload/a~1b/c', 'is required']], ['targets', 'links', 'a/b'])).toEqual([
    'payload/targets | Targets | Number 2: This must not be empty.',
    'payload/links | Links | Number 1: This must be a whole address, such as https://example.org/ticket/7.',
    'payload/a/b | A/b | C: This is required.',
  ])
})

test('a fault without a field stays with the whole, under the exact name', () => {
  expect(
    said([
      ['/payload', 'is larger than 65536 bytes'],
      ['/payload/Roll back/0', 'this is not of type "string"'],
      ['', 'has 3 more faults'],
      ['', 'names nothing to change: send title, payload or both'],
      ['/headers/Idempotency-Key', 'was used with a different body'],
      ['/payload/title', 'is required'],
    ]),
  ).toEqual([
    'whole | Content: This is larger than the 65,536 bytes that the service stores. Shorten it, or link to where the rest is kept.',
    'whole | Roll back, number 1: This must be text.',
    'whole | There are 3 more problems.',
    'whole | This names nothing to change: send title, payload or both.',
    'whole | headers, Idempotency-Key: This was used with a different body.',
    'whole | title: This is required.',
  ])
})

test('a member called title is not the title', () => {
  expect(said([['/title', 'is missing'], ['/payload/title', 'is missing']], ['title'])).toEqual(['title | Title | This is required.', 'payload/title | Title | This is required.'])
})

test('what is not known is passed on as a sentence, with its spans in words', () => {
  expect(said([['/title', 'may change once in 72h'], ['/constructor', 'is not known'], ['/title', 'Already a sentence.']])).toEqual([
    'title | Title | May change once in 72 hours.',
    'whole | constructor: This is not known.',
    'title | Title | Already a sentence.',
  ])
})
