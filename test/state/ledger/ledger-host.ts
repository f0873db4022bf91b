/** Records of tests, and what a ledger gives back of them. */
import { readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Test } from 'tap'
import type { Ledger, LedgerRange, LedgerRecord } from '../../../plugins/state/types.js'
import { noTokens } from '../../metrics/requests.js'

const leaves = { ...noTokens, input: 3, output: 4 }

export function record (id: string, time = Date.now()): LedgerRecord {
  return { id, time, key: 'ci', group: 'chat', protocol: 'messages', model: 'm', outcome: 'ok', charged: 7, late: [], ...leaves }
}

/** A file where the folder was: it takes nothing. */
export function takePlace (path: string): void {
  rmSync(path, { recursive: true })
  writeFileSync(path, '')
}

export async function idsIn (ledger: Ledger, range?: LedgerRange): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of ledger.read(range)) ids.push(id)
  return ids
}

export async function unsettledIn (ledger: Ledger): Promise<string[]> {
  const ids: string[] = []
  for await (const { id } of ledger.unsettled()) ids.push(id)
  return ids
}

export interface Handles {
  appendFile: (text: Buffer) => Promise<void>
  datasync: () => Promise<void>
  truncate: (bytes: number) => Promise<void>
}

/** What the handles of all files inherit. A change of it ends with the test. */
export async function handles (t: Test, file: string): Promise<Handles> {
  const other = await open(file)
  const { prototype } = Object(other).constructor
  await other.close()
  const { appendFile, datasync, truncate } = prototype
  t.teardown(() => Object.assign(prototype, { appendFile, datasync, truncate }))
  return prototype
}

/** Descriptors of the files that this process has open in a folder. */
export function openIn (path: string): string[] {
  return readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(path))
}

function linkOf (fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}
