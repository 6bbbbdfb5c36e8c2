// Maker and checker as a careful team would write them by hand: one transaction for each transition, the item's row
// locked, the rules checked, an entry with the hash of the one before it in a table that only grows.
//
// CREDENTIALS is a credential file of the service; DATABASE is the URL of an empty database.
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import Fastify from "fastify";
import pg from "pg";
import { actions, decide, refusal, sha256 } from "./rules.js";

const POOL = 16;
const pool = new pg.Pool({ connectionString: process.env.DATABASE, max: POOL, min: POOL });
await pool.query(readFileSync(new URL("schema.sql", import.meta.url), "utf8"));

const { credentials } = JSON.parse(readFileSync(process.env.CREDENTIALS, "utf8"));
const callerIn = (entry) => ({ actor: entry.actor_id, role: entry.roles[0] });
const callers = new Map(credentials.map((entry) => [entry.token_sha3_256, callerIn(entry)]));

const LOCK = { name: "lock", text: "SELECT * FROM item WHERE id = $1 FOR UPDATE" };
const RECORD = {
  name: "record",
  text: `WITH moved AS (UPDATE item SET version = $2, state = $3, approved_by = $4, last_hash = $5 WHERE id = $1)
    INSERT INTO audit (item, version, data, previous_hash, hash) VALUES ($1, $2, $6, $7, $5)`,
};

const textMax = (maxLength) => ({ type: "string", minLength: 1, maxLength });
const item = {
  type: "object",
  required: ["workflow", "title", "payload"],
  properties: { workflow: textMax(64), title: textMax(200), payload: { type: "object" } },
};
const transition = {
  type: "object",
  required: ["action"],
  properties: { action: { enum: actions }, content_digest: textMax(64), comment: textMax(2000) },
};

// One line for each request, gathered in memory, as the service's own log is.
const logger = { level: "info", stream: gathered() };
function gathered() {
  let waiting = [];
  setInterval(() => {
    if (waiting.length > 0) process.stderr.write(waiting.join(""));
    waiting = [];
  }, 10).unref();
  return { write: (line) => waiting.push(line) };
}
const app = Fastify({ logger, disableRequestLogging: true });

app.decorateRequest("caller", null);
app.addHook("onRequest", async (request) => {
  const token = /^Bearer ([!-~]+)$/.exec(request.headers.authorization ?? "")?.[1];
  request.caller = token && callers.get(createHash("sha3-256").update(token).digest("hex"));
  if (!request.caller) throw refusal(401, "unauthenticated");
});
app.addHook("onResponse", async (request, reply) => {
  const { method, url, caller } = request;
  request.log.info({ method, url, actor: caller?.actor, status: reply.statusCode, ms: reply.elapsedTime }, "answered");
});

app.post("/v1/items", { schema: { body: item } }, async (request, reply) => {
  if (request.caller.role !== "initiator") throw refusal(403, "wrong_role");
  const { title, payload } = request.body;
  const [id, digest] = [randomUUID(), sha256(JSON.stringify(payload)).toString("hex")];
  await pool.query(
    "INSERT INTO item VALUES ($1, 1, 'draft', $2, NULL, $3, $4, $5, $6)",
    [id, request.caller.actor, title, payload, digest, sha256(id)],
  );
  return reply.code(201).send({ id, content_digest: digest, state: "draft", version: 1 });
});

app.post("/v1/items/:id/transitions", { schema: { body: transition } }, async (request, reply) => {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const found = await client.query({ ...LOCK, values: [request.params.id] });
    if (found.rowCount === 0) throw refusal(404, "unknown_item");
    const before = found.rows[0];
    const after = decide(before, request.body, request.caller);
    const { id, version, state } = after;
    const entry = JSON.stringify({ ...request.body, ...request.caller, id, version, state, at: new Date() });
    const hash = sha256(before.last_hash, entry);
    await client.query({ ...RECORD, values: [id, version, state, after.approved_by, hash, entry, before.last_hash] });
    await client.query("COMMIT");
    return reply.code(201).send({ item_id: id, state, version, actor_id: request.caller.actor });
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
});

console.log(`listening on ${await app.listen({ host: "127.0.0.1", port: 0 })}`);
