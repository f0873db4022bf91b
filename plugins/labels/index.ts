import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { joinGateway } from '../core/gateway.js'
import { gatewayPlugin } from '../core/gateway-plugin.js'
import { identifyFirst } from '../core/call/identify.js'
import { readLabels } from '../core/config/labels.js'
import { modelCallOf } from '../core/call/model-call.js'
import { checkOptions, OptionError } from '../core/config/options.js'
import { credentialHeaders, families, frontHeaders, modelHeaders } from '../protocols/index.js'

export interface LabelsOptions {
  /**
   * The header with a request's labels, such as `x-llm-labels: team=search,app=shop`.
   * @defaultValue none is read
   */
  header?: string
}

/** Headers that say something else already: without them a request would be another one. */
const others = [
  ...credentialHeaders, ...modelHeaders, ...Object.values(families).map(({ versionHeader }) => versionHeader?.name),
]
const standard = /^(?:accept|connection$|content-|expect$|host$|origin$|te$|trace(?:parent|state)$|trailer$|transfer-|upgrade|user-agent$)/

async function registerLabels (app: FastifyInstance, options: LabelsOptions): Promise<void> {
  checkOptions('labels', options, { 'a string': ['header'] })
  const header = options.header?.toLowerCase()
  if (header === undefined) return
  if (!/^[a-z0-9-]+$/.test(header) || others.includes(header) || standard.test(header) || frontHeaders.test(header)) {
    throw new OptionError('labels.header', 'must be the name of a header of its own')
  }
  identifyFirst(app, joinGateway(app))
  app.addHook('onRequest', function llmGatewayLabels (request, _reply, done) {
    const llm = modelCallOf(request)
    const given = request.raw.headers[header]
    if (llm !== null && given !== undefined) {
      llm.callerLabels = readLabels(decoded(String(given)))
      Reflect.deleteProperty(request.raw.headers, header)
    }
    done()
  })
}

/** Node reads each byte of a header as a Latin-1 character. Most clients that send others than ASCII send UTF-8. */
function decoded (text: string): string {
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) && bytes.toString('latin1') === text ? bytes.toString() : text
}

/** Reads labels that callers give their requests in a header. The header is not sent upstream. */
export const labels: FastifyPluginAsync<LabelsOptions> = gatewayPlugin('labels', registerLabels)
