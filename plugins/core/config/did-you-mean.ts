/** Suggests a name that was probably meant, for messages about an unknown one. */

/** `; did you mean chat?`, or an empty text if no name is similar. */
export function didYouMean (text: string, names: readonly string[]): string {
  const [best] = names
    .map((name) => ({ name, away: distance(text.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, away }) => away <= Math.floor(Math.max(name.length, text.length) / 3))
    .sort((a, b) => a.away - b.away)
  return best === undefined ? '' : `; did you mean ${best.name}?`
}

/** Letters inserted, left out, replaced, or swapped with the next one: the optimal string alignment distance. */
function distance (from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1]
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      next.push(Math.min(
        Number(last[j]) + 1,
        Number(next[j - 1]) + 1,
        Number(last[j - 1]) + (same ? 0 : 1),
        swapped ? Number(before[j - 2]) + 1 : Infinity))
    }
    before = last
    last = next
  }
  return Number(last[to.length])
}
