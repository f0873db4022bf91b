/** A test of the suite, with its properties tried much more often than every day. */
import { spawn } from 'node:child_process'
import type { Report } from './processes.js'

const root = new URL('../../', import.meta.url).pathname

export async function byTest (file: string, { runs }: { readonly runs: number }): Promise<Report> {
  const args = ['tap', '--disable-coverage', '--timeout=0', '--reporter=tap', file]
  const child = spawn('npx', args, {
    cwd: root, env: { ...process.env, RUNS: String(runs), TAP: '0' }, stdio: ['ignore', 'pipe', 'inherit'],
  })
  const failed: string[] = []
  let passed = 0
  child.stdout.setEncoding('utf8')
  let rest = ''
  child.stdout.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (/^ *not ok/.test(line)) failed.push(line.trim())
      else if (/^ *ok/.test(line)) passed += 1
    }
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  if (code !== 0 && failed.length === 0) failed.push(`the runner ended with ${code}`)
  return { violations: failed, slow: [], runs, passed }
}
