/** Adds up parts of files beside the main thread: one after another, while there are some that no thread has begun. */
import { parentPort, workerData } from 'node:worker_threads'
import { partAdder } from './add-part.js'
import type { ThreadAnswer, ThreadTask } from './add-parts.js'
import { Calendar } from './calendar.js'
import { readDimension } from './dimensions.js'
import { Sums } from './sums.js'

const { parts, begun, by, zone, question }: ThreadTask = workerData
const next = new Int32Array(begun)
const sums = new Sums()
const damaged = new Map<string, number>()
const add = partAdder(sums, { by: by.map(readDimension), calendar: new Calendar(zone), question }, (path) => {
  damaged.set(path, (damaged.get(path) ?? 0) + 1)
})

for (let part = parts[Atomics.add(next, 0, 1)]; part !== undefined; part = parts[Atomics.add(next, 0, 1)]) {
  add(part)
  parentPort?.postMessage(null)
}
parentPort?.postMessage({ damaged, sums: sums.sorted } satisfies ThreadAnswer)
