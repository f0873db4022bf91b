/** The same with a Redis on this machine. */
import { serveStore } from './store-options.js'

await serveStore({ engine: 'redis', url: process.env['BENCH_REDIS'], commandTimeoutMs: 5_000 })
