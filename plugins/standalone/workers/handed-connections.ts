import type { Worker } from 'node:cluster'

interface Handle {
  readonly close: () => void
}

/** The worker that each connection was last handed to. */
const holders = new WeakMap<Handle, Worker>()

/**
 * Closes connections that were handed to a worker that ended before it took them. Node's primary would keep them open, and their callers
 * would wait for ever (lib/internal/cluster/round_robin_handle.js of Node 20 to 24: one handle for each port, closed when the worker
 * answers). For a connection that the worker took this does nothing: it is closed here already.
 */
export function closeWithWorker (worker: Worker): void {
  const { process } = worker
  // Missing if the process could not be forked.
  const { send } = process
  const handed = new Map<unknown, Handle>()
  Reflect.set(process, 'send', (...args: Parameters<typeof send>): unknown => {
    const [message, handle] = args
    if (isHandle(handle)) {
      handed.set(Object(message).key, handle)
      holders.set(handle, worker)
    }
    return Reflect.apply(send, process, args)
  })
  worker.once('exit', () => {
    for (const handle of handed.values()) if (holders.get(handle) === worker) handle.close()
  })
}

function isHandle (value: unknown): value is Handle {
  return typeof Object(value).close === 'function'
}
