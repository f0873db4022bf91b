import type { MeterProvider } from '@opentelemetry/api'
import { isOtelInUse, otelApi } from '../core/telemetry/otel-api.js'
import type { Recorder } from '../core/recorder.js'
import type { ModelCall } from '../core/call/model-call.js'
import { recordCalls, type Semconv } from './otel-genai.js'
import { mirrorFamilies } from './otel-mirror.js'
import { packageVersion, type Family } from './store.js'

export interface OtelRules {
  /** Null: whichever is registered with the API, now or later. */
  readonly meterProvider: MeterProvider | null
  readonly semconv: Semconv
}

const scopeName = 'fastify-llm-gateway'

/**
 * The projection to OpenTelemetry. An instrument that is made before an SDK is registered stays without effect for ever
 * (the API has no proxy for meters), so none is made until a real meter is there; until then each
 * request costs one look at the API.
 */
export class OtelProjection {
  readonly #families: readonly Family[]
  readonly #rules: OtelRules
  #record: ((llm: ModelCall, model: string) => void) | null = null

  constructor (families: readonly Family[], rules: OtelRules) {
    this.#families = families
    this.#rules = rules
  }

  /** Makes the instruments where an SDK is there by now. */
  connect (): void {
    const { meterProvider } = this.#rules
    if (this.#record !== null || (meterProvider === null && !isOtelInUse())) return
    const { createNoopMeter, metrics } = otelApi()
    const provider = meterProvider ?? metrics.getMeterProvider()
    const meter = provider.getMeter(scopeName, packageVersion)
    if (meter === createNoopMeter()) return
    mirrorFamilies(provider, meter, this.#families)
    this.#record = recordCalls(meter, this.#rules.semconv)
  }

  settled (llm: ModelCall, model: string): void {
    this.#record?.(llm, model)
  }

  /** A recorder that connects with the first request, should the SDK have come after the app was ready. */
  watch (recorder: Recorder): Recorder {
    return {
      ...recorder,
      started: (llm) => {
        this.connect()
        recorder.started(llm)
      },
    }
  }
}
