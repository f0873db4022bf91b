/** Says what is wrong with an upstream, for its operator. Never shows its credential or anything of a body. */

/** Reasons for a missing reply, each with its error codes. */
const reasons: ReadonlyArray<readonly [words: string, ...codes: string[]]> = [
  ['there is no host of this name', 'ENOTFOUND'],
  ['the name server does not answer', 'EAI_AGAIN'],
  ['nobody listens at this address', 'ECONNREFUSED'],
  ['no way leads to this address', 'EHOSTUNREACH', 'ENETUNREACH'],
  ['no connection: a firewall may be between, or a proxy be needed', 'ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT'],
  ['connected, and no reply in time', 'UND_ERR_HEADERS_TIMEOUT'],
  [
    'the connection was closed without a reply: it may want https:// in place of http://, or the other way round',
    'ECONNRESET', 'UND_ERR_SOCKET',
  ],
  [
    'it does not speak TLS here: http:// in place of https:// may be right',
    'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG', 'EPROTO',
  ],
  ['its TLS certificate has expired', 'CERT_HAS_EXPIRED'],
  ['its TLS certificate is that of another name', 'ERR_TLS_CERT_ALTNAME_INVALID'],
]

const unknownAuthority = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_)/

export function failureWords (code: string): string {
  if (unknownAuthority.test(code)) {
    return 'its TLS certificate is of an authority that is not known here: NODE_EXTRA_CA_CERTS names a file of more'
  }
  const [words = `no reply (${code})`] = reasons.find(([, ...codes]) => codes.includes(code)) ?? []
  return words
}

export interface Answer {
  readonly status: number
  readonly contentType: string
  /** Where it redirects to. */
  readonly location: string
}

/** What a reply shows to be wrong with key or path; null for nothing. */
export function answerWords ({ status, contentType, location }: Answer): string | null {
  if (status === 401 || status === 403) return `refuses the credential (${status})`
  if (status >= 300 && status < 400) {
    return `leads on to ${originOf(location)} (${status}): redirects are not followed, so give its own address`
  }
  if (status === 404 || status === 405) return `has nothing at this path (${status}): url or path is wrong, or it has no list of models`
  if (status === 429) return null
  if (status >= 500) return `fails itself (${status})`
  if (status >= 400) return `refuses the request (${status})`
  return /json/.test(contentType)
    ? null
    : `answers with ${contentType === '' ? 'no type of content' : contentType.replace(/;.*/s, '')} in place of JSON: url is not that ` +
      'of an API'
}

function originOf (location: string): string {
  return URL.canParse(location) ? new URL(location).origin : 'another address'
}
