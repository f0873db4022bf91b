/** What runs beside the loop: each message is a body with its endpoint, each answer what `answerQuestion` says of it. */
import { parentPort, workerData } from 'node:worker_threads'
import { answerQuestion, rulesFrom, type Question } from './questions.js'

const rules = rulesFrom(workerData)

parentPort?.on('message', (question: Question) => {
  const answer = answerQuestion(question, rules)
  parentPort?.postMessage(answer, [answer.bytes.buffer])
})
