/** `npm run bench`: runs the suites one after another, prints their tables, writes the file. */
import { writeFileSync } from 'node:fs'
import { readArguments, usageText, type Arguments } from './arguments.js'
import { describeMachine, pinDriver } from './machine.js'
import { growth } from './growth/index.js'
import { micro } from './micro/index.js'
import { profile } from './profile.js'
import { asJson, detailTable, rowTable, verdictOf, type Detail, type Row } from './report.js'
import { Session, Upstream } from './session.js'
import { watch } from './watch.js'
import { suites } from './suites/index.js'

function print (text: string): void {
  process.stdout.write(text + '\n')
}

async function goals (session: Session, { only, mode, json }: Arguments): Promise<void> {
  const startedAt = performance.now()
  const found: { rows: Row[], details: Detail[] } = { rows: [], details: [] }
  for (const [name, suite] of Object.entries(suites)) {
    if (only.length > 0 && !only.includes(name)) continue
    session.stage = name
    const suiteStartedAt = performance.now()
    const { rows, details } = await suite(session)
    found.rows.push(...rows)
    found.details.push(...details)
    print(`\n${name} (${Math.round((performance.now() - suiteStartedAt) / 1000)} s)\n`)
    print(detailTable(details))
    if (json !== null) writeFileSync(json, JSON.stringify(asJson(mode, (performance.now() - startedAt) / 1000, found), null, 2) + '\n')
  }
  const seconds = (performance.now() - startedAt) / 1000
  print('\n' + rowTable(found.rows))
  const unresolved = found.rows.filter(row => verdictOf(row) === 'unresolved')
  if (unresolved.length > 0) {
    print(`\nUNRESOLVED: ${unresolved.map(row => row.name).join(', ')}. The same program differed from itself by more than 5 % there; ` +
      'repeat on a quieter machine.')
  }
  const { again, kept } = session.disturbed
  if (again > 0) print(`\n${again} windows were taken again, because other programs took more than a tenth of a core meanwhile.`)
  if (kept > 0) print(`${kept} such windows were kept, because a quarter of their suite's windows had been taken again already.`)
  for (const [name, why] of session.lost) print(`\nThe peer ${name} was left out: ${why}`)
  print(`\n${Math.round(seconds)} s in all`)
}

async function main (): Promise<void> {
  const args = readArguments(process.argv.slice(2))
  if (args === null) return print(usageText)
  const { processor, cores, memoryGb, node, pinned, loadAverage } = describeMachine()
  print(`${processor}, ${cores} cores, ${memoryGb} GB, node ${node}, ` +
    `${pinned ? 'server on core 0, callers and upstream on core 1' : 'not pinned'}, load ${loadAverage.toFixed(1)}`)
  pinDriver()
  if (args.kind === 'micro') return print(await micro())
  const upstream = await Upstream.start(args.upstreamPort)
  const session = new Session(args.mode, upstream, args.peers)
  const settled = watch(session)
  try {
    if (args.kind === 'growth') {
      print(await growth(session, args.json, args.only))
    } else if (args.profile === null) {
      await goals(session, args)
    } else {
      await profile(session, args.profile)
    }
    settled()
  } catch (error) {
    settled()
    process.exitCode = 1
    console.error(`\nBROKEN OFF in "${session.stage}": ${error instanceof Error ? error.message : String(error)}\n`, error)
  } finally {
    await session.stop()
    upstream.stop()
  }
}

await main()
