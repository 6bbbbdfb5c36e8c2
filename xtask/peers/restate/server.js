// Maker and checker as a virtual object of Restate, one for each item: Restate runs the handlers of one item one after
// the other, and keeps its state and the journal of every call.
//
// CREDENTIALS is a credential file of the service; ADMIN and INGRESS are URLs of a Restate server.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";

// The SDK expects it, and Node 20 lacks it.
Promise.withResolvers ??= () => {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
};

const { credentials } = JSON.parse(readFileSync(process.env.CREDENTIALS, "utf8"));
const callerIn = (entry) => ({ actor: entry.actor_id, role: entry.roles[0] });
const callers = new Map(credentials.map((entry) => [entry.token_sha3_256, callerIn(entry)]));

const refuse = (errorCode, code) => {
  throw new restate.TerminalError(code, { errorCode });
};

const digestOf = (algorithm, text) => createHash(algorithm).update(text).digest("hex");

function callerOf(context, role) {
  const token = /^Bearer ([!-~]+)$/.exec(context.request().headers.get("authorization") ?? "")?.[1];
  const caller = token && callers.get(digestOf("sha3-256", token));
  if (!caller) refuse(401, "unauthenticated");
  if (caller.role !== role) refuse(403, "wrong_role");
  return caller;
}

async function itemIn(context, state) {
  const item = (await context.get("item")) ?? refuse(404, "unknown_item");
  return item.state === state ? item : refuse(409, "wrong_state");
}

/// Each state contains the hash of the one before it.
function keep(context, item, before) {
  const version = (before?.version ?? 0) + 1;
  const kept = { ...item, version, previous_hash: digestOf("sha256", JSON.stringify(before ?? null)) };
  context.set("item", kept);
  return { id: context.key, content_digest: kept.content_digest, state: kept.state, version };
}

const handlers = {
  async propose(context, { title, payload }) {
    const { actor } = callerOf(context, "initiator");
    if (await context.get("item")) refuse(409, "wrong_state");
    const digest = digestOf("sha256", JSON.stringify(payload));
    return keep(context, { state: "submitted", created_by: actor, title, payload, content_digest: digest }, null);
  },
  async approve(context, { content_digest }) {
    const { actor } = callerOf(context, "approver");
    const item = await itemIn(context, "submitted");
    if (item.created_by === actor) refuse(403, "separation_of_duties");
    if (item.content_digest !== content_digest) refuse(409, "other_content");
    return keep(context, { ...item, state: "approved", approved_by: actor }, item);
  },
  async revoke_approval(context, { comment }) {
    callerOf(context, "approver");
    const item = await itemIn(context, "approved");
    if (!comment) refuse(422, "comment_missing");
    return keep(context, { ...item, state: "submitted", approved_by: null, comment }, item);
  },
};

const endpoint = restate.endpoint().bind(restate.object({ name: "item", handlers }));
const server = http2.createServer(endpoint.http2Handler({ bidirectional: true }));
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));

/// The server may still be starting.
async function register(triesLeft) {
  const body = JSON.stringify({ uri: `http://127.0.0.1:${server.address().port}` });
  const headers = { "content-type": "application/json" };
  try {
    const answer = await fetch(`${process.env.ADMIN}/deployments`, { method: "POST", headers, body });
    if (answer.ok) return;
    throw new Error(await answer.text());
  } catch (error) {
    if (triesLeft === 0) throw error;
    await new Promise((passed) => setTimeout(passed, 250));
    await register(triesLeft - 1);
  }
}
await register(120);
console.log(`listening on ${process.env.INGRESS}`);
