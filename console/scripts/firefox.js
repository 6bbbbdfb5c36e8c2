#!/usr/bin/env node
// Debian's Firefox for Playwright. It speaks WebDriver BiDi, and lacks one command that Playwright sends for every page:
// media features. That one is answered here; everything else goes through unchanged.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { WebSocket, WebSocketServer } from 'ws'

const PROGRAM = '/usr/bin/firefox-esr'
const UNKNOWN = new Set(['emulation.setMediaFeaturesOverride'])

const firefox = spawn(PROGRAM, process.argv.slice(2), { stdio: ['ignore', 'inherit', 'pipe'] })
firefox.on('exit', (code) => process.exit(code ?? 1))
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => firefox.kill(signal))

for await (const line of createInterface({ input: firefox.stderr })) {
  const found = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(line)
  if (found === null) process.stderr.write(`${line}\n`)
  else listen(found[1])
}

function listen(target) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 }, () => {
    process.stderr.write(`WebDriver BiDi listening on ws://127.0.0.1:${server.address().port}\n`)
  })
  server.on('connection', (client, request) => {
    const browser = new WebSocket(target + request.url, { maxPayload: 1 << 30 })
    const waiting = []
    browser.on('open', () => waiting.splice(0).forEach((text) => browser.send(text)))
    browser.on('message', (text) => client.send(text.toString()))
    client.on('message', (text) => {
      const { id, method } = JSON.parse(text)
      if (UNKNOWN.has(method)) client.send(JSON.stringify({ type: 'success', id, result: {} }))
      else if (browser.readyState === WebSocket.OPEN) browser.send(text.toString())
      else waiting.push(text.toString())
    })
    browser.on('close', () => client.close())
    client.on('close', () => browser.close())
    browser.on('error', () => client.close())
  })
}
