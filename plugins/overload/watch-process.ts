import { monitorEventLoopDelay } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Pressure } from './pressure.js'

const windowMs = 500
const resolutionMs = 20

interface ProcessWatch {
  readonly isHeapFull: () => boolean
  readonly end: () => void
}

/** Reports the delay of the event loop to `pressure`, and watches the heap. */
export function watchProcess (pressure: Pressure, maxHeapPercent: number): ProcessWatch {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  let heapIsFull = false
  delays.enable()
  const timer = setInterval(() => {
    // Without a value it is NaN, which does not count as late.
    pressure.note(delays.mean / 1e6 - resolutionMs)
    delays.reset()
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
    heapIsFull = used > limit * maxHeapPercent / 100
  }, windowMs).unref()
  return {
    isHeapFull: () => heapIsFull,
    end: () => {
      clearInterval(timer)
      delays.disable()
    },
  }
}
