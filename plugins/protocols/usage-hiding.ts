/**
 * What of a request would have a reply of Google's hide its usage, which may stand behind the address of any protocol. With `$`, too.
 * https://cloud.google.com/apis/docs/system-parameters
 */
export const usageHiding: {
  /** Query parameters, and the values of each that do not. */
  readonly parameters: ReadonlyMap<string, readonly string[]>
  /** Headers, and the values that do. */
  readonly headers: ReadonlyMap<string, RegExp>
} = {
  parameters: new Map([['fields', []], ['callback', []], ['alt', ['sse', 'json', 'json;enum-encoding=int']]]),
  headers: new Map([['x-goog-fieldmask', /./], ['x-goog-encode-response-if-executable', /./], ['accept', /proto/i]]),
}
