/**
 * Returns a check whether a name matches a pattern in which `*` stands for any run of characters, including none; no other character is
 * special. Each character is read once: a regular expression starts again at each position for each `*`, and blocked the process for
 * minutes on a name that a caller made up.
 */
export function globOf (pattern: string): (name: string) => boolean {
  const [first = '', ...middle] = pattern.split('*')
  const [last = ''] = middle.splice(-1)
  return (name) => {
    let end = first.length
    for (const part of middle) {
      const at = name.indexOf(part, end)
      if (at < 0) return false
      end = at + part.length
    }
    return name.startsWith(first) && name.length >= end + last.length && name.endsWith(last)
  }
}

/** Matches names against any of the patterns; `*` is any part of a name, also an empty one. */
export function compileGlobs (patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const open = patterns.filter((pattern) => pattern.includes('*')).map(globOf)
  return (name) => exact.has(name) || open.some((fits) => fits(name))
}
