import t from 'tap'
import { Backlog } from '../../plugins/limits/backlog.js'
import { Outbox } from '../../plugins/limits/outbox.js'
import { watchLedger } from '../../plugins/limits/watch-ledger.js'
import { StoreDownError } from '../../plugins/core/balances/store-down.js'
import type { Ledger } from '../../plugins/core/money/ledger.js'
import { silentRecorder } from '../../plugins/core/recorder.js'
import { memoryLedger } from '../../plugins/state/ledger/memory-ledger.js'
import { memoryBalances, type Balances, type Settlement } from '../../plugins/state/index.js'

t.test('a settlement that the store throws at waits like one that fails', async (t) => {
  const balances = memoryBalances()
  let throws = true
  const settle: Balances['settle'] = (settlement) => {
    if (throws) throw new Error('no')
    return balances.settle(settlement)
  }
  const backlog = new Backlog({ ...balances, settle }, { maxWaiting: 10, retryMs: 60_000 })
  const outbox = new Outbox(backlog, { onLost () {} })
  outbox.send({ id: 'a', group: 'g', key: 'k', tokens: 1, late: [] })
  await new Promise(setImmediate)
  t.equal(backlog.empty, false)
  throws = false
  await outbox.close()
  t.equal(backlog.empty, true)
})

t.test('what waits when its app ends goes on with another app of the same store, and is lost with the last one', async (t) => {
  let away = true
  const settle = async (): Promise<void> => { if (away) throw new StoreDownError('does not answer') }
  const backlog = new Backlog({ ...memoryBalances(), settle }, { maxWaiting: 9, retryMs: 60_000 })
  const heard: string[] = []
  const open = (name: string) => new Outbox(backlog, {
    onLost: ({ id }) => heard.push(`${name} lost ${id}`), onSettled: ({ id }) => heard.push(`${name} settled ${id}`),
  })
  const settlement = (id: string): Settlement => ({ id, group: 'g', key: 'k', tokens: 1, late: [] })
  const [first, second] = [open('first'), open('second')]
  first.send(settlement('a'))
  second.send(settlement('b'))
  await first.close()
  const third = open('third')
  t.strictSame(heard, [])
  away = false
  await backlog.flush()
  t.strictSame(heard.splice(0).sort(), ['second settled a', 'second settled b'])
  away = true
  second.send(settlement('c'))
  await second.close()
  const late = third.close()
  const joined = open('joined')
  await late
  t.strictSame(heard, [], 'one that joins meanwhile has it, too')
  await joined.close()
  t.strictSame(heard, ['joined lost c'])
  t.ok(backlog.empty)
})

t.test('what waits when the last app ends is sent once more: the store may be back', async (t) => {
  let isAway = true
  const settle = async (): Promise<void> => { if (isAway) throw new StoreDownError('does not answer') }
  const heard: string[] = []
  const outbox = new Outbox(new Backlog({ ...memoryBalances(), settle }, { maxWaiting: 9, retryMs: 60_000 }), {
    onLost: ({ id }) => heard.push(`lost ${id}`), onSettled: ({ id }) => heard.push(`settled ${id}`),
  })
  outbox.send({ id: 'a', group: 'g', key: 'k', tokens: 1, late: [] })
  isAway = false
  await outbox.close()
  t.strictSame(heard, ['settled a'])
})

t.test('a settlement that is being sent again still waits: no share is given anew before the store has it', async (t) => {
  const answers: Array<(error?: Error) => void> = []
  const settle = async (): Promise<void> => await new Promise((
    resolve, reject
  ) => answers.push((error) => error === undefined ? resolve() : reject(error)))
  const backlog = new Backlog({ ...memoryBalances(), settle }, { maxWaiting: 1, retryMs: 60_000 })
  const outbox = new Outbox(backlog, { onLost: () => {} })
  outbox.send({ id: 'a', group: 'g', key: 'k', tokens: 1, late: [] })
  answers[0]?.(new Error('away'))
  while (backlog.empty) await new Promise(setImmediate)
  for (const error of [new Error('away'), undefined]) {
    const flushed = backlog.flush()
    t.same({ empty: backlog.empty, full: backlog.full }, { empty: false, full: true })
    answers.pop()?.(error)
    await flushed
    t.equal(backlog.empty, error === undefined)
  }
  await outbox.close()
})

