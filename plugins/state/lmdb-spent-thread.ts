/** What runs beside the loop. */
import { parentPort, workerData } from 'node:worker_threads'
import { serveSpent } from './lmdb-spent.js'

serveSpent(parentPort, workerData)
