/**
 * The tables of the usage store in PostgreSQL (docs/usage-store.md), as the steps that make them. A released step is never changed: another
 * one follows it.
 */

/** `schema`: a plain name, in front of every table. */
type Migration = (schema: string) => string

const leaves = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'cache_write', 'tool_input', 'output', 'reasoning']
const counts = leaves.map((leaf) => `${leaf} bigint NOT NULL`).join(', ')

const first: Migration = (schema) => `
  CREATE TABLE "${schema}".usage (
    id text NOT NULL,
    time timestamptz NOT NULL,
    key_id text,
    group_id text,
    protocol text NOT NULL,
    model text,
    upstream_model text,
    outcome text NOT NULL,
    ${counts},
    charged bigint NOT NULL,
    cost numeric,
    currency text,
    unpriced boolean NOT NULL,
    price text,
    service_tier text,
    labels jsonb,
    details jsonb NOT NULL,
    PRIMARY KEY (id, time)
  ) PARTITION BY RANGE (time);
  CREATE INDEX usage_time ON "${schema}".usage USING brin (time);

  CREATE TABLE "${schema}".usage_quarters (
    quarter timestamptz NOT NULL,
    digest uuid NOT NULL,
    key_id text,
    group_id text,
    protocol text NOT NULL,
    model text,
    outcome text NOT NULL,
    currency text,
    labels jsonb,
    requests bigint NOT NULL,
    ${counts},
    charged bigint NOT NULL,
    cost numeric,
    unpriced bigint NOT NULL,
    PRIMARY KEY (quarter, digest)
  );

  CREATE TABLE "${schema}".shipped_files (
    file text PRIMARY KEY,
    bytes bigint NOT NULL,
    shipped_at timestamptz NOT NULL
  );`

export const migrations: readonly Migration[] = [first]
