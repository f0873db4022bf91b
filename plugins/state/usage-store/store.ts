/** The tables of the usage store, as one host's shipper uses them. */
import type { LedgerRecord } from '../types.js'
import { connect, migrate, type Connection } from './connection.js'
import type { UsageStoreRules } from './options.js'
import { rowsText } from './rows.js'
import { addMonth, dropMonth, monthOf, months, positions, takeIn } from './statements.js'

const dayMs = 24 * 60 * 60_000
/** SQLSTATE of a row that no partition takes. */
const noPartition = '23514'

/** A connection with the tables ready. It is dropped, with its whole state, at its first error. */
export class UsageStore {
  readonly #connection: Connection
  readonly #rules: UsageStoreRules
  readonly #now: () => number
  /** Tables that were there when they were last needed. */
  readonly #months = new Set<string>()
  #lookedAt = 0
  /** No record before this time is taken in. */
  #keptFrom = 0

  private constructor (connection: Connection, rules: UsageStoreRules, now: () => number) {
    this.#connection = connection
    this.#rules = rules
    this.#now = now
  }

  static async open (rules: UsageStoreRules, now: () => number): Promise<UsageStore> {
    const connection = await connect(rules)
    try {
      await migrate(connection, rules.schema)
      const store = new UsageStore(connection, rules, now)
      store.#keptFrom = await store.#firstKept()
      return store
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  /** How many bytes of each file are read; 0 for an unknown file. */
  async positions (files: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#connection.ask<{ file: string, bytes: string }>(positions(this.#rules.schema), [files])
    const known = new Map(rows.map(({ file, bytes }) => [file, Number(bytes)]))
    return new Map(files.map((file) => [file, known.get(file) ?? 0]))
  }

  /**
   * Takes in records of a file, which then counts as read up to `bytes`. Returns how far it is read: another process may have read further.
   * Throws if it is not even read up to `from`, where they begin.
   */
  async takeIn (records: readonly LedgerRecord[], file: string, from: number, bytes: number): Promise<number> {
    const { schema } = this.#rules
    const kept = this.#keptFrom
    const take = async (): Promise<number> => {
      const [row] = await this.#connection.ask<{ bytes: string }>(takeIn(schema), [
        rowsText(records), new Date(kept).toISOString(), file, bytes, from,
      ])
      const read = Number(row?.bytes)
      // A connection may survive a restore of the store. The next connection asks how far all files are read.
      if (read < from) throw new Error('the usage store has less than it had, as one that was restored from an older copy')
      return read
    }
    return await take().catch(async (error: unknown) => {
      // Months are made only here: a role that may not make any may find them made. One that existed may have been dropped by hand.
      if (Object(error).code !== noPartition) throw error
      this.#months.clear()
      for (const { time } of records) if (time >= kept) await this.#haveMonth(time)
      return await take()
    })
  }

  /** Adds the next month before it begins, and drops those that are no longer kept. Does so once a day. */
  async tend (): Promise<void> {
    const now = this.#now()
    if (Math.abs(now - this.#lookedAt) < dayMs) return
    const { schema, keepMs } = this.#rules
    for (const time of [now, now + 28 * dayMs]) await this.#haveMonth(time)
    if (keepMs < Infinity) {
      this.#keptFrom = await this.#firstKept()
      const { name: oldest } = monthOf(this.#keptFrom)
      const names = (await this.#connection.ask<{ name: string }>(months(schema))).map(({ name }) => name)
      for (const name of names.filter((each) => each < oldest)) await this.#connection.ask(dropMonth(schema, name))
    }
    this.#lookedAt = now
  }

  get isOpen (): boolean {
    return this.#connection.isOpen()
  }

  async close (): Promise<void> {
    await this.#connection.close()
  }

  /** When the oldest kept month begins, by the earlier of the server's clock and this host's: a clock that runs ahead makes nothing old. */
  async #firstKept (): Promise<number> {
    const { keepMs } = this.#rules
    if (keepMs === Infinity) return 0
    const [server] = await this.#connection.ask<{ now: number }>('SELECT extract(epoch FROM now())::float8 * 1000 AS now')
    // Not before 1970: a very large `keepMs` would give a date that the store cannot read.
    return Date.parse(monthOf(Math.max(0, Math.min(this.#now(), Number(server?.now)) - keepMs)).from)
  }

  async #haveMonth (time: number): Promise<void> {
    const month = monthOf(time)
    if (this.#months.has(month.name)) return
    await this.#connection.ask(addMonth(this.#rules.schema, month))
    this.#months.add(month.name)
  }
}
