import { loadConfig } from '../../plugins/standalone/config.js'
import { examineAll } from '../../plugins/standalone/examine.js'
import { configOption, readArgs } from '../args.js'
import { readCount, type Io } from '../io.js'

/** Sends one cheap request to each upstream. The exit code is 1 if one of them would not serve. */
export async function doctor (file: string, args: string[], io: Io): Promise<number> {
  const { values } = readArgs({ args, options: { ...configOption, 'timeout-ms': { type: 'string' } } })
  const timeoutMs = readCount('--timeout-ms', values['timeout-ms'], 1) ?? 10_000
  const findings = await examineAll(loadConfig(file, io.env), timeoutMs)
  if (findings.length === 0) io.out('every upstream is simulated: there is nobody to ask')
  for (const { upstream, address, ok, words, ms } of findings) {
    io.out(`${ok ? 'ok  ' : 'FAIL'}  ${upstream}  ${address}: ${words}, ${ms} ms`)
  }
  return findings.every(({ ok }) => ok) ? 0 : 1
}
