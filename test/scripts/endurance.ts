/**
 * The long runs of `test/endurance/`, with real gateways, a real Redis and real signals. Each prints its figures as JSON, and
 * exits with 1 where a rule was broken or a time was missed:
 *
 *     npm run build
 *     node --import=@tapjs/typescript/import test/scripts/endurance.ts NAME [{"option": number}]
 */
import { argv, exit, stderr, stdout } from 'node:process'
import { fiftyCalls } from '../endurance/fifty-calls.js'
import { ledgerKills } from '../endurance/ledger-kills.js'
import { lmdbKills } from '../endurance/lmdb-kills.js'
import type { Report } from '../endurance/processes.js'
import { reconciliation } from '../endurance/reconciliation.js'
import { storeHang } from '../endurance/store-hang.js'
import { storeOutage } from '../endurance/store-outage.js'

function run<T extends object> (run: (options: T) => Promise<Report>, defaults: T): (given: object) => Promise<Report> {
  return async (given) => await run({ ...defaults, ...given })
}

const runs = new Map(Object.entries({
  'fifty-calls-redis': run(fiftyCalls, { engine: 'redis', calls: 50, requests: 2_000, processes: 3 }),
  'fifty-calls-lmdb': run(fiftyCalls, { engine: 'lmdb', calls: 50, requests: 2_000, processes: 3 }),
  'ledger-kills': run(ledgerKills, { rounds: 50, requests: 10_000, holdTtlMs: 5_000 }),
  'lmdb-kills': run(lmdbKills, { kills: 1_000 }),
  'store-outage': run(storeOutage, { processes: 3, awayMs: 10_000, everyMs: 20, commandTimeoutMs: 50 }),
  'store-hang': run(storeHang, { processes: 3, hangsMs: 10_000, everyMs: 20, commandTimeoutMs: 50 }),
  reconciliation: run(reconciliation, { requests: 20_000, atOnce: 32 }),
}))

const [, , name = '', options = '{}'] = argv
const found = runs.get(name)
if (found === undefined) {
  stderr.write(`NAME is one of ${[...runs.keys()].join(', ')}\n`)
  exit(2)
}
const { violations, slow, ...figures } = await found(JSON.parse(options))
stdout.write(`${JSON.stringify({ ...figures, violations: violations.slice(0, 20), slow: slow.slice(0, 20) }, null, 1)}\n`)
exit(violations.length + slow.length > 0 ? 1 : 0)
