import type { MeterProvider } from '@opentelemetry/api'
import { isOtelInUse, otelApi } from '../core/telemetry/otel-api.js'
import type { Recorder } from '../core/recorder.js'
import { packageVersion, scopeName } from '../core/version.js'
import type { ModelCall } from '../core/call/model-call.js'
import { recordCalls, type Semconv } from './otel-genai.js'
import { mirrorFamilies } from './otel-mirror.js'
import type { Family } from './store.js'

export interface OtelRules {
  /** Null: the one registered with the API, now or later. */
  readonly meterProvider: MeterProvider | null
  readonly semconv: Semconv
}

/**
 * The projection to OpenTelemetry. An instrument made before an SDK is registered never has any effect (the API has no proxy for meters),
 * so none is made until there is a real meter; until then each request asks the API once.
 */
export class OtelProjection {
  readonly #families: readonly Family[]
  readonly #rules: OtelRules
  #record: ((llm: ModelCall, model: string) => void) | null = null

  constructor (families: readonly Family[], rules: OtelRules) {
    this.#families = families
    this.#rules = rules
  }

  /** Makes the instruments if an SDK is registered by now. */
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

  /** A recorder that connects with the first request, for an SDK that is registered after the app was ready. */
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
