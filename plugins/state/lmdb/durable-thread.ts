/** What runs beside the loop. */
import { parentPort, workerData } from 'node:worker_threads'
import { serveDurable } from './durable.js'

serveDurable(parentPort, workerData)
