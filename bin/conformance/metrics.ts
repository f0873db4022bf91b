/**
 * Token sums in any gateway's Prometheus text: the sum of each counter with tokens in its name, and the same by direction if a label or the
 * name states one. Nothing is assumed about names.
 */
export type TokenSums = ReadonlyMap<string, number>

const sample = /^([a-zA-Z_:][\w:]*)(\{.*\})?\s+(\S+)/
const directions: ReadonlyArray<readonly [name: string, pattern: RegExp]> = [
  ['input', /input|prompt/],
  // `completions` is an endpoint.
  ['output', /output|completion(?!s)/],
]

/** Sums in the text of one scrape. */
export function tokenSums (text: string): TokenSums {
  const sums = new Map<string, number>()
  for (const line of text.split('\n')) {
    const [, name = '', labels = '', value = ''] = sample.exec(line) ?? []
    if (!/token/i.test(name) || /_(bucket|count|created)$/.test(name)) continue
    add(sums, name, Number(value))
    for (const [direction, pattern] of directions) {
      if (pattern.test(name + labels)) add(sums, `${name} ${direction}`, Number(value))
    }
  }
  return sums
}

function add (sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value)
}

/** By how much each sum grew; unchanged ones are left out. */
export function growth (before: TokenSums, after: TokenSums): TokenSums {
  const grown = [...after].map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const)
  return new Map(grown.filter(([, value]) => value !== 0))
}

/** Whether some counter grew by exactly `input + output`, or one by each. */
export function grewBy (grown: TokenSums, input: number, output: number): boolean {
  const values = new Set(grown.values())
  return values.has(input + output) || (values.has(input) && values.has(output))
}

export async function scrape (url: string, signal: AbortSignal): Promise<TokenSums> {
  return tokenSums(await (await fetch(url, { signal })).text())
}
