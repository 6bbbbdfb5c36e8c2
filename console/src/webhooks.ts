// Endpoints that are told about entries, in the order in which someone should look at them.
import type { Webhook } from './api'

const URGENCY: Record<Webhook['state'], number> = { paused: 0, failing: 1, delivering: 2 }

/** Paused ones first, then those that fail; otherwise by name. */
export function byUrgency(webhooks: readonly Webhook[]): Webhook[] {
  return [...webhooks].sort((a, b) => URGENCY[a.state] - URGENCY[b.state] || a.name.localeCompare(b.name))
}
