import { expect, it } from 'vitest'
import type { ItemPage, ItemsQuery, ItemSummary } from './api'
import { cell, csvOf, gather, ROWS_MAX } from './csv'

it('a cell that a spreadsheet would run is text', () => {
  for (const begin of ['=', '+', '-', '@', '\t', '\r']) {
    expect(cell(`${begin}cmd|' /C calc'!A1`)).toBe(`"'${begin}cmd|' /C calc'!A1"`)
  }
  expect(cell('plain - text')).toBe('plain - text')
  expect(cell('')).toBe('')
})

it('quotes, commas and line ends stay inside their cell', () => {
  expect(csvOf(['a', 'b'], [['say "no", twice', 'one\ntwo']])).toBe('\ufeffa,b\r\n"say ""no"", twice","one\ntwo"\r\n')
})

function pages(all: number): (query: ItemsQuery) => Promise<ItemPage> {
  return ({ limit = 50, cursor = '0' }) => {
    const from = Number(cursor)
    const items = Array.from({ length: Math.min(limit, all - from) }, (_, at) => ({ id: String(from + at) }) as ItemSummary)
    return Promise.resolve({ items, next: from + limit < all ? String(from + limit) : null, total: all })
  }
}

it('an export ends with the list, or at ten thousand rows', async () => {
  const { signal } = new AbortController()
  const few = await gather(pages(2_500), {}, signal, () => {})
  expect([few.items.length, few.hasMore]).toEqual([2_500, false])
  const many = await gather(pages(50_000), {}, signal, () => {})
  expect([many.items.length, many.hasMore]).toEqual([ROWS_MAX, true])
})
