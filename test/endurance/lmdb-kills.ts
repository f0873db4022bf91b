/** Two processes write to the same lmdb files, and are killed in turn while they do. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openLmdb, type LmdbFiles } from '../../plugins/state/lmdb/open.js'
import { accountIn, holdsIn, quietIn } from './lmdb-contents.js'
import { sum, temporaryFolder, type Report } from './processes.js'

const script = new URL('lmdb-writer.js', import.meta.url).pathname
const settledTokens = 7

/** Acknowledged means: the promise of the call resolved in the writer. */
export async function lmdbKills ({ kills }: { readonly kills: number }): Promise<Report> {
  const folder = temporaryFolder()
  const path = join(folder.path, 'data')
  const files = await openLmdb(path)
  let count = 0
  const writer = async (): Promise<void> => {
    while (count < kills) {
      count += 1
      await writeUntilKilled(folder.path, path, `w${count}`)
    }
  }
  await Promise.all([writer(), writer()])

  const notes = { h: new Set<string>(), i: new Set<string>(), s: new Set<string>(), k: new Set<string>() }
  for (const name of readdirSync(folder.path).filter((each) => each.endsWith('.notes'))) {
    for (const [, what, id = ''] of readFileSync(join(folder.path, name), 'utf8').matchAll(/^([hisk]) (.*)$/gm)) {
      if (what === 'h' || what === 'i' || what === 's' || what === 'k') notes[what].add(id)
    }
  }
  const violations = check(files, notes)
  const sizes = ['limits.mdb', 'keys.mdb'].map((name) => Math.round(statSync(join(path, name)).size / 1_048_576))
  await files.close()
  folder.remove()
  const { h, s, k } = notes
  return { violations, slow: [], kills: count, held: h.size, settled: s.size, keys: k.size, megabytes: sizes }
}

async function writeUntilKilled (folder: string, path: string, name: string): Promise<void> {
  const file = join(folder, `${name}.notes`)
  const notes = openSync(file, 'a')
  const child = spawn('/usr/bin/env', ['-i', process.execPath, script, path, name], { stdio: ['ignore', 'inherit', 'inherit', notes] })
  closeSync(notes)
  const exited = new Promise((resolve) => child.once('close', resolve))
  while (statSync(file).size === 0 && child.exitCode === null) await pause(2)
  await pause(Math.random() * 40)
  if (!child.kill('SIGKILL')) throw new Error('a writer ended by itself')
  await exited
}

function check (files: LmdbFiles, notes: Readonly<Record<'h' | 'i' | 's' | 'k', ReadonlySet<string>>>): string[] {
  const violations: string[] = []
  const holds = holdsIn(files, 'chat')
  const none = (ids: ReadonlySet<string>, what: string, lost: (id: string) => boolean): void => {
    const found = [...ids].filter(lost)
    if (found.length > 0) violations.push(`${found.length} ${what}: ${found.slice(0, 3).join(' ')}`)
  }
  const { h, i, s, k } = notes
  const remembered = (id: string): boolean => holds.get(id)?.state === 'closed' && holds.get(id)?.tokens === settledTokens
  none(h, 'holds are lost', (id) => !i.has(id) && holds.get(id)?.state !== 'open')
  none(s, 'settlements are lost', (id) => (id.endsWith('late') ? !remembered(id) : holds.has(id)))
  none(k, 'keys are lost', (id) => files.keysByDigest.get(files.digestsById.get(id) ?? '') === undefined)

  const open = [...holds.values()].filter(({ state }) => state === 'open')
  const closed = [...holds.values()].filter(({ state }) => state === 'closed')
  const dropped = [...i].filter((id) => id.endsWith('once') && !holds.has(id))
  const account = accountIn(files, 'k:4:chat:one')
  const balance = (what: string, is: number | undefined, should: number): void => {
    if (is !== should) violations.push(`${what} ${is}, not ${should}`)
  }
  balance('spent', account?.spent, sum(closed.map(({ tokens }) => tokens)) + dropped.length * settledTokens)
  balance('held', account?.held, sum(open.map(({ tokens }) => tokens)))
  balance('active', account?.active, open.length)
  const [openUntil, closedUntil] = quietIn(files, 'chat')
  const missed = [...holds.values()].filter(({ state, deadline }) => deadline < (state === 'open' ? openUntil : closedUntil))
  balance('holds that no sweep would find', missed.length, 0)
  return violations
}
