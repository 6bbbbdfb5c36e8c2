// What an edit can say. The service takes a merge patch (RFC 7396), in which null means "remove": so a draft that is
// edited cannot be given a member that is null, and that is said instead of storing something else.
import { canonical } from './content'
import { isObject } from './diff'

type Members = Record<string, unknown>

/** The patch that turns `before` into exactly `after`, or the path of the first member that no patch can change that way. */
export type Patching = { patch: Members } | { unreachable: string[] }

export function patchTo(before: Members, after: Members, path: string[] = []): Patching {
  const changes: [string, unknown][] = Object.keys(before).filter((name) => !Object.hasOwn(after, name)).map((name) => [name, null])
  for (const [name, value] of Object.entries(after)) {
    const here = [...path, name]
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    if (old !== undefined && canonical(old) === canonical(value)) continue
    if (value === null) return { unreachable: here }
    // Only objects are merged. A list is replaced whole, with every null in it.
    const change: Patching = isObject(value) ? patchTo(isObject(old) ? old : {}, value, here) : { patch: {} }
    if ('unreachable' in change) return change
    changes.push([name, isObject(value) ? change.patch : value])
  }
  return { patch: Object.fromEntries(changes) }
}
