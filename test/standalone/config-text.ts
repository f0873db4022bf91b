/** Files of configuration, as text, and what is wrong with them. */
import { ConfigError } from '../../plugins/standalone/config-error.js'
import { parseConfig } from '../../plugins/standalone/config.js'

/** In the form of the hash of a key. */
export const hash = `sha256:${'a'.repeat(64)}`

/** How the file names a variable of the environment. */
export function variable (name: string): string {
  return `\${${name}}`
}

/** The smallest file that is right, with one part replaced. */
export function file (parts: { upstreams?: string, groups?: string, keys?: string, rest?: string } = {}): string {
  return [
    `upstreams: ${parts.upstreams ?? '{ main: { url: "https://models.example", credential: s3cret } }'}`,
    `groups: ${parts.groups ?? '{ chat: { protocols: [chat_completions], upstream: main } }'}`,
    `keys: ${parts.keys ?? '[]'}`,
    parts.rest ?? '',
  ].join('\n')
}

export function problemsOf (text: string, env: Record<string, string> = {}): string[] {
  try {
    parseConfig(text, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}
