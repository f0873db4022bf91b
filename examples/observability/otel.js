/** Traces and metrics over OTLP/HTTP: `node --import ./otel.js app.js`. Endpoint: OTEL_EXPORTER_OTLP_ENDPOINT. */
import { metrics } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

const { OTEL_METRIC_EXPORT_INTERVAL = '15000' } = process.env
const exportIntervalMillis = Number(OTEL_METRIC_EXPORT_INTERVAL)

const meters = new MeterProvider({
  readers: [new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(),
    exportIntervalMillis,
    exportTimeoutMillis: exportIntervalMillis,
  })],
})
metrics.setGlobalMeterProvider(meters)

const tracers = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
tracers.register()

registerInstrumentations({
  instrumentations: [
    // A key in a caller's URL must not become an attribute.
    new HttpInstrumentation({ redactedQueryParamsServer: ['key'] }),
    new UndiciInstrumentation(),
  ],
})

// What an app that closes has not sent yet.
process.once('beforeExit', async () => {
  await Promise.allSettled([meters.shutdown(), tracers.shutdown()])
})
