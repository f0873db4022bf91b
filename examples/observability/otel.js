/**
 * Traces and metrics over OTLP/HTTP: `node --import ./otel.js app.js`. Endpoint: OTEL_EXPORTER_OTLP_ENDPOINT, name: OTEL_SERVICE_NAME.
 */
import { diag, DiagConsoleLogger, DiagLogLevel, metrics } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { defaultResource, detectResources, envDetector, resourceFromAttributes, serviceInstanceIdDetector } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

if (process.env.OTEL_SDK_DISABLED?.toLowerCase() !== 'true') start()

function start () {
  // An SDK tells failed exports to this logger alone, and has none by default.
  diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.ERROR)

  // Each process counts by itself: without an id of its own, a store takes two of them for one counter that goes up and down.
  const resource = defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'llm-gateway' }))
    .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }))

  const { OTEL_METRIC_EXPORT_INTERVAL = '15000' } = process.env
  const exportIntervalMillis = Number(OTEL_METRIC_EXPORT_INTERVAL)

  const meters = new MeterProvider({
    resource,
    readers: [new PeriodicExportingMetricReader({
      // Half the time: while one export follows another, a process that is to end has always something to do, and does not.
      exporter: new OTLPMetricExporter({ timeoutMillis: exportIntervalMillis / 2 }),
      exportIntervalMillis,
      exportTimeoutMillis: exportIntervalMillis,
    })],
  })
  metrics.setGlobalMeterProvider(meters)

  const tracers = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] })
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
}
