/** Balances that are made anew know no more which late charges they have: those of the ledger are not made a second time. */
import fs, { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { endAll } from '../../../plugins/state/ledger/end-all.js'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { openState, type LedgerRecord, type State } from '../../../plugins/state/index.js'
import { noTokens } from '../../metrics/requests.js'

function late (id: string, charged: number): LedgerRecord {
  return {
    id, time: Date.now(), key: 'ci', group: 'chat', protocol: 'responses', model: 'm', outcome: 'ok', charged, late: ['group'], ...noTokens,
  }
}

/** Charges it as a request does whose hold was never made, or one that tells what a response in the background used. */
async function charge ({ ledger, balances }: State, record: LedgerRecord): Promise<void> {
  await ledger.append(record)
  const { id, charged } = record
  await balances.settle({ id, group: 'chat', key: 'ci', tokens: charged, late: ['group'] })
}

for (const [what, file, spent] of [['whose limits were lost', 'limits.mdb', 93], ['that was killed alone', 'none', 93]] as const) {
  t.test(`late charges of a process ${what} are not made again`, async (t) => {
    const path = t.testdir({})
    const killed = await openState({ engine: 'lmdb', path })
    await charge(killed, late('a', 100))
    await charge(killed, late('b:told', -7))
    killed.ledger.noteUnsettled?.()
    await killed.close()
    for (const name of [file, `${file}-lock`]) rmSync(join(path, name), { force: true })

    for (const start of ['next', 'second next']) {
      const state = await openState({ engine: 'lmdb', path })
      await state.recovered
      t.equal((await state.balances.read('chat')).spent, spent, start)
      state.ledger.noteUnsettled?.()
      await state.close()
    }
  })
}

t.test('what a process records after that is charged by the next one if it is killed', async (t) => {
  const path = t.testdir({})
  const killed = await openState({ engine: 'lmdb', path })
  await charge(killed, late('a', 100))
  killed.ledger.noteUnsettled?.()
  await killed.close()
  for (const name of ['limits.mdb', 'limits.mdb-lock']) rmSync(join(path, name))
  const second = await openState({ engine: 'lmdb', path })
  await second.ledger.append(late('b', 5))
  second.ledger.noteUnsettled?.()
  await second.close()
  const third = await openState({ engine: 'lmdb', path })
  t.equal(await third.recovered, 1)
  t.equal((await third.balances.read('chat')).spent, 105)
  await third.close()
})

t.test('a process whose file is marked while it lives is charged what it records after that if it is killed', async (t) => {
  const path = t.testdir({})
  const living = new FileLedger(path)
  await living.append(late('a', 100))
  endAll(path)
  for (const id of ['b', 'c']) await living.append(late(id, 5))
  living.noteUnsettled()
  await living.close()
  const ids: unknown[] = []
  for await (const { id } of new FileLedger(path).unsettled()) ids.push(id)
  t.strictSame(ids, ['b', 'c'])
  endAll(path)
  for await (const { id } of new FileLedger(path).unsettled()) t.fail(`${id} stands before the second mark`)
})

t.test('each file gets one mark, behind a whole line, and stays as old as it was', async (t) => {
  const ended = 'one\nend\n'
  const path = t.testdir({ 'empty.ledger': '', 'ended.ledger': ended, 'whole.ledger': 'one\n', 'cut.ledger': 'one\ntw', other: 'one' })
  mkdirSync(join(path, 'no-file.ledger'))
  for (const name of readdirSync(path)) utimesSync(join(path, name), 1, 1)
  // As Node does with `--permission`. Its own switch is for whole processes.
  t.intercept(fs, 'futimesSync', { value: () => { throw new Error('futimes API is disabled when Permission Model is enabled.') } })
  syncBuiltinESMExports()
  t.teardown(syncBuiltinESMExports)
  endAll(path)
  endAll(path)
  const texts = { 'empty.ledger': 'end\n', 'ended.ledger': ended, 'whole.ledger': ended, 'cut.ledger': 'one\ntw\nend\n', other: 'one' }
  for (const [name, text] of Object.entries(texts)) {
    t.equal(readFileSync(join(path, name), 'utf8'), text)
    t.equal(statSync(join(path, name)).mtimeMs, 1_000)
  }
  endAll(join(path, 'nowhere'))
})
