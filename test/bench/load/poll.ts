/**
 * Waking a process that sleeps on another core costs the writer up to 25 us a write, and more or less by chance. The far
 * sides of a real gateway are other machines, whose waking costs it nothing. So under a closed loop the callers and the
 * mock upstream never sleep on their sockets: they look at them every 100 us.
 */

const periodMs = 0.1

/** Until the returned function is called, this process sleeps by the clock alone and reads its sockets when it wakes. */
export function pollSockets (): () => void {
  const never = new Int32Array(new SharedArrayBuffer(4))
  let polling = true
  const look = (): void => {
    if (!polling) return
    Atomics.wait(never, 0, 0, periodMs)
    setImmediate(look)
  }
  look()
  return () => { polling = false }
}
