// Must be found by the checker. One that passes this passes everything.
import type { Role } from 'pilot-types'

export const wrong: Role = 'superuser'
