/**
 * Whether a name fits a pattern with a `*`, which is any run of characters, also none; no other sign has a meaning. Each character is
 * looked at once: an expression begins anew at each place for each `*`, and held the process for minutes over a name that a caller made up.
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
