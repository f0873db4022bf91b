/** The statements of the usage store. Each is one transaction. */
import { leaves } from '../../core/call/measures.js'
import { columns } from './rows.js'

const names = columns.map(({ name }) => name).join(', ')
const given = columns.map(({ field }) => `r."${field}"`).join(', ')
const typed = columns.map(({ field, type }) => `"${field}" ${type}`).join(', ')

/** What records are summed by; the digest of the values makes a key without nulls. */
const dimensions = 'key_id, group_id, protocol, model, outcome, currency, labels'
/** Not of MD5, which servers in FIPS mode refuse. */
const digest = `encode(substr(sha256(convert_to(jsonb_build_array(${dimensions})::text, 'UTF8')), 1, 16), 'hex')::uuid`
const sums = ['requests', ...leaves.map(({ type }) => type), 'charged', 'cost', 'unpriced']
const summed = leaves.map(({ type }) => `sum(${type})`).join(', ')
const added = sums.map((name) => name === 'cost'
  ? 'cost = coalesce(q.cost + excluded.cost, q.cost, excluded.cost)'
  : `${name} = q.${name} + excluded.${name}`)
  .join(', ')

/**
 * Takes a batch in: records that are not there yet, their sums, and the position of their file, all or nothing. Repeating it changes
 * nothing. Parameters: records, the time before which none is wanted, file, bytes, and where the batch begins in the file. Returns the
 * bytes that are read: fewer than the last parameter if the store lacks what stands before, which must then be sent again. Rows are locked
 * in the order of their keys, so that two hosts never wait for each other.
 */
export function takeIn (schema: string): string {
  return `
    WITH batch AS (
      INSERT INTO "${schema}".usage (${names})
      SELECT ${given} FROM json_to_recordset($1::json) AS r(${typed}) WHERE r.time >= $2::timestamptz ORDER BY r.id
      ON CONFLICT DO NOTHING RETURNING *
    ), added AS (
      INSERT INTO "${schema}".usage_quarters AS q (quarter, digest, ${dimensions}, ${sums.join(', ')})
      SELECT to_timestamp(floor(extract(epoch FROM time) / 900) * 900), ${digest}, ${dimensions},
        count(*), ${summed}, sum(charged), sum(cost), count(*) FILTER (WHERE unpriced)
      FROM batch GROUP BY 1, 2, ${dimensions} ORDER BY 1, 2
      ON CONFLICT (quarter, digest) DO UPDATE SET ${added}
    )
    INSERT INTO "${schema}".shipped_files AS f (file, bytes, shipped_at)
    VALUES ($3, CASE WHEN $5::bigint = 0 THEN $4::bigint ELSE 0 END, now())
    ON CONFLICT (file) DO UPDATE SET bytes = CASE WHEN f.bytes < $5 THEN f.bytes ELSE greatest(f.bytes, $4) END, shipped_at = now()
    RETURNING bytes`
}

/** How far each of the files is read. Parameter: their names. */
export function positions (schema: string): string {
  return `SELECT file, bytes FROM "${schema}".shipped_files WHERE file = ANY($1)`
}

/**
 * Adds the table of a month. It takes no lock that a report or another host's batch would wait for. It adds none if an operator's partition
 * takes rows of this month, or if the DEFAULT partition already has such rows.
 */
export function addMonth (schema: string, { name, from, to }: Month): string {
  return `
    DO $$ BEGIN
      PERFORM pg_advisory_xact_lock(hashtext('${schema}'));
      IF to_regclass('"${schema}".${name}') IS NULL THEN
        CREATE TABLE "${schema}".${name} (LIKE "${schema}".usage INCLUDING ALL EXCLUDING IDENTITY);
        ALTER TABLE "${schema}".usage ATTACH PARTITION "${schema}".${name} FOR VALUES FROM ('${from}') TO ('${to}');
      END IF;
    EXCEPTION WHEN invalid_object_definition OR check_violation THEN NULL;
    END $$`
}

/**
 * Drops the table of a month, which another host may have done before. While it waits for a report, all others wait for it: not for longer
 * than it takes an autovacuum to give way.
 */
export function dropMonth (schema: string, name: string): string {
  return `DO $$ BEGIN SET LOCAL lock_timeout = '2s'; DROP TABLE IF EXISTS "${schema}".${name}; END $$`
}

/** Tables of months that the gateway added: those that an operator attaches have other names, or are in another schema. */
export function months (schema: string): string {
  return 'SELECT relname AS name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = ' +
    `'"${schema}".usage'::regclass AND relnamespace = '"${schema}"'::regnamespace AND relname ~ '^usage_[0-9]{4}_[0-9]{2}$'`
}

interface Month {
  /** Name of its table. */
  readonly name: string
  readonly from: string
  readonly to: string
}

/** The month (UTC) of a moment, as a table. Throws a RangeError for a year of more than four digits, which the store cannot read. */
export function monthOf (time: number): Month {
  const date = new Date(time)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  const from = new Date(Date.UTC(year, month)).toISOString()
  const to = new Date(Date.UTC(year, month + 1)).toISOString()
  if (to.startsWith('+')) throw new RangeError(`no month of the usage store begins at ${from}`)
  return { name: `usage_${from.slice(0, 7).replace('-', '_')}`, from, to }
}
