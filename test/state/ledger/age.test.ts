import { readdirSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { FileLedger } from '../../../plugins/state/ledger/file-ledger.js'
import { filesBeyond } from '../../../plugins/state/ledger/age.js'
import { record } from '../usage-store.js'

const dayMs = 24 * 60 * 60_000
const file = (day: number): { path: string, startedAt: number, endedAt: number, bytes: number } =>
  ({ path: `${day}`, startedAt: 0, endedAt: day * dayMs, bytes: 0 })
const days = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

const cases: ReadonlyArray<readonly [what: string, ended: readonly number[], now: number, beyond: readonly number[]]> = [
  ['without a pause as old as the clock says', days(100, 150), 150, days(100, 121)],
  ['four a day', days(400, 600).map((quarter) => quarter / 4), 150, days(400, 481).map((quarter) => quarter / 4)],
  ['none at all', [], 150, []],
  ['younger than that', days(121, 150), 150, []],
  ['a clock that is a year ahead makes them a day older', days(100, 150), 515, days(100, 121)],
  ['and no older by what was written by it', [...days(100, 150), 514, 515, 515], 515, days(100, 122)],
  ['written by a clock that was a year ahead, and is right again', [...days(100, 150), 515], 150, days(100, 121)],
  ['the same, and written just now', [...days(100, 151), 515], 150, days(100, 121)],
  ['written for weeks by such a clock', [...days(100, 150), ...days(500, 541)], 150, [...days(100, 121), ...days(500, 511)]],
  ['a clock that is set back to its first day', days(100, 150), 0, days(100, 120)],
  ['nobody asked for a month: it counts as a day', days(100, 110), 140, []],
]

for (const [what, ended, now, beyond] of cases) {
  t.test(`files kept for 30 days: ${what}`, async (t) => {
    const found = filesBeyond(30 * dayMs, ended.map(file), now * dayMs, dayMs)
    t.same(found.map(({ endedAt }) => endedAt / dayMs).sort((one, other) => one - other), beyond)
  })
}

t.test('a process, and others after it, whose clock is a year ahead delete no record of last week', async (t) => {
  const path = t.testdir({})
  let now = Date.now()
  const open = (): FileLedger => new FileLedger(path, { keepMs: 7 * dayMs }, () => now)
  const running = open()
  await running.append(record({ id: 'before' }))
  now += 365 * dayMs
  for (const ledger of [running, open(), open(), open()]) {
    await ledger.append(record({ time: now }))
    await ledger.close()
  }
  const ids: string[] = []
  for await (const { id } of open().read()) ids.push(id)
  t.equal(ids.includes('before'), true)
  t.equal(readdirSync(path).length, 5)
})

t.test('where a file may hold a week, a week between two files is no pause', async (t) => {
  const path = t.testdir({})
  const start = Date.now()
  let now = start
  const ledger = new FileLedger(path, { maxFileAgeMs: 7 * dayMs, keepMs: 21 * dayMs }, () => now)
  for (const week of [0, 1, 2, 3, 4]) {
    now = start + week * 7 * dayMs
    await ledger.append(record({ time: now }))
    // As the clock of then makes it.
    for (const name of readdirSync(path).slice(-1)) utimesSync(join(path, name), now / 1_000, now / 1_000)
  }
  const times: number[] = []
  for await (const { time } of ledger.read()) times.push(time)
  t.same(times, [2, 3, 4].map((week) => start + week * 7 * dayMs))
  await ledger.close()
})
