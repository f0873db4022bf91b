/** Processes that spend one budget and are killed while they do: what is spent, held and left stays the whole of it. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openState, type State, type StateConfig } from '../../plugins/state/index.js'
import type { Bucket } from '../../plugins/core/balances/types.js'
import { temporaryFolder, type Report } from './processes.js'

const script = new URL('budget-writer.js', import.meta.url).pathname
const bucket: Bucket = { id: 'cost total UTC ', unit: 'cost', amount: 1e12, endsAt: null }
/** As the writers say. */
const heldCost = 100
const floorCost = 3
const settledCost = 40

interface Notes {
  readonly held: Set<string>
  readonly asked: Set<string>
  readonly settled: Set<string>
}

export async function budgetKills ({ rounds, url }: { readonly rounds: number, readonly url?: string }): Promise<Report> {
  const folder = temporaryFolder()
  const holdTtlMs = 600_000
  const config: StateConfig = url === undefined
    ? { engine: 'lmdb', path: join(folder.path, 'data'), holdTtlMs }
    : { engine: 'redis', url, path: join(folder.path, 'data'), holdTtlMs, commandTimeoutMs: 5_000 }
  const violations: string[] = []
  const notes: Notes = { held: new Set(), asked: new Set(), settled: new Set() }
  let passedMs = 0
  // Opened first: two processes that make the same files at once would be another test.
  let state = await openState(config, () => Date.now() + passedMs)
  for (let round = 0; round < rounds; round += 1) {
    const samples = { over: 0, ended: false }
    const sampling = sample(state, samples)
    await Promise.all(['a', 'b'].map(async (name) => await writeUntilKilled(folder.path, config, `${name}${round}`, notes)))
    samples.ended = true
    await sampling
    if (samples.over > 0) violations.push(`more than the budget was spent and held, ${samples.over} times`)
    await state.close()
    state = await openState(config, () => Date.now() + passedMs)
    violations.push(...await check(state, notes))
  }
  const { spent, held } = await state.balances.readBucket(bucket.id, 'chat')
  passedMs = 2 * holdTtlMs
  // A few hundred at once.
  while ((await state.balances.readBucket(bucket.id, 'chat')).held > 0);
  const left = await leftOf(state)
  const after = await state.balances.readBucket(bucket.id, 'chat')
  const floors = held / heldCost * floorCost
  if (after.held !== 0 || after.spent !== spent + floors) {
    violations.push(`after all holds expired ${JSON.stringify(after)}, not ${spent} and ${floors} of floors`)
  }
  if (after.spent + left !== bucket.amount) violations.push(`${after.spent} spent and ${left} left are not ${bucket.amount}`)
  await state.close()
  folder.remove()
  return { violations, slow: [], held: notes.held.size, settled: notes.settled.size, openAtTheEnd: held / heldCost }
}

/** What a decision sees as left. It holds nothing, and is taken back. */
async function leftOf ({ balances }: State): Promise<number> {
  const decision = await balances.hold({
    id: 'probe',
    group: 'chat',
    groupLimits: { budgets: [] },
    groupBuckets: [bucket],
    key: 'probe',
    keyLimits: {},
    requests: 1,
    tokens: 0,
    floor: 0,
  })
  await balances.settle({ id: 'probe', group: 'chat', key: 'probe', tokens: 0, late: [] })
  return decision.ok ? Number(decision.left.buckets?.[0]) : NaN
}

async function sample (state: State, samples: { over: number, ended: boolean }): Promise<void> {
  while (!samples.ended) {
    const { spent, held } = await state.balances.readBucket(bucket.id, 'chat')
    if (spent < 0 || held < 0 || spent + held > bucket.amount) samples.over += 1
    await pause(5)
  }
}

async function check (state: State, { held: made, asked, settled }: Notes): Promise<string[]> {
  const violations: string[] = []
  const { spent, held } = await state.balances.readBucket(bucket.id, 'chat')
  const left = await leftOf(state)
  if (spent + held + left !== bucket.amount) violations.push(`${spent} spent, ${held} held and ${left} left are not ${bucket.amount}`)
  const done = spent / settledCost
  if (!Number.isInteger(done) || done < settled.size || done > asked.size) {
    violations.push(`${spent} spent is not that of ${settled.size} to ${asked.size} requests`)
  }
  const open = held / heldCost
  if (!Number.isInteger(open) || open < made.size - asked.size) {
    violations.push(`${held} held is not that of at least ${made.size - asked.size} requests`)
  }
  return violations
}

async function writeUntilKilled (folder: string, config: StateConfig, name: string, notes: Notes): Promise<void> {
  const file = join(folder, `${name}.notes`)
  const descriptor = openSync(file, 'a')
  const args = ['-i', process.execPath, script, JSON.stringify(config), name, JSON.stringify(bucket)]
  const child = spawn('/usr/bin/env', args, { stdio: ['ignore', 'inherit', 'inherit', descriptor] })
  closeSync(descriptor)
  const exited = new Promise((resolve) => child.once('close', resolve))
  while (statSync(file).size === 0 && child.exitCode === null) await pause(2)
  await pause(50 + Math.random() * 100)
  if (!child.kill('SIGKILL')) throw new Error('a writer ended by itself')
  await exited
  for (const [, what, id = ''] of readFileSync(file, 'utf8').matchAll(/^([his]) (.*)$/gm)) {
    if (what === 'h') notes.held.add(id)
    else if (what === 'i') notes.asked.add(id)
    else notes.settled.add(id)
  }
}
