// A definition as people read it. Names, rules and digests stay what they are: only titles and descriptions of the
// definitions that come with the service are said in the language that is spoken.
import type { Workflow, WorkflowSummary } from './api'
import { isObject } from './diff'
import { said } from './text'

export function summaryInWords<T extends Pick<WorkflowSummary, 'title' | 'description'>>(workflow: T): T {
  return { ...workflow, title: said(workflow.title), description: said(workflow.description) }
}

export function inWords(workflow: Workflow): Workflow {
  return {
    ...summaryInWords(workflow),
    states: workflow.states.map(described),
    transitions: workflow.transitions.map(described),
    payload_schema: schemaInWords(workflow.payload_schema),
  }
}

function described<T extends { description?: unknown }>(part: T): T {
  return typeof part.description === 'string' ? { ...part, description: said(part.description) } : part
}

/** What the form says at each of its fields. */
function schemaInWords(schema: Record<string, unknown>): Record<string, unknown> {
  if (!isObject(schema.properties)) return schema
  const properties = Object.entries(schema.properties).map(([name, rule]) => [name, isObject(rule) ? described(rule) : rule])
  return { ...schema, properties: Object.fromEntries(properties) }
}
