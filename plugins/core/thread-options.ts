import type { WorkerOptions } from 'node:worker_threads'

/**
 * What a thread of ours begins with. Run from its source it needs what this process reads sources with. Else nothing of the process's: a
 * module that is loaded before everything, as telemetry is, would begin a second time.
 */
export function threadOptions (file: URL): Pick<WorkerOptions, 'execArgv' | 'env'> {
  return file.pathname.endsWith('.ts') ? {} : { execArgv: [], env: {} }
}
