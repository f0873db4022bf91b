/**
 * What the start refuses, the compiler refuses too: `npm run types` fails where one of these is taken, and where one of those
 * beside them is not.
 */
import type { GroupOptions, KeyOptions, LlmGatewayOptions, ModelGateway, ModelRequest } from '../../plugins/index.js'
import type { StateConfig } from '../../plugins/state/index.js'

export const groups: GroupOptions[] = [
  { protocols: ['messages', 'chat_completions'], upstream: { messages: 'main' } },
  // @ts-expect-error: a protocol that there is not
  { protocols: ['mesages'] },
  // @ts-expect-error: an upstream for a protocol that there is not
  { protocols: ['messages'], upstream: { mesages: 'main' } },
  // @ts-expect-error: a misspelled option would leave the group open
  { protocols: ['messages'], thirdparty: false },
]

export const keys: KeyOptions[] = [
  { id: 'a', group: 'g', secret: process.env['KEY'] },
  { id: 'b', group: 'g', hash: 'sha256:00' },
  // @ts-expect-error: a secret beside its hash
  { id: 'c', group: 'g', secret: 's', hash: 'sha256:00' },
  // @ts-expect-error: neither
  { id: 'd', group: 'g' },
]

export const states: StateConfig[] = [
  { engine: 'memory' },
  { engine: 'lmdb', path: './data' },
  { engine: 'redis', url: 'redis://127.0.0.1' },
  // @ts-expect-error: an engine that needs its address
  { engine: 'redis' },
  // @ts-expect-error: an address that nobody reads
  { engine: 'lmdb', url: 'redis://127.0.0.1' },
]

export const options: LlmGatewayOptions[] = [
  { groups: {}, metrics: false },
  // @ts-expect-error: groups are required
  {},
  // @ts-expect-error: an option that there is not
  { groups: {}, gruops: {} },
  // @ts-expect-error: it may be left out, and not be switched on by a word
  { groups: {}, log: 'on' },
]

export function host (request: ModelRequest, gateway: ModelGateway): void {
  // @ts-expect-error: what a host reads it cannot write
  request.model = 'another'
  // @ts-expect-error: nor what is in it
  if (request.usage !== null) request.usage.input = 0
  // @ts-expect-error: what the plugins share is not the host's
  gateway.settlement.add('log', () => {})
}

/** What `docs/drop-in.md` advises leads with our own words. */
export const satisfied = {
  groups: {},
  // @ts-expect-error: told at the option, not by overloads of `register`
  gruops: {},
} satisfies LlmGatewayOptions