t.test('an app ends though its store never answers: what that was sent is told as lost', async (t) => {
  const never = new Promise<never>(() => {})
  let isDown = true
  const settle = (): Promise<never> => isDown ? Promise.reject(new StoreDownError('is away')) : never
  const lost: string[] = []
  const listeners = { onLost: ({ id }: Settlement) => { lost.push(id) } }
  const backlog = new Backlog({ ...memoryBalances(), settle }, { maxWaiting: 9, retryMs: 60_000 })
  const outbox = new Outbox(backlog, listeners, 20)
  await outbox.send({ id: 'waits', group: 'g', key: 'k', tokens: 1, late: [] })
  isDown = false
  const sent = outbox.send({ id: 'sent', group: 'g', key: 'k', tokens: 1, late: [] })
  t.type(sent, Promise)
  await outbox.close()
  t.strictSame(lost, ['sent', 'waits'])
})

t.test('a settlement that the store refuses is put aside, and told; one that waits for the store is not', async (t) => {
  let isAway = true
  let tries = 0
  const settled: string[] = []
  const lost: unknown[] = []
  const settle = async ({ id }: Settlement): Promise<void> => {
    await new Promise(setImmediate)
    if (id === 'refused') tries += 1
    if (id === 'refused') throw new StoreDownError('failed', { refused: true })
    if (isAway) throw new StoreDownError('does not answer')
    settled.push(id)
  }
  const balances = { ...memoryBalances(), settle }
  const backlog = new Backlog(balances, { maxWaiting: 9, retryMs: 1 })
  const outbox = new Outbox(backlog, { onLost: ({ id }, error) => lost.push([id, error]) })
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  for (const id of ['refused', 'waits']) outbox.send({ id, group: 'g', key: 'k', tokens: 1, late: [] })
  while (lost.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
  t.match(lost, [['refused', { refused: true }]])
  t.ok(tries > 1, 'it may have been refused by chance')
  t.notOk(backlog.empty)
  isAway = false
  while (!backlog.empty) await new Promise((resolve) => setTimeout(resolve, 1))
  t.same(settled, ['waits'])
  await outbox.close()
  t.equal(lost.length, 1)
})

t.test('settlements wait for a store that is away', async (t) => {
  let away = true
  const asked: string[] = []
  const settled: string[] = []
  const lost: string[] = []
  const balances: Balances = {
    ...memoryBalances(),
    settle: async ({ id }) => {
      asked.push(id)
      await new Promise(setImmediate)
      if (away) throw new Error('away')
      settled.push(id)
    },
  }
  const settlement = (id: string, tokens = 1): Settlement => ({ id, group: 'g', key: 'k', tokens, late: [] })
  const backlog = new Backlog(balances, { maxWaiting: 3, retryMs: 5 })
  const outbox = new Outbox(backlog, { onLost: ({ id }) => lost.push(id) })
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  for (const id of ['a', 'b', 'c', 'd']) outbox.send(settlement(id))
  outbox.send(settlement('of a request that was refused', 0))
  while (asked.length < 12) await new Promise((resolve) => setTimeout(resolve, 5))
  t.same(lost, ['of a request that was refused'], 'of which there may be any number while the store is away')
  t.same({ settled, full: backlog.full, empty: backlog.empty }, { settled: [], full: true, empty: false })
  away = false
  while (!backlog.empty || settled.length < 4) await new Promise((resolve) => setTimeout(resolve, 5))
  t.same(settled.sort(), ['a', 'b', 'c', 'd'], 'also more than with which somebody new is let in: a disk that was full may have kept many')
  away = true
  outbox.send(settlement('e'))
  await outbox.close()
  t.same(lost.slice(1), ['e'], 'what is left at the end is told')
  await new Outbox(backlog, { onLost: () => {} }).close()
})

t.test('a disk that goes on refusing records is told once, and each refusal counted', async (t) => {
  const heard = new Set<(error: unknown, again: boolean) => void>()
  const onTrouble: Ledger['onTrouble'] = (listener) => {
    heard.add(listener)
    return () => heard.delete(listener)
  }
  let counted = 0
  const lines: unknown[] = []
  const recorder = { ...silentRecorder, ledgerFailed: () => { counted += 1 } }
  const log = Object({ error: (fields: unknown) => lines.push(fields) })
  const endings = watchLedger({ ...memoryLedger(), onTrouble }, recorder, log)
  for (const again of [false, true, true]) heard.forEach((listener) => listener(new Error('full'), again))
  for (const end of endings) end()
  t.match([counted, lines.length, lines, heard.size], [3, 1, [{ err: { message: 'full' } }], 0])
})
