// Verifies a delivery as a receiver would: {key, headers, body} on standard input, the event's id on standard output.
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'

const { key, headers, body } = JSON.parse(readFileSync(0, 'utf8'))
try {
  console.log(new Webhook(key).verify(body, headers).id)
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
