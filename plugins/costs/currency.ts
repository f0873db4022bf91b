const known: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))

/** Whether it is a code of ISO 4217. */
export function isCurrency (value: unknown): value is string {
  return typeof value === 'string' && known.has(value)
}
