/**
 * What the start refuses, the compiler refuses too: `npm run types` fails where one of these is taken, and where one of those
 * beside them is not.
 */
import type {
  AuthOptions, GroupOptions, KeyOptions, LlmGatewayOptions, ModelGateway, ModelRequest, PoolOptions, PriceOptions, UpstreamOptions,
  ValidationOptions,
} from '../../plugins/index.js'
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

export const prices: PriceOptions[] = [
  { input: 1, input_audio: 2, cache_read: 0.1, cache_read_audio: 0.2, output_video: 3, tools: { cache_read_image: 0.4 } },
  // @ts-expect-error: a kind of content that has no price of its own
  { cache_read_text: 0.1 },
]

export const upstreams: UpstreamOptions[] = [
  { url: 'https://provider.example', protocols: ['messages'] },
  // @ts-expect-error: a protocol that there is not
  { url: 'https://provider.example', protocols: ['mesages'] },
  // @ts-expect-error: an address is required
  { credential: 'forward' },
]

export const pools: PoolOptions[] = [
  { members: ['main', { upstream: 'other', tier: 2 }], retryOn: ['reset', 500, '503'] },
  // @ts-expect-error: a failure that is never sent again
  { members: ['main'], retryOn: [400] },
]

export const auths: AuthOptions[] = [
  { groups: {}, optionalSources: ['api-key'], versions: { anthropic: ['2023-06-01'] } },
  // @ts-expect-error: a source that there is not
  { groups: {}, optionalSources: ['x-api-key'] },
  // @ts-expect-error: a family that there is not
  { groups: {}, versions: { antropic: ['2023-06-01'] } },
]

export const validations: ValidationOptions[] = [
  {
    maxBodyBytesByEndpoint: { 'images.edits': 2, 'generate_content.tuned.countTokens': 1 },
    schemas: { 'chat-completions': {}, chat_completions: 'own.json', 'messages.count_tokens': {} },
  },
  // @ts-expect-error: an endpoint that there is not
  { maxBodyBytesByEndpoint: { 'images.edit': 2 } },
  // @ts-expect-error: a schema that there is not
  { schemas: { 'chat-completion': {} } },
]

/** A host that names its upstreams and pools is told of a name that is none of them. */
export const named: Array<LlmGatewayOptions<'main' | 'other', 'both'>> = [
  {
    upstreams: { main: { url: 'https://a.example' }, other: { url: 'https://b.example' } },
    pools: { both: { members: ['main', { upstream: 'other' }] } },
    groups: {
      one: { protocols: ['messages'], upstream: 'main' },
      each: {
        protocols: ['messages', 'embeddings'],
        upstream: { messages: 'both', embeddings: 'other' },
        routes: [{ models: ['*'], upstream: 'main' }],
      },
    },
  },
  // @ts-expect-error: a name in a map
  { groups: { one: { protocols: ['messages'], upstream: { messages: 'mian' } } } },
  // @ts-expect-error: a name for all protocols
  { groups: { one: { protocols: ['messages'], upstream: 'mian' } } },
  // @ts-expect-error: a name in a route
  { groups: { one: { protocols: ['messages'], routes: [{ models: ['*'], upstream: 'mian' }] } } },
  // @ts-expect-error: a member of a pool
  { groups: {}, pools: { both: { members: ['mian'] } } },
  // @ts-expect-error: an upstream that is named and not there
  { groups: {}, upstreams: { main: { url: 'https://a.example' } } },
]

/** Without pools, the upstreams are all the names. */
export const unpooled: Array<LlmGatewayOptions<'main'>> = [
  { groups: { one: { protocols: ['messages'], upstream: 'main' } } },
  // @ts-expect-error: a name that is none of them
  { groups: { one: { protocols: ['messages'], upstream: 'both' } } },
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
export const told: LlmGatewayOptions = {
  groups: {},
  // @ts-expect-error: told at the option, not by overloads of `register`
  gruops: {},
}
