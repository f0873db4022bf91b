/** True for names that one of the patterns stands for; `*` is any part of a name, also an empty one. */
export function compileGlobs (patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const open = patterns.filter((pattern) => pattern.includes('*')).map(toExpression)
  return (name) => exact.has(name) || open.some((expression) => expression.test(name))
}

function toExpression (pattern: string): RegExp {
  const parts = pattern.split(/\*+/).map((part) => part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`, 's')
}
