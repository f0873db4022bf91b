import type { EventEmitter } from 'node:events'

/**
 * Keeps writes to this process's standard output from waiting for its reader. A pipe has one such state for all its writers: starting a
 * process makes it blocking, and so does one that ends (libuv's uv__process_child_init, ResetStdio of Node 20 to 24). Then whoever logs
 * while nobody reads is blocked.
 */
export function unblockOutput (worker: EventEmitter, output: object): void {
  const unblock = (): void => {
    const handle: unknown = Reflect.get(output, '_handle')
    if (isPipe(handle)) handle.setBlocking(false)
  }
  unblock()
  worker.once('exit', unblock)
}

function isPipe (handle: unknown): handle is { readonly setBlocking: (isBlocking: boolean) => void } {
  return typeof Object(handle).setBlocking === 'function'
}
