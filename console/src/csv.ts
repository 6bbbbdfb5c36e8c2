// Lists for spreadsheets. A cell that a spreadsheet would take for a formula is not one.
import type { ItemPage, ItemsQuery, ItemSummary } from './api'

export const ROWS_MAX = 10_000
const PAGE = 1_000

/** `'` is what spreadsheets themselves put before text that looks like a formula. */
export function cell(value: string): string {
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n']/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

export function csvOf(names: string[], rows: string[][]): string {
  // The mark at the beginning tells spreadsheets that this is UTF-8.
  return `\ufeff${[names, ...rows].map((row) => row.map(cell).join(',')).join('\r\n')}\r\n`
}

export function rowOf(item: ItemSummary): string[] {
  const { id, title, workflow, risk, state, held, waits_for, due_at, created_by, created_at, updated_at } = item
  return [id, title, workflow.name, risk ?? '', state, held ? 'true' : 'false', waits_for.join(' '), due_at ?? '', created_by.actor_id, created_at, updated_at]
}

/** Names of columns are those of the API, so that what reads the file does not depend on a language. */
export const COLUMNS = ['id', 'title', 'workflow', 'risk', 'state', 'held', 'waits_for', 'due_at', 'created_by', 'created_at', 'updated_at']

/** Page after page, up to the limit. Items may move between pages while this runs; each is in the file once. */
export async function gather(list: (query: ItemsQuery) => Promise<ItemPage>, query: ItemsQuery, signal: AbortSignal, tell: (number: number) => void): Promise<{ items: ItemSummary[]; hasMore: boolean }> {
  const found = new Map<string, ItemSummary>()
  let cursor: string | null = null
  do {
    const page: ItemPage = await list({ ...query, limit: PAGE, ...(cursor === null ? {} : { cursor }) })
    signal.throwIfAborted()
    for (const item of page.items) found.set(item.id, item)
    tell(found.size)
    cursor = page.next
  } while (cursor !== null && found.size < ROWS_MAX)
  return { items: [...found.values()].slice(0, ROWS_MAX), hasMore: cursor !== null || found.size > ROWS_MAX }
}
