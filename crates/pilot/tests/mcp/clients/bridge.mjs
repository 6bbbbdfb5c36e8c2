// The conformance suite tests servers over HTTP only. This passes each message of an HTTP session on to a server on
// standard input and output, and back, unread. Usage: node bridge.mjs COMMAND [ARGUMENT…]; prints its address.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

const [command, ...args] = process.argv.slice(2);
const sessions = new Map();

async function open() {
  const inner = new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
  const outer = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, outer),
  });
  outer.onmessage = (message) => inner.send(message);
  inner.onmessage = (message) => outer.send(message, { relatedRequestId: message.id });
  outer.onclose = () => inner.close();
  inner.onclose = () => outer.close();
  await inner.start();
  await outer.start();
  return outer;
}

const server = createServer(async (request, response) => {
  const session = sessions.get(request.headers['mcp-session-id']) ?? (await open());
  await session.handleRequest(request, response);
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));

// The test ends the bridge by closing its input, and the bridge its servers.
process.stdin.resume().on('end', async () => {
  await Promise.all([...sessions.values()].map((session) => session.close()));
  process.exit(0);
});
