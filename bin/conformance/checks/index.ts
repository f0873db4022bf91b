import type { Check } from '../check.js'
import { auth } from './auth.js'
import { bodies } from './bodies.js'
import { endings } from './endings.js'
import { errors } from './errors.js'
import { guards } from './guard.js'
import { paths } from './paths.js'
import { streams } from './streams.js'
import { usage } from './usage.js'

/** Every check, by number. A number never changes its meaning. */
export const checks: readonly Check[] = [...paths, ...auth, ...bodies, ...usage, ...streams, ...errors, ...guards, ...endings]
  .toSorted((a, b) => a.number - b.number)
