// Characters that look like others. Two contents that differ must not look the same, so each of these is shown with its
// code where it could be taken for something else.

/** Cyrillic, Greek, Armenian, Cherokee and a few more whose shapes are those of Latin letters and digits. */
const LATIN_SHAPES = new Set(
  'аеорсухіјѕԛԝһӏАВЕЅІЈКМНОРСТУХҮԌԚԜӀ' +
    'ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹϳονιαυκρτχγωϲ' +
    'օսոցհքԱՍՏՕՈ' +
    'ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃᏀᏂᏎ' +
    'ɑɡɩʟɪʏʀɴʜʙᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢƖƽ٥٠۵۰०๐໐၀Ꮞ',
)

/** Signs that look like those of ASCII, which commands and addresses are made of. */
const SIGNS = new Set('\u2010\u2011\u2012\u2043\u2212\u2215\u2044\u29f8\u2236\ua789\u02d0\u0589\u05c3\u2024\u0660\u06f0\u06d4\u2027\u2219\u22c5\u2223\u01c0\u05c0\u2217\u066d\u037e\u201a\u02b9\u02bc\u02bb\u02c8\u2032\u2035\u05f3\u2033\u201f\u05f4\u02ba\u223c\u02dc\u2053\u2039\u203a\u2329\u232a\u27e8\u27e9\u3008\u3009\u2e28\u2e29\u2768\u2769\u2774\u2775\u02c2\u02c3\u1428\u1433\u1438\u21e5\u21b5\u00b7')

/** Compatibility forms that people write on purpose and nobody takes for something else. */
const USUAL = new Set('…™²³¹½¼¾ªº℠№°´¨¸µ')

const LETTER = /\p{L}|\p{N}|\p{M}/u
const ASCII_ONLY = /^[\x21-\x7e]+$/

export type Alike = 'looks like another character' | 'also written with another code'

/** For a word: at which of its characters one could be misled. */
function inWord(word: string[]): Set<number> {
  const found = new Set<number>()
  const letters = word.filter((character) => /\p{L}/u.test(character))
  const isMixed = letters.some((letter) => /\p{Script=Latin}/u.test(letter)) && letters.some((letter) => !/\p{Script=Latin}/u.test(letter))
  // A word in another script betrays itself by a letter that Latin does not have.
  const isDisguise = letters.length > 0 && letters.every((letter) => LATIN_SHAPES.has(letter))
  word.forEach((character, at) => {
    if (LATIN_SHAPES.has(character) && (isMixed || isDisguise || !/\p{L}/u.test(character) || /\p{Script=Latin}/u.test(character))) found.add(at)
  })
  return found
}

/** The places in a text, as indices of its characters, that look like something else. */
export function lookalikes(characters: string[]): Map<number, Alike> {
  const found = new Map<number, Alike>()
  let [word, from]: [string[], number] = [[], 0]
  const settle = () => {
    if (word.length > 0) for (const at of inWord(word)) found.set(from + at, 'looks like another character')
    word = []
  }
  characters.forEach((character, at) => {
    if (LETTER.test(character)) {
      if (word.length === 0) from = at
      word.push(character)
    } else settle()
    const code = character.codePointAt(0) ?? 0
    if (code < 0x80 || USUAL.has(character)) return
    if (SIGNS.has(character) || (ASCII_ONLY.test(character.normalize('NFKC')) && character.normalize('NFKC') !== character)) {
      found.set(at, 'looks like another character')
    } else if (isComposable(characters, at)) found.set(at, 'also written with another code')
  })
  settle()
  return found
}

/** The same letter can be one character or two, or have two codes. To compare texts, one must see which it is. */
function isComposable(characters: string[], at: number): boolean {
  const character = characters[at] ?? ''
  if (character.normalize('NFC') !== character) return true
  if (!/\p{M}/u.test(character)) return false
  let base = at - 1
  while (base >= 0 && /\p{M}/u.test(characters[base] ?? '')) base -= 1
  const cluster = characters.slice(Math.max(0, base), at + 1).join('')
  return cluster.normalize('NFC') !== cluster
}
