/** The runner's library as one graph of CommonJS: as modules each of its files would pass through the hooks, in another thread. */
import { createRequire } from 'node:module'

export default createRequire(import.meta.url)('tap').default
