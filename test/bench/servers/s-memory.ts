/** The same, counting in memory and keeping no ledger: what the state alone costs. */
import { serveStore } from './store-options.js'

await serveStore({ engine: 'memory' })
