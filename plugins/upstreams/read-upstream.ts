import { checkChoice, checkNames, checkOptions, checkWholeName, missingText, OptionError } from '../core/config/options.js'
import type { Header, Secret, Upstream } from '../core/upstream/upstream.js'
import { lengthBeforeVersions } from '../core/url/segments.js'
import { addressProblem } from '../core/url/upstream-address.js'
import { credentialHeaders, protocolNames } from '../protocols/index.js'
import type { UpstreamOptions } from './options.js'
import { fileSecret, fixedSecret, functionSecret, isSecret } from './secret.js'

const upstreamChecks = {
  anything: ['url', 'path', 'credential', 'priceFactor', 'protocols'],
  'an object': ['query', 'headers', 'models'],
  'a string': ['credentialHeader', 'account'],
}

/** Headers that the transport sets itself, or that belong to one connection (RFC 9110 7.6.1). */
const fixedHeaders: ReadonlySet<string> = new Set([
  'host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te', 'trailer', 'expect', 'proxy-connection',
])

const token = /^[!#$%&'*+.^_`|~\w-]+$/

/** Throws `LLM_GATEWAY_OPTION` naming the field. */
export function readUpstreams (options: Readonly<Record<string, UpstreamOptions>>): Map<string, Upstream> {
  return new Map(Object.entries(options).map(([name, upstream]) => [name, readUpstream(name, upstream)]))
}

function readUpstream (name: string, options: UpstreamOptions): Upstream {
  const at = `upstreams.${name}`
  // By name, too: a misspelled credential would send none.
  checkOptions(at, options, upstreamChecks)
  checkChoice(`${at}.path`, options.path, ['canonical', 'verbatim'])
  const { url, path = 'canonical', query = {}, headers = {}, credentialHeader, models = {}, account = name } = options
  const problem = missingText(url) ?? addressProblem(url)
  if (problem !== null) throw new OptionError(`${at}.url`, problem)
  const { origin, host, pathname } = new URL(url)
  return {
    name,
    origin,
    host,
    basePath: basePath(pathname, path),
    verbatim: path === 'verbatim',
    query: readQuery(`${at}.query`, query),
    queryNames: new Set(Object.keys(query).map((name) => name.toLowerCase())),
    headers: readHeaders(`${at}.headers`, headers),
    credentialHeader: credentialHeader === undefined ? null : readHeaderName(`${at}.credentialHeader`, credentialHeader),
    secret: readSecret(`${at}.credential`, options),
    forwards: options.credential === 'forward',
    models: readModels(`${at}.models`, models),
    account,
    protocols: readProtocols(`${at}.protocols`, options.protocols),
  }
}

function basePath (pathname: string, path: string): string {
  const base = pathname.replaceAll('%7Bmodel%7D', '{model}').replace(/\/+$/, '')
  return path === 'verbatim' ? base : base.slice(0, lengthBeforeVersions(base))
}

function readQuery (at: string, query: Readonly<Record<string, unknown>>): string {
  return Object.entries(query).map(([name, value]) => {
    if (typeof value !== 'string' && typeof value !== 'number') throw new OptionError(`${at}.${name}`, 'must be a text or a number')
    return `${encodeURIComponent(name)}=${encodeURIComponent(value)}`
  }).join('&')
}

function readHeaders (at: string, headers: Readonly<Record<string, unknown>>): Header[] {
  return Object.entries(headers).map(([given, value]) => {
    const name = readHeaderName(`${at}.${given}`, given)
    if (credentialHeaders.includes(name)) {
      throw new OptionError(`${at}.${given}`, 'is for a credential: use credential, and credentialHeader')
    }
    if (typeof value !== 'string' || !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
      throw new OptionError(`${at}.${given}`, 'must be visible ASCII, without blanks at its ends')
    }
    return [name, value]
  })
}

function readHeaderName (at: string, given: string): string {
  const name = given.toLowerCase()
  if (!token.test(name)) throw new OptionError(at, 'is not the name of a header')
  if (fixedHeaders.has(name)) throw new OptionError(at, 'is a header of the connection, which nobody may set')
  return name
}

function readSecret (at: string, options: UpstreamOptions): Secret {
  const { credential } = options
  if (!('credential' in options) || credential === 'forward') return fixedSecret(null)
  if (typeof credential === 'function') return functionSecret(credential)
  if (typeof credential === 'object' && credential !== null) {
    checkOptions(at, credential, { 'a string': ['file'] })
    if (credential.file === undefined) throw new OptionError(`${at}.file`, 'is required')
    return fileSecret(credential.file)
  }
  const missing = missingText(credential)
  if (missing !== null || !isSecret(credential)) throw new OptionError(at, missing ?? 'must be visible ASCII without blanks')
  return fixedSecret(credential)
}

function readModels (at: string, models: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  for (const [ours, theirs] of Object.entries(models)) {
    checkWholeName(`${at}.${ours}`, ours)
    if (typeof theirs !== 'string' || theirs === '') throw new OptionError(`${at}.${ours}`, 'must be the name of a model')
    names.set(ours, theirs)
  }
  return names
}

function readProtocols (at: string, protocols: unknown): ReadonlySet<string> | null {
  if (protocols === undefined) return null
  if (!Array.isArray(protocols) || protocols.length === 0) throw new OptionError(at, 'must be a list of protocols')
  checkNames(at, protocols, protocolNames)
  return new Set(protocols.map(String))
}
