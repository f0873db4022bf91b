/**
 * The runner's library as one graph of CommonJS: as modules each of its files would pass through the hooks, in another thread.
 * A test file that runs together with others has a test of its own in its place.
 */
import { createRequire } from 'node:module'
import { testOf } from './together.js'

const importer = new URL(import.meta.url).searchParams.get('of')

export default testOf(importer) ?? createRequire(import.meta.url)('tap').default
