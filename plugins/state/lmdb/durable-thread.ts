/** Runs in a worker thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { serveDurable } from './durable.js'

serveDurable(parentPort, workerData)
