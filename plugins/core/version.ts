import { createRequire } from 'node:module'

const manifest: unknown = createRequire(import.meta.url)('fastify-llm-gateway/package.json')

export const packageVersion = String(Object(manifest).version)

/** Who tells it, for OpenTelemetry: goes with the version. */
export const scopeName = 'fastify-llm-gateway'
