// New work, told where people notice it: read out once, and by the desktop for those who asked for it and look elsewhere.
import type { ItemSummary } from './api'
import { visible } from './hidden'
import { inbox } from './inbox.svelte'
import { page } from './page.svelte'
import { preferences } from './preferences.svelte'
import { href, router } from './router.svelte'
import { text } from './text'
import { toasts } from './toasts.svelte'

const TITLE_MAX = 80

export function canNotify(): boolean {
  return 'Notification' in globalThis && isSecureContext
}

/** Whether the browser lets us, after asking if it has not been asked yet. */
export async function askToNotify(): Promise<boolean> {
  if (!canNotify()) return false
  const answer = Notification.permission === 'default' ? await Notification.requestPermission() : Notification.permission
  return answer === 'granted'
}

/** A count and one title, nothing of what is to be decided: anyone who passes by can read it on the screen. */
export function noticeOf(news: Pick<ItemSummary, 'title'>[]): string {
  const [first] = news
  const title = visible(first?.title ?? '')
  const short = title.length > TITLE_MAX ? `${title.slice(0, TITLE_MAX)}…` : title
  return news.length === 1 ? short : text.inbox.andMore(short, news.length - 1)
}

export function watchNews(): () => void {
  return inbox.listen((news) => {
    toasts.say(text.inbox.news(news.length))
    if (document.hidden && preferences.hasNotices && canNotify() && Notification.permission === 'granted') notify(news)
  })
}

function notify(news: ItemSummary[]): void {
  const title = [text.inbox.news(news.length), page.name].filter((part) => part !== '').join(' · ')
  // One tag: several tabs of one person tell the same, and it is shown once.
  const notice = new Notification(title, { body: noticeOf(news), tag: 'pilot-inbox' })
  notice.onclick = () => {
    window.focus()
    router.go(news.length === 1 && news[0] !== undefined ? href(['items', news[0].id]) : href(['inbox']))
    notice.close()
  }
}
