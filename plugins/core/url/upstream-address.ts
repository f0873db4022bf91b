import { createResolve } from './resolve.js'

const resolve = createResolve('')

/** What is wrong with the base address of an upstream, in words that follow its name; null for nothing. */
export function addressProblem (text: unknown): string | null {
  if (typeof text !== 'string' || !URL.canParse(text)) return 'is not an address such as https://api.example.com'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
  if (url.username !== '' || url.password !== '') return 'must not hold a name or password'
  if (url.search !== '' || url.hash !== '') return 'must not hold a query or fragment'
  const [fromVersion = ''] = /\/v1[a-z]*\/.*$/.exec(url.pathname) ?? []
  return resolve('POST', fromVersion, {})?.kind === 'endpoint' ? 'must be the base address, without the path of an endpoint' : null
}
