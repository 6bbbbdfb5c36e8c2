// What the console says, in the language a person chose. A language is a file in `words`; all have the same shape.
import { english, type Words } from './words/en'

/** Each by its own name for itself. English comes with the console, every other language when it is wanted. */
export const languages = {
  en: { name: 'English', load: () => Promise.resolve(english) },
  de: { name: 'Deutsch', load: () => import('./words/de').then(({ german }) => german) },
} satisfies Record<string, { name: string; load: () => Promise<Words> }>

export type Language = keyof typeof languages

let spoken: Words = english
/** For words that are loaded with the screen that says them. */
export let language: Language = 'en'
export let { roles, endings, certificateEndings, shown, problems, text } = spoken

export function isLanguage(name: string | null | undefined): name is Language {
  return name !== null && name !== undefined && Object.hasOwn(languages, name)
}

/** Once, before anything is shown: texts are not looked up again. */
export async function speak(wanted: Language): Promise<void> {
  // A language that cannot be loaded is no reason to show nothing: English is already here.
  spoken = await languages[wanted].load().catch(() => english)
  language = spoken === english ? 'en' : wanted
  ;({ roles, endings, certificateEndings, shown, problems, text } = spoken)
  document.documentElement.lang = spoken.locale
}

/** For dates and numbers: the person's own region, if it is one of the language that is spoken. */
export function locale(): string {
  return navigator.languages.find((tag) => tag.split('-')[0] === spoken.locale) ?? spoken.locale
}

/** Names come from definitions and payloads, and some are also names of what every object has. */
function entry(table: Record<string, string>, name: string): string | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

/** Names of definitions are data; they are only made readable. */
export function words(name: string): string {
  return entry(spoken.names, name) ?? name.replaceAll('_', ' ')
}

/** What someone did, as a timeline says it. */
export function done(action: string): string {
  return entry(spoken.done, action) ?? spoken.didOther(words(action))
}

/** What a definition says of itself. Those that come with the service are translated; what others wrote is shown as it is. */
export function said(description: string): string {
  return entry(spoken.descriptions, description) ?? description
}

export function capital(text: string): string {
  return text.charAt(0).toLocaleUpperCase(spoken.locale) + text.slice(1)
}

export function listed(names: string[], last: 'or' | 'and' = 'or'): string {
  if (names.length < 2) return names.join('')
  return `${names.slice(0, -1).join(', ')} ${spoken[last]} ${names.at(-1)}`
}

/** With as many digits after the point as are given. */
export function inNumbers(number: number, digits = 0): string {
  return number.toLocaleString(locale(), { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
