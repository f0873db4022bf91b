/** One connection to PostgreSQL, with a time limit for every step. It does not reconnect: whoever meets an error opens another one. */
import type { Client } from 'pg'
import { loadPostgres } from '../peer.js'
import { migrations } from './migrations.js'
import type { UsageStoreRules } from './options.js'

export interface Connection {
  readonly ask: <Row extends object>(text: string, values?: readonly unknown[]) => Promise<Row[]>
  /** Rows in batches as they come, however many there are. */
  readonly stream: <Row extends object>(text: string, values: readonly unknown[]) => AsyncGenerator<Row[]>
  /** False once it broke, as one that a pooler ends while it is idle. */
  readonly isOpen: () => boolean
  readonly close: () => Promise<void>
}

const connectTimeoutMs = 5_000
const rowsAtOnce = 2_000

/** Throws `LLM_GATEWAY_MISSING_PEER`, or the error of the client or the server. None of them contains the password. */
export async function connect ({ url, password, timeoutMs }: Pick<UsageStoreRules, 'url' | 'password' | 'timeoutMs'>): Promise<Connection> {
  const pg = await loadPostgres()
  const client = new pg.Client({
    connectionString: url,
    application_name: 'llm-gateway',
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: timeoutMs,
    lock_timeout: Math.ceil(timeoutMs / 2),
    // If nothing comes back at all, the client itself gives up, somewhat later than the server.
    query_timeout: timeoutMs + 1_000,
    keepAlive: true,
  })
  // Not in the address, because that of a socket has no place for it.
  if (password !== null) client.password = password()
  let broken: unknown = null
  client.on('error', (error) => { broken ??= error })
  try {
    await client.connect()
  } catch (error) {
    end(client)
    throw error
  }
  return {
    ask: async <Row extends object>(text: string, values: readonly unknown[] = []) => (await client.query<Row>(text, [...values])).rows,
    stream: async function * <Row extends object>(text: string, values: readonly unknown[]) {
      try {
        yield * streamed<Row>(client, text, values)
      } catch (error) {
        // The client itself says no more than that it is of no use any more.
        throw broken ?? error
      }
    },
    isOpen: () => broken === null,
    close: async () => end(client),
  }
}

/** Not awaited: a server that hangs would never end it. */
function end (client: Client): void {
  client.end().catch(() => {})
}

async function * streamed<Row extends object> (client: Client, text: string, values: readonly unknown[]): AsyncGenerator<Row[]> {
  await client.query('BEGIN READ ONLY')
  await client.query(`DECLARE report NO SCROLL CURSOR FOR ${text}`, [...values])
  for (;;) {
    const { rows } = await client.query<Row>(`FETCH ${rowsAtOnce} FROM report`)
    if (rows.length === 0) break
    yield rows
  }
  await client.query('COMMIT')
}

/** Makes the tables, or adds what newer versions of the gateway need. One host does so while others wait. */
export async function migrate ({ ask }: Connection, schema: string): Promise<void> {
  const version = await versionOf(ask, schema)
  if (version > migrations.length) throw new Error(`the schema ${schema} was made by a newer version of the gateway`)
  if (version === migrations.length) return
  const steps = migrations.map((step, at) => `IF done <= ${at} THEN ${step(schema)} END IF;`)
  await ask(`
    DO $$ DECLARE done integer; BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('${schema}'));
      IF to_regnamespace('"${schema}"') IS NULL THEN CREATE SCHEMA "${schema}"; END IF;
      IF to_regclass('"${schema}".version') IS NULL THEN
        CREATE TABLE "${schema}".version (version integer NOT NULL);
        INSERT INTO "${schema}".version VALUES (0);
      END IF;
      SELECT version INTO done FROM "${schema}".version;
      ${steps.join('\n')}
      -- It has no key, without which a publication for all tables lets none of its rows change.
      ALTER TABLE "${schema}".version REPLICA IDENTITY FULL;
      UPDATE "${schema}".version SET version = ${migrations.length} WHERE version < ${migrations.length};
    END $$`)
}

async function versionOf (ask: Connection['ask'], schema: string): Promise<number> {
  const [found] = await ask<{ made: boolean }>('SELECT to_regclass($1) IS NOT NULL AS made', [`"${schema}".version`])
  if (found?.made !== true) return 0
  const [row] = await ask<{ version: number }>(`SELECT version FROM "${schema}".version`)
  return Number(row?.version)
}
