// What waits for the caller, kept current by the feed.
import { listItems, type Item } from './api'
import { connection } from './connection.svelte'
import { feed } from './feed.svelte'
import { learn } from './kinds.svelte'
import { Loaded } from './loaded.svelte'

const PAGES_MAX = 5
const SETTLE_MS = 250

class Inbox {
  loaded = new Loaded<Item[]>()
  hasMore = $state.raw(false)
  #timer: ReturnType<typeof setTimeout> | undefined

  get count(): number {
    return this.loaded.value?.length ?? 0
  }

  /** Loads now, and again after every change; a burst of changes counts as one. */
  watch(): () => void {
    void connection.returns
    void this.load()
    const forget = feed.listen(() => {
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => void this.load(), SETTLE_MS)
    })
    return () => {
      clearTimeout(this.#timer)
      forget()
      this.loaded.clear()
    }
  }

  async load(): Promise<void> {
    const items = await this.loaded.load(async () => {
      const found: Item[] = []
      let cursor: string | null = null
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const answer: { items: Item[]; next: string | null } = await listItems({
          waiting_for: 'me',
          limit: 200,
          ...(cursor === null ? {} : { cursor }),
        })
        found.push(...answer.items)
        cursor = answer.next
        if (cursor === null) break
      }
      this.hasMore = cursor !== null
      return found.sort(byDeadline)
    })
    if (items !== null) learn(items)
  }
}

/** The nearest deadline first, then the oldest; what has no deadline comes last. */
export function byDeadline(one: Item, other: Item): number {
  const [first, second] = [one.due_at ?? '~', other.due_at ?? '~']
  return first < second ? -1 : first > second ? 1 : one.created_at < other.created_at ? -1 : 1
}

export const inbox = new Inbox()
