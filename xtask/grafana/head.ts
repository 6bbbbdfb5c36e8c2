import type { AnnotationQuery, Dashboard } from '@grafana/schema'

// JSON has the values of an enumeration, and not its names.
type Plain<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends Array<infer E>
      ? Array<Plain<E>>
      : T extends object
        ? { [K in keyof T]: Plain<T[K]> }
        : T

// What Prometheus adds to an annotation is not in Grafana's own types.
type Annotation = AnnotationQuery & { expr?: string; titleFormat?: string; textFormat?: string }
type Checked = Omit<Dashboard, 'annotations'> & { annotations?: { list?: Annotation[] } }
