/** The gateway as it is started where nothing is said of its state: lmdb on the disk of this machine. */
import { serveStore } from './store-options.js'

await serveStore({ engine: 'lmdb' })
