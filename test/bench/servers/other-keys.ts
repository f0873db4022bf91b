/** The keys of callers beside the one of the goals, for cost as keys and groups grow. */
export function otherKey (at: number): string {
  return `sk-bench-other-${at}`
}
