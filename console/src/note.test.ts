import { expect, test } from 'vitest'
import { isSigned, readCheckpoint, readVerifierKey } from './note'

// From C2SP's signed-note and the Go implementation's example.
const KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
const NOTE =
  'If you think cryptography is the answer to your problem,\n' +
  "then you don't know what your problem is.\n" +
  '\n' +
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n'

test('a key whose hash does not fit its name is none', async () => {
  expect((await readVerifierKey(KEY))?.name).toBe('PeterNeumann')
  expect((await readVerifierKey(`  ${KEY}\n`))?.name).toBe('PeterNeumann')
  expect(await readVerifierKey(KEY.replace('c74f20a3', 'c74f20a4'))).toBeNull()
  expect(await readVerifierKey(KEY.replace('Peter', 'Pater'))).toBeNull()
  expect(await readVerifierKey('')).toBeNull()
  expect(await readVerifierKey('a+b+c')).toBeNull()
})

test('the signature of the reference note is good, and any change makes it bad', async () => {
  const key = await readVerifierKey(KEY)
  if (key === null) throw new Error('the key is good')
  // The reference note is no checkpoint, so it is taken apart by hand.
  const end = NOTE.indexOf('\n\n')
  const signature = Uint8Array.from(Buffer.from(NOTE.trim().split(' ').at(-1) ?? '', 'base64'))
  const note = {
    origin: 'PeterNeumann',
    size: 0,
    root: new Uint8Array(32),
    text: NOTE.slice(0, end + 1),
    signatures: [{ name: 'PeterNeumann', id: signature.slice(0, 4), signature: signature.slice(4) }],
  }
  expect(await isSigned(note, key)).toBe(true)
  expect(await isSigned({ ...note, text: note.text.replace('problem', 'problems') }, key)).toBe(false)
  expect(await isSigned({ ...note, signatures: [] }, key)).toBe(false)
  const stranger = note.signatures.map((line) => ({ ...line, name: 'Eve' }))
  expect(await isSigned({ ...note, signatures: stranger }, key)).toBe(false)
})

test('a checkpoint is read line by line', () => {
  const root = 'dePB+atk9LISAgTwi6IVham8ImgxFiNtuFbK/pTA980='
  const line = '— log.example.org cR/YigDSoCKs583EoV2mTRZ1aADjBB27iDjw8u+FO9PLLaCRn+Oq3lTTgM2VCeZ89lI7UK2ZbngzBc2bEKeqEWgQhgM='
  const note = `log.example.org\n10\n${root}\n\n${line}\n`
  expect(readCheckpoint(note)).toMatchObject({ origin: 'log.example.org', size: 10 })
  for (const faulty of ['', 'log\n10\n', note.replace('\n10\n', '\n010\n'), note.replace(root, 'AAAA'), note.replace('— ', '- '), note.replace('\n10\n', '\n-1\n')]) {
    expect(readCheckpoint(faulty), faulty).toBeNull()
  }
})

test('a checkpoint of this log is good under its key', async () => {
  // The example of docs/audit/log-format.md and docs/guide/api.md.
  const key = await readVerifierKey('log.example.org+711fd88a+AYWtcnqezBtHlBgm3RRoKFLeTfCpCoCvV7mnKb/Y5dFk')
  const checkpoint = readCheckpoint(
    'log.example.org\n10\ndePB+atk9LISAgTwi6IVham8ImgxFiNtuFbK/pTA980=\n\n' +
      '— log.example.org cR/YigDSoCKs583EoV2mTRZ1aADjBB27iDjw8u+FO9PLLaCRn+Oq3lTTgM2VCeZ89lI7UK2ZbngzBc2bEKeqEWgQhgM=\n',
  )
  if (key === null || checkpoint === null) throw new Error('both are well formed')
  expect(await isSigned(checkpoint, key)).toBe(true)
  expect(await isSigned({ ...checkpoint, text: checkpoint.text.replace('10', '11') }, key)).toBe(false)
})
