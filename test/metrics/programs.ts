/** Programs of the Prometheus package. Suites that need one run where it is installed, and say so where it is not. */
import { spawnSync } from 'node:child_process'

function isInstalled (program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** An options object for a tap test: empty, or with the reason to skip. */
export function needs (program: string): { skip?: string } {
  return isInstalled(program) ? {} : { skip: `${program} is not installed` }
}

/** Everything that promtool has to say, and whether it was content. */
export function promtool (args: readonly string[], input = ''): { code: number | null, output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
  return { code: status, output: stdout + stderr }
}
