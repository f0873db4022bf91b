/** Hosts with a usage store, and what it must have of their records. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { add, decimalText, readDecimal, zero } from '../../plugins/core/money/decimal.js'
import { openState, type LedgerRecord, type State, type UsageStoreConfig } from '../../plugins/state/index.js'
import type { PostgresServer } from './postgres-server.js'
import { noTokens } from '../metrics/requests.js'

const leaves = { ...noTokens, input: 3, cache_read: 1, output: 4, reasoning: 2 }
const plain = { key: 'ci', group: 'chat', protocol: 'messages', model: 'm', outcome: 'ok', charged: 10, late: [], ...leaves } as const

let made = 0

export function record (more: Partial<LedgerRecord> = {}): LedgerRecord {
  made += 1
  return { ...plain, id: `r${made}`, time: Date.now(), cost: '0.000123', currency: 'USD', costParts: { input: '0.000123' }, ...more }
}

export function records (count: number, more: Partial<LedgerRecord> = {}): LedgerRecord[] {
  return Array.from({ length: count }, () => record(more))
}

export function folder (t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'llm-gateway-usage-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return path
}

let schemas = 0

/** Tables of a test's own. */
export function storeOf (server: PostgresServer, more: Partial<UsageStoreConfig> = {}): UsageStoreConfig & { readonly schema: string } {
  schemas += 1
  return { url: server.url, schema: `s${schemas}`, intervalMs: 20, ...more }
}

export async function host (
  t: Test, path: string, usageStore: UsageStoreConfig, { now, ...more }: { readonly now?: () => number, readonly ledger?: object } = {}
): Promise<State> {
  const state = await openState({ engine: 'lmdb', path, usageStore, ...more }, now)
  let closed: Promise<void> | null = null
  const close = async (): Promise<void> => await (closed ??= state.close())
  t.teardown(close)
  return { ...state, close }
}

export async function keep ({ ledger }: State, all: readonly LedgerRecord[]): Promise<void> {
  await Promise.all(all.map(async (each) => await ledger.append(each)))
}

export async function idsIn (server: PostgresServer, { schema }: { readonly schema: string }): Promise<string[]> {
  return (await server.ask<{ id: string }>(`SELECT id FROM ${schema}.usage ORDER BY id`).catch(() => [])).map(({ id }) => id)
}

export async function arrive (server: PostgresServer, store: { readonly schema: string }, all: readonly LedgerRecord[]): Promise<void> {
  while ((await idsIn(server, store)).length < all.length) await pause(20)
}

export async function shipped ({ ledger: { shipping } }: State): Promise<void> {
  while (Number(shipping?.unshipped) > 0) await pause(10)
}

/** What the store has must be what was recorded: once, to the last digit, and in its sums, too. */
export async function agrees (
  t: Test, server: PostgresServer, { schema }: { readonly schema: string }, all: readonly LedgerRecord[]
): Promise<void> {
  t.same(await idsIn(server, { schema }), all.map(({ id }) => id).sort())
  const cost = all.reduce((sum, each) => add(sum, readDecimal(each.cost ?? '0') ?? zero), zero)
  const expected = {
    requests: String(all.length), output: String(all.reduce((sum, { output }) => sum + output, 0)), cost: decimalText(cost),
  }
  const sums = 'sum(output)::text AS output, trim_scale(sum(cost))::text AS cost'
  t.strictSame(await server.ask(`SELECT count(*)::text AS requests, ${sums} FROM ${schema}.usage`), [expected], 'records')
  t.strictSame(await server.ask(`SELECT sum(requests)::text AS requests, ${sums} FROM ${schema}.usage_quarters`), [expected], 'sums')
}
