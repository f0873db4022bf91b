import type { EndpointOf, Family, Protocol, ProtocolExample, TellStreamError } from './types.js'
import type { Simulation } from './simulate-text.js'
import type { TextRules } from './text-rules.js'

/** The fields of an endpoint's own. `path` is the tail as documented. */
type GivenEndpoint<Id extends string = string, Schema extends string = string> =
  & { readonly id: Id, readonly path: string, readonly schema?: Schema }
  & Partial<Omit<EndpointOf, 'id' | 'schema' | 'tail' | 'family' | 'protocol' | 'allowedBy'>>

/** What the endpoints of a protocol share. */
interface Shared<Label extends string, Name extends string> {
  readonly protocol: Label
  readonly family: Family
  readonly operation: string
  readonly allowedBy: readonly Name[]
  readonly text?: TextRules
  readonly boundIdField?: string
  readonly streamError?: TellStreamError
}

interface GivenProtocol<Name extends string, Id extends string, Schema extends string>
  extends Omit<Shared<Name, Name>, 'protocol' | 'allowedBy'> {
  readonly name: Name
  readonly endpoints: ReadonlyArray<GivenEndpoint<Id, Schema>>
  readonly example: ProtocolExample
  readonly simulations: Readonly<Record<string, Simulation>>
}

/**
 * Where aggregators read models from that replace a failing one (https://docs.litellm.ai/docs/proxy/reliability and `clientside_auth`
 * there, https://vercel.com/docs/ai-gateway/models-and-providers/model-fallbacks).
 */
export const substituteModels: readonly string[] = [
  'models', 'fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks', 'providerOptions.gateway.models',
  'user_config.model_list.*.litellm_params.model',
]

/** Names of web search tools at their providers, and at OpenRouter whichever protocol it is asked in. */
export const webSearchNames = ['web_search', 'openrouter:web_search'] as const

/**
 * Where aggregators read further models from: the substitutes, and models of their tools and plugins, which they ask by themselves
 * (https://openrouter.ai/docs/guides/features/server-tools/advisor, https://console.groq.com/docs/api-reference,
 * https://docs.nano-gpt.com/api-reference/miscellaneous/advisor).
 */
export const aggregatorModels: readonly string[] = [
  ...substituteModels, 'tools.*.model', 'compound_custom.models', 'advisor.model',
  ...['tools.*.parameters', 'plugins.*'].flatMap((at) => [`${at}.model`, `${at}.analysis_models`, `${at}.advisors.*.model`]),
]

/**
 * The pattern by which a router finds an endpoint, below a mount prefix: everything from the first variable part on is a wildcard. A model
 * may contain `/` and `:`, and routers limit the length of a named parameter (Fastify: 100 characters), which ids exceed.
 */
export function routePattern ({ family, tail }: Pick<EndpointOf, 'family' | 'tail'>): string {
  return `/${family.prefix}/${tail.join('/').replace(/:.*$/s, '*')}`
}

export function defineProtocol<const Name extends string, const Id extends string, const Schema extends string> (
  given: GivenProtocol<Name, Id, Schema>
): Protocol<Name, Id, Schema> {
  const { name, endpoints, example, simulations, ...shared } = given
  return {
    name,
    family: shared.family,
    endpoints: endpoints.map((own) => defineEndpoint({ protocol: name, allowedBy: [name], ...shared }, own)),
    example,
    simulations,
  }
}

/**
 * Completes an endpoint: first what its protocol shares, then the defaults (POST of JSON, neither streamed nor metered), then its own
 * fields.
 */
export function defineEndpoint<
  const Label extends string, const Name extends string, const Id extends string, const Schema extends string
> (
  shared: Shared<Label, Name>, { path, ...own }: GivenEndpoint<Id, Schema>
): EndpointOf<Label, Name, Id, Schema> {
  return {
    // Written out, so that all endpoints have one shape for V8.
    protocol: shared.protocol,
    family: shared.family,
    operation: shared.operation,
    allowedBy: shared.allowedBy,
    method: 'POST',
    tail: path.split('/'),
    action: null,
    body: 'json',
    schema: null,
    metered: 'no',
    streams: 'never',
    // From one token in 260 bytes (OpenAI's own) to four or five in 280 (Alibaba's).
    streamBytesPerToken: 128,
    modelField: null,
    otherModels: [],
    substitutes: [],
    modelsWithin: null,
    usage: null,
    replays: null,
    text: shared.text ?? null,
    output: null,
    boundIdField: shared.boundIdField ?? null,
    heldConversation: null,
    streamError: shared.streamError ?? shared.family.streamError,
    ...own,
  }
}
