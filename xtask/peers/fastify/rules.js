// Who may do what to an item, and what becomes of it.
import { createHash } from "node:crypto";

const RULES = {
  submit: { role: "initiator", from: "draft", to: "submitted" },
  approve: { role: "approver", from: "submitted", to: "approved" },
  revoke_approval: { role: "approver", from: "approved", to: "submitted" },
};

export const actions = Object.keys(RULES);

/// Throws a refusal, or gives the item as it will be.
export function decide(item, request, caller) {
  const rule = RULES[request.action];
  if (caller.role !== rule.role) throw refusal(403, "wrong_role");
  if (item.state !== rule.from) throw refusal(409, "wrong_state");
  if (request.action === "submit" && item.created_by !== caller.actor) throw refusal(403, "not_the_initiator");
  if (request.action === "approve") {
    if (item.created_by === caller.actor) throw refusal(403, "separation_of_duties");
    if (item.content_digest !== request.content_digest) throw refusal(409, "other_content");
  }
  if (request.action === "revoke_approval" && !request.comment) throw refusal(422, "comment_missing");
  const approvedBy = request.action === "approve" ? caller.actor : null;
  return { ...item, state: rule.to, version: Number(item.version) + 1, approved_by: approvedBy };
}

export function refusal(statusCode, code) {
  return Object.assign(new Error(code), { statusCode, code });
}

export const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
