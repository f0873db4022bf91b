import type { WorkerOptions } from 'node:worker_threads'

/**
 * Options of our worker threads. Run from source, a thread needs this process's loader. Otherwise it gets nothing of the process: a module
 * that is preloaded, such as telemetry, would start a second time.
 */
export function threadOptions (file: URL): Pick<WorkerOptions, 'execArgv' | 'env'> {
  return file.pathname.endsWith('.ts') ? {} : { execArgv: [], env: {} }
}
