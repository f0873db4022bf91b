const none: readonly string[] = []
const keptAlive: readonly string[] = ['keep-alive']

/** The names that a `Connection` header lists, in lower case. Those headers are not forwarded (RFC 9110 7.6.1). */
export function listedIn (connection: string | string[] | undefined): readonly string[] {
  if (connection === undefined) return none
  // The most common value.
  return connection === 'keep-alive' ? keptAlive : String(connection).toLowerCase().split(/[\s,]+/)
}
