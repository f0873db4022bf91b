/** What runs beside the loop. */
import { parentPort, workerData } from 'node:worker_threads'
import { serveQuestions } from './questions.js'

serveQuestions(parentPort, workerData)
