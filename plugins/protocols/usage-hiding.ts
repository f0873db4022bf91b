/**
 * Request parameters and headers that make a reply of Google, which may be behind the address of any protocol, hide its usage. Also with
 * `$` in front. https://cloud.google.com/apis/docs/system-parameters
 */
export const usageHiding: {
  /** Query parameters, and the values of each that hide nothing. */
  readonly parameters: ReadonlyMap<string, readonly string[]>
  /** Headers, and the values that hide usage. */
  readonly headers: ReadonlyMap<string, RegExp>
} = {
  parameters: new Map([['fields', []], ['callback', []], ['alt', ['sse', 'json', 'json;enum-encoding=int']]]),
  headers: new Map([['x-goog-fieldmask', /./], ['x-goog-encode-response-if-executable', /./], ['accept', /proto/i]]),
}
