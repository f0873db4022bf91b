/**
 * Holds and settles in one budget without a pause until it is spent, and notes in descriptor 3 what was acknowledged:
 * `h ID` held, `i ID` a settlement is asked for, `s ID` it was acknowledged.
 *
 *     node budget-writer.js STATE NAME BUCKET
 */
import { writeSync } from 'node:fs'
import { openState } from '../../dist/plugins/state/index.js'

const [, , config = '', name, bucket = ''] = process.argv
const { balances } = await openState(JSON.parse(config))
const groupBuckets = [JSON.parse(bucket)]
const note = (what, id) => writeSync(3, `${what} ${id}\n`)
let count = 0

async function write () {
  for (;;) {
    const id = `${name}-${count += 1}`
    const decision = await balances.hold({
      id,
      group: 'chat',
      groupLimits: { budgets: [] },
      groupBuckets,
      key: 'one',
      keyLimits: {},
      requests: 1,
      tokens: 0,
      floor: 0,
      cost: 100,
      costFloor: 3,
    })
    if (!decision.ok) throw new Error(`refused: ${decision.limit}`)
    note('h', id)
    if (count % 7 === 0) continue
    note('i', id)
    await balances.settle({ id, group: 'chat', key: 'one', tokens: 0, cost: 40, late: [] })
    note('s', id)
  }
}

await Promise.all(Array.from({ length: 8 }, write))
