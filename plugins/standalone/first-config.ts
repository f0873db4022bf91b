/** The `gateway.yaml` that `llm-gateway init` writes: valid as it is, with a comment on each thing that is usually changed first. */
import { protocolNames } from '../protocols/index.js'
import { providers, type Provider } from '../protocols/providers.js'
import type { Environment } from './config-yaml.js'

interface FirstConfig {
  readonly env: Environment
  /** Path of the schema from the folder of the file. */
  readonly schema: string
  /** SHA-256 of the first key, 64 hex digits. */
  readonly digest: string
  readonly engine: 'lmdb' | 'memory'
}

export function firstConfig ({ env, schema, digest, engine }: FirstConfig): string {
  const found = providers.filter((provider) => variableOf(provider, env) !== undefined)
  return [
    `# yaml-language-server: $schema=${schema}`,
    '#',
    '# With --config and the name of this file, llm-gateway check says what is wrong with it, doctor whether its upstreams answer, start',
    '# runs it, and keys create --group everyone issues more keys. A changed file is read again while the gateway runs.',
    '',
    '# HOST and PORT of the environment win.',
    'listen: { host: 127.0.0.1, port: 8080 }',
    '',
    '# Where requests go. A name in ${} is read from the environment; one that is not set is an error.',
    'upstreams:',
    ...providers.map((provider) => upstreamLine(provider, env)),
    ...found.length === 0
      ? ['  # Answers every protocol inside of the gateway, until one of the lines above is yours.', '  simulated: { simulate: true }']
      : [],
    '',
    '# What the keys of a group share.',
    'groups:',
    '  everyone:',
    `    protocols: [${(found.length === 0 ? protocolNames : found.flatMap(({ protocols }) => protocols)).join(', ')}]`,
    ...upstreamOf(found),
    '    # models: [NAME, NAME]     # default: all',
    '    # limits: { requestsPerMinute: 600, tokensPerMinute: 1000000, concurrency: 50 }',
    '',
    '# The digest of a secret, not the secret.',
    'keys:',
    `  - { id: first, group: everyone, hash: "sha256:${digest}" }`,
    '',
    engine === 'lmdb'
      ? '# Issued keys, balances and the usage ledger: lmdb for one host, redis for many.'
      : '# Issued keys, balances and the usage ledger. Memory forgets them at the end: npm install lmdb, and say { engine: lmdb, path: ' +
        './data }.',
    engine === 'lmdb' ? 'state: { engine: lmdb, path: ./data }' : 'state: { engine: memory }',
    '',
  ].join('\n')
}

function variableOf ({ variables }: Provider, env: Environment): string | undefined {
  return variables.find((name) => (env[name] ?? '') !== '')
}

function upstreamLine (provider: Provider, env: Environment): string {
  const set = variableOf(provider, env)
  const line = `${provider.name}: { url: ${provider.url}, credential: "\${${set ?? provider.variables[0]}}" }`
  return set === undefined ? `  # ${line}` : `  ${line}`
}

function upstreamOf (found: readonly Provider[]): string[] {
  if (found.length < 2) return []
  return ['    upstream:', ...found.flatMap(({ name, protocols }) => protocols.map((protocol) => `      ${protocol}: ${name}`))]
}
