/** Traces and metrics over OTLP/HTTP: `node --import ./otel.js app.js`. Endpoint: OTEL_EXPORTER_OTLP_ENDPOINT. */
import { metrics } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

const { OTEL_METRIC_EXPORT_INTERVAL = '15000' } = process.env

metrics.setGlobalMeterProvider(new MeterProvider({
  readers: [new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(),
    exportIntervalMillis: Number(OTEL_METRIC_EXPORT_INTERVAL),
    exportTimeoutMillis: Number(OTEL_METRIC_EXPORT_INTERVAL),
  })],
}))

// Add `spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())]` of @opentelemetry/exporter-trace-otlp-http.
new NodeTracerProvider().register()

registerInstrumentations({
  instrumentations: [
    // A key in a caller's URL must not become an attribute.
    new HttpInstrumentation({ redactedQueryParamsServer: ['key'] }),
    new UndiciInstrumentation(),
  ],
})
