/** `--micro`: nanoseconds of the parts, and the ratio to what one would write without them. */
import { table } from '../report.js'
import { events, lookups, scanners, validators } from './parts.js'

export async function micro (): Promise<string> {
  const measured = [...await lookups(), ...validators(), ...scanners(), ...events()]
  return table(['part', 'on', 'ns', 'instead', 'ns', 'ratio'], measured.map(({ part, on, ns, instead, insteadNs, ratio }) => [
    part, on, ns.toFixed(0), instead, insteadNs.toFixed(0), ratio.toPrecision(3),
  ]))
}
