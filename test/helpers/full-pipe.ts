import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface Pipe {
  readonly fd: number
  /** What stands in it, which is out of it then. */
  readonly read: () => string
  /** Until it takes not a byte more. */
  readonly fill: () => void
}

/** A pipe that nobody else reads. `t` closes it. */
export function unreadPipe (t: Test, dir: string): Pipe {
  const path = join(dir, 'pipe')
  spawnSync('mkfifo', [path])
  const open = (): number => openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const fd = open()
  // Its own way in, as what a process sets for the one that it is given holds for all that share that.
  const own = open()
  t.teardown(() => [fd, own].forEach((each) => closeSync(each)))
  const read = (): string => {
    const bytes = Buffer.alloc(65_536)
    try {
      return bytes.toString('utf8', 0, readSync(own, bytes))
    } catch {
      return ''
    }
  }
  const fill = (): void => {
    for (const size of [4_096, 1]) {
      try {
        for (;;) writeSync(own, 'x'.repeat(size))
      } catch { /* It is full. */ }
    }
  }
  return { fd, read, fill }
}
