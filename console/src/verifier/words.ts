// The words for bundles, in the language the console speaks. They come with the screens that say them.
import { language } from '../text'
import { german } from '../words/verifier/de'
import { english, type VerifierWords } from '../words/verifier/en'

export function verifierWords(): VerifierWords {
  return { en: english, de: german }[language]
}

/** Names that the verifier gives are data; one without a word of its own is only made readable. */
export function named(table: Record<string, string>, name: string): string {
  return (Object.hasOwn(table, name) ? table[name] : undefined) ?? name.replaceAll('_', ' ')
}
