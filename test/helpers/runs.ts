import { env } from 'node:process'

/** How often a property is tried: `everyDay`, or `RUNS` where a long run asks for more. */
export function runs (everyDay: number): number {
  return Number(env['RUNS'] ?? everyDay)
}
