/** Runs in a worker thread. */
import { parentPort, workerData } from 'node:worker_threads'
import { giveWay, system } from './give-way.js'
import { serveQuestions } from './questions.js'

giveWay(system)
serveQuestions(parentPort, workerData)
