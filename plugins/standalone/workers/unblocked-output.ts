interface Ending {
  once: (event: 'exit', listener: () => void) => unknown
}

/**
 * Keeps writes to this process's standard output from waiting for its reader. Whether they do is one state of a pipe for all who write
 * to it: starting a process turns it on, and so does one that ends (libuv's uv__process_child_init, ResetStdio of Node 20 to 24). Then
 * whoever logs while nobody reads stands still.
 */
export function unblockOutput (worker: Ending, output: object): void {
  const unblock = (): void => {
    const handle: unknown = Reflect.get(output, '_handle')
    if (isPipe(handle)) handle.setBlocking(false)
  }
  unblock()
  worker.once('exit', unblock)
}

function isPipe (handle: unknown): handle is { readonly setBlocking: (isBlocking: boolean) => void } {
  return typeof handle === 'object' && handle !== null && 'setBlocking' in handle
}
