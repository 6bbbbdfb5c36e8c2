// What waits for the caller, kept current by the feed.
import { SvelteSet } from 'svelte/reactivity'
import { listItems, type ItemSummary } from './api'
import { connection } from './connection.svelte'
import { feed } from './feed.svelte'
import { learn } from './kinds.svelte'
import { Loaded } from './loaded.svelte'
import { session } from './session.svelte'
import { settling } from './settle'

/** One request, however much is waiting; what does not fit has no deadline soon. */
const ITEMS_MAX = 1_000
const QUIET_MS = 250
const LONGEST_MS = 2_000

class Inbox {
  loaded = new Loaded<ItemSummary[]>()
  hasMore = $state.raw(false)
  /** What came since the inbox was last looked at. */
  readonly fresh = new SvelteSet<string>()
  #known: Set<string> | null = null
  #listeners = new Set<(news: ItemSummary[]) => void>()

  get count(): number {
    return this.loaded.value?.length ?? 0
  }

  /** Loads now, and again after every change. */
  watch(): () => void {
    void connection.returns
    void this.load()
    const settled = settling(() => this.load(), QUIET_MS, LONGEST_MS)
    const forget = feed.listen(settled.poke)
    return () => {
      forget()
      settled.stop()
    }
  }

  /** Tells of items that began to wait, each once. */
  listen(listener: (news: ItemSummary[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async load(): Promise<void> {
    const items = await this.loaded.load(async () => {
      const page = await listItems({ waiting_for: 'me', sort: 'due', limit: ITEMS_MAX })
      this.hasMore = page.next !== null
      return page.items
    })
    if (items === null) return
    learn(items)
    this.#compare(items)
  }

  #compare(items: ItemSummary[]): void {
    const before = this.#known
    this.#known = new Set(items.map((item) => item.id))
    for (const id of this.fresh) if (!this.#known.has(id)) this.fresh.delete(id)
    if (before === null) return
    const news = items.filter((item) => !before.has(item.id) && !isOwnDoing(item))
    if (news.length === 0) return
    for (const { id } of news) this.fresh.add(id)
    for (const listener of this.#listeners) listener(news)
  }

  forget(): void {
    this.loaded.clear()
    this.fresh.clear()
    this.#known = null
  }
}

/** A draft that was just created waits for its own creator, who does not need to be told. */
function isOwnDoing({ id }: ItemSummary): boolean {
  return feed.entries.find((entry) => entry.item === id)?.actor_id === session.me?.actor_id
}

export const inbox = new Inbox()
session.onEnd(() => inbox.forget())
