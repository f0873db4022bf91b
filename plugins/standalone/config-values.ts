/** What a configuration says of the process, and what holds where it says nothing. */
import { availableParallelism } from 'node:os'
import { ledgerFolder } from '../state/ledger/read.js'
import type { StateConfig } from '../state/types.js'
import { ConfigError, type Problem } from './config-error.js'
import type { GatewayConfig } from './config-types.js'
import type { Environment } from './config-yaml.js'

export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Mistakes in PORT of the environment. */
export function portProblems ({ PORT: port = '' }: Environment): Problem[] {
  const isRight = port === '' || (/^\d{1,5}$/.test(port) && Number(port) <= 65_535)
  return isRight ? [] : [{ path: '', message: 'environment variable PORT is not a port number' }]
}

/** HOST and PORT of the environment win over the file. Throws ConfigError if PORT is no port. */
export function listenAddress (config: GatewayConfig, env: Environment): ListenAddress {
  const problems = portProblems(env)
  if (problems.length > 0) throw new ConfigError(problems)
  const port = env['PORT'] ?? ''
  return {
    host: env['HOST'] || config.listen?.host || '127.0.0.1',
    port: port === '' ? config.listen?.port ?? 8080 : Number(port),
  }
}

/** Where the state is kept: in lmdb below the working folder if the file does not say. */
export function stateConfig (config: GatewayConfig): StateConfig {
  return config.state ?? { engine: 'lmdb' }
}

/** Folder of this host's usage ledger. */
export function ledgerPath (config: GatewayConfig): string {
  return ledgerFolder(stateConfig(config))
}

/** Number of processes that serve: `listen.workers`, or one per core. */
export function workersOf ({ listen: { workers = 1 } = {} }: GatewayConfig): number {
  return workers === 'auto' ? availableParallelism() : workers
}

/** How long running requests may continue at the end, in milliseconds. */
export function graceOf ({ listen: { shutdownGraceMs = 25_000 } = {} }: GatewayConfig): number {
  return shutdownGraceMs
}
