import { gatewayError, type GatewayError } from '../core/errors/gateway-error.js'
import { givenUpstream } from '../core/upstream/given-upstream.js'
import { compileGlobs } from '../core/config/glob.js'
import { lastText } from '../core/body/json-text.js'
import type { ModelCall } from '../core/call/model-call.js'
import type { Group } from '../core/types.js'
import type { Destination, Upstream } from '../core/upstream/upstream.js'

interface Route {
  readonly takes: (model: string) => boolean
  readonly destination: Destination
}

/** Where the requests of one group go. */
interface Ways {
  readonly routes: readonly Route[]
  /** Results for models that were asked for. Cleared when full, because callers can invent names. */
  readonly known: Map<string, Destination | null>
  any: Destination | null
}

const rememberedModels = 256

/** Makes one destination of several upstreams, for what any of them may have; `first` are asked before the others. */
type Unite = (first: readonly Upstream[], others: readonly Upstream[]) => Destination

/** Finds where a request goes, by its group and its model. */
export class Router {
  readonly #destinations: ReadonlyMap<string, Destination>
  readonly #ways = new WeakMap<Group, Ways>()
  readonly #unite: Unite

  constructor (destinations: ReadonlyMap<string, Destination>, unite: Unite) {
    this.#destinations = destinations
    this.#unite = unite
  }

  /** Null if no route and no upstream of the group takes it. */
  find (llm: ModelCall): Destination | null {
    const { group } = llm.auth
    if (group === null) return this.#only()
    const ways = this.#waysOf(group)
    const isModelless = llm.model === null && llm.endpoint.modelField === null
    if (ways !== null && isModelless && llm.endpoint.boundIdField !== null) return this.#anyOf(ways, this.#unrouted(llm, group))
    const routed = ways === null ? null : byModel(ways, modelOf(llm))
    return routed ?? this.#unrouted(llm, group) ?? (isModelless ? ways?.routes[0]?.destination ?? null : null)
  }

  /** False if no route of the group takes the model and there is nowhere else to go. */
  takes (group: Group, model: string, llm: ModelCall): boolean {
    const ways = this.#waysOf(group)
    return ways === null || byModel(ways, model) !== null || this.#unrouted(llm, group) !== null
  }

  /** The refusal of a request that no route takes; null if one does, or the group has no routes. */
  refusal (llm: ModelCall): GatewayError | null {
    const { auth: { group }, endpoint } = llm
    if (group === null || this.#waysOf(group) === null || this.find(llm) !== null) return null
    return gatewayError(modelOf(llm) === null ? 'model_required' : 'model_not_found', {}, { param: endpoint.modelField })
  }

  #unrouted (llm: ModelCall, group: Group): Destination | null {
    if (group.upstream !== null) return this.#named(givenUpstream(llm) ?? '')
    return this.#waysOf(group) === null ? this.#only() : null
  }

  /** For what was made with a model but is asked for without one: any upstream of the group may have it. */
  #anyOf (ways: Ways, preferred: Destination | null): Destination {
    const others = ways.routes.flatMap(({ destination }) => destination.upstreams)
    ways.any ??= preferred === null ? this.#unite(others, []) : this.#unite(preferred.upstreams, others)
    return ways.any
  }

  #named (name: string): Destination | null {
    return this.#destinations.get(name) ?? null
  }

  #only (): Destination | null {
    const [only = null, ...others] = this.#destinations.values()
    return others.length === 0 ? only : null
  }

  /** Null for a group without routes. */
  #waysOf (group: Group): Ways | null {
    if (group.routes === undefined || group.routes.length === 0) return null
    const known = this.#ways.get(group)
    if (known !== undefined) return known
    const routes = group.routes.flatMap(({ models, upstream }) => {
      const destination = this.#named(upstream)
      return destination === null ? [] : [{ takes: compileGlobs(models), destination }]
    })
    const ways: Ways = { routes, known: new Map(), any: null }
    this.#ways.set(group, ways)
    return ways
  }
}

function byModel ({ routes, known }: Ways, model: string | null): Destination | null {
  if (model === null) return null
  const before = known.get(model)
  if (before !== undefined) return before
  const found = routes.find(({ takes }) => takes(model))?.destination ?? null
  if (known.size >= rememberedModels) known.clear()
  known.set(model, found)
  return found
}

/** If no plugin read the body, its model is looked for here. */
function modelOf ({ model, body: { bytes }, endpoint }: ModelCall): string | null {
  if (model !== null || bytes === null || endpoint.modelField === null) return model
  return lastText(bytes, endpoint.modelField)
}
