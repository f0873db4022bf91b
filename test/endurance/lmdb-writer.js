/**
 * Holds, settles and issues keys in lmdb's files without a pause, and notes in descriptor 3 what was acknowledged:
 * `h ID` held, `i ID` a settlement is asked for, `s ID` it was acknowledged, `k ID` a key is issued.
 *
 *     node lmdb-writer.js FOLDER NAME
 */
import { writeSync } from 'node:fs'
import { openState } from '../../dist/plugins/state/index.js'

const [, , path, name] = process.argv
const { balances, keys } = await openState({ engine: 'lmdb', path, holdTtlMs: 24 * 60 * 60_000 })
const note = (what, id) => writeSync(3, `${what} ${id}\n`)
let count = 0

async function write () {
  for (;;) {
    const n = count += 1
    // Some leave a record of what they charged, others nothing at all: both ends of a hold.
    const id = `${name}-${n}-${n % 2 === 0 ? 'late' : 'once'}`
    const keyLimits = { balance: 1e12, concurrency: 1e6 }
    const decision = await balances.hold({ id, group: 'chat', groupLimits: {}, key: 'one', keyLimits, requests: 1, tokens: 100, floor: 1 })
    if (!decision.ok) throw new Error('refused')
    note('h', id)
    if (n % 5 === 0) continue
    note('i', id)
    await balances.settle({ id, group: 'chat', key: 'one', tokens: 7, late: n % 2 === 0 ? ['key'] : [] })
    note('s', id)
    if (n % 64 !== 1) continue
    const digest = Buffer.from(id.padEnd(32, '.')).toString('hex').slice(0, 64)
    await keys.create({ id, digest, group: 'chat', disabled: false, expiresAt: null, limits: {}, label: null, createdAt: 1 })
    note('k', id)
  }
}

await Promise.all(Array.from({ length: 8 }, write))
