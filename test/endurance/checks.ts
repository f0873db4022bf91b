/**
 * The long runs by name: what each shows, at its full figure, and as short as the suite runs it. A check returns what it broke
 * (`violations`), times that a quiet machine keeps (`slow`), and its figures.
 */
import { floodOfKeys } from './flood-of-keys.js'
import { abortedStreams } from './aborted-streams.js'
import { byTest } from './by-test.js'
import { bigBodies } from './big-bodies.js'
import { cardinality } from './cardinality.js'
import { cutEverywhere } from './cut-everywhere.js'
import { drain } from './drain.js'
import { evilReplies } from './evil-replies.js'
import { fiftyCalls } from './fifty-calls.js'
import { fullDisk } from './full-disk.js'
import { ledgerKills } from './ledger-kills.js'
import { lmdbKills } from './lmdb-kills.js'
import { manyRecords } from './many-records.js'
import { overload } from './overload.js'
import { pools } from './pools.js'
import type { Report } from './processes.js'
import { reconciliation } from './reconciliation.js'
import { silentUpstream } from './silent-upstream.js'
import { slowReader } from './slow-reader.js'
import { slowSockets } from './slow-sockets.js'
import { slowStore } from './slow-store.js'
import { smuggling } from './smuggling.js'
import { soak } from './soak.js'
import { storeHang } from './store-hang.js'
import { storeOutage } from './store-outage.js'
import { supplyChain } from './supply-chain.js'
import { timing } from './timing.js'
import { untouched } from './untouched.js'
import { workersUnderFire } from './workers.js'

export interface Check {
  readonly what: string
  /** At its full figure; `given` replaces options by name. */
  readonly full: (given?: object) => Promise<Report>
  /** As the suite runs it; null where a test of the suite does. */
  readonly short: (() => Promise<Report>) | null
  /** The program that it needs on the machine. */
  readonly needs?: 'redis-server'
}

function check<T extends object> (
  what: string, run: (options: T) => Promise<Report>, full: T, short: T | null, needs?: Check['needs']
): Check {
  return {
    what,
    full: async (given = {}) => await run({ ...full, ...given }),
    short: short === null ? null : async () => await run(short),
    ...(needs !== undefined && { needs }),
  }
}

function property (what: string, file: string, runs: number): Check {
  return check(what, async (options: { readonly runs: number }) => await byTest(file, options), { runs }, null)
}

export const checks: Readonly<Record<string, Check>> = {
  paths: property('router, policy and upstream see one path', 'test/conformance/same-path.test.ts', 1_000_000),
  prefixes: property('no URL resolves to two versions, or to another URL the second time', 'test/core/url/resolve.test.ts', 1_000_000),
  bodies: property('a body that two readers could read differently is refused', 'test/validation/json.test.ts', 1_000_000),
  'content-types': property('what is served was validated, whatever its content type', 'test/validation/media-type.test.ts', 100_000),
  canary: property('no text of a key in logs, spans, metrics and replies', 'test/log/canary.test.ts', 1),
  credentials: property('every credential in every place', 'test/auth/credential.test.ts', 1),
  groups: property('every group on every endpoint', 'test/auth/auth.test.ts', 1),
  untouched: check('bytes go on as they came, with one credential', untouched, { requests: 100_000 }, { requests: 400 }),
  'key-flood': check('made-up keys do not push out real ones', floodOfKeys, { rounds: 20_000 }, null),
  smuggling: check('requests that are two to another reader are refused', smuggling, { rounds: 200 }, { rounds: 1 }),
  'evil-replies': check('what a broken provider sends reaches nobody else', evilReplies, { requests: 100_000, atOnce: 32 }, {
    requests: 330, atOnce: 8,
  }),
  'cut-everywhere': check('a reply cut behind any byte never ends cleanly', cutEverywhere, { every: 1 }, { every: 97 }),
  pools: check('members that are dead, hang or are overloaded cost callers nothing that a healthy one could serve', pools, {
    failing: { requests: 15_000, perSecond: 500, attemptTimeoutMs: 1_000, maxAmplification: 1.2 },
    leaving: { callers: 500, atOnce: 3 },
    returning: { members: 4, perSecond: 200, outMs: 10_000, deadlineMs: 5_000 },
    dead: { requests: 5_000, hangs: false, attemptTimeoutMs: 1_000 },
    hung: { requests: 5_000, hangs: true, attemptTimeoutMs: 1_000 },
  }, {
    failing: { requests: 240, perSecond: 60, attemptTimeoutMs: 2_000, maxAmplification: 1.5 },
    leaving: { callers: 12, atOnce: 3 },
    returning: { members: 4, perSecond: 150, outMs: 2_000, deadlineMs: 5_000 },
    dead: { requests: 100, hangs: false, attemptTimeoutMs: 1_000 },
    hung: null,
  }),
  schedules: property(
    'whatever fails and whoever leaves, a caller has one reply of one member, counted once', 'test/upstreams/schedule.test.ts', 2_000
  ),
  'slow-reader': check('a caller that reads slowly costs no memory', slowReader, { megabytes: 1_024, stillMs: 20_000 }, {
    megabytes: 48, stillMs: 1_000,
  }),
  'slow-sockets': check('callers that dribble are closed, and nobody waits for them', slowSockets, { sockets: 5_000, timeoutMs: 60_000 }, {
    sockets: 200, timeoutMs: 1_000,
  }),
  'slow-store': check('a disk that stands still, a log that nobody reads and a Redis far away hold nobody up', slowStore, {
    disk: { stallMs: 2_000, stalls: 10, quietMs: 30_000, everyMs: 20, maxAddedMs: 50 },
    log: { requests: 20_000, atOnce: 16, drops: true, maxAddedMs: 50 },
    redis: { farMs: 40, commandTimeoutMs: 200, phaseMs: 20_000, everyMs: 20, maxAddedMs: 50 },
  }, {
    disk: { stallMs: 2_000, stalls: 2, quietMs: 1_000, everyMs: 50, maxAddedMs: 50 },
    log: { requests: 400, atOnce: 8, drops: false, maxAddedMs: 50 },
    redis: { farMs: 40, commandTimeoutMs: 3_000, phaseMs: 1_000, everyMs: 50, maxAddedMs: 50 },
  }),
  'full-disk': check('a disk that is full costs no record and no request', fullDisk, { fullMs: 20_000, everyMs: 10, holdTtlMs: 5_000 }, {
    fullMs: 2_500, everyMs: 50, holdTtlMs: 1_500,
  }),
  timing: check('a key whose beginning is right is refused as soon as any other', timing, { pairs: 1_000_000 }, { pairs: 20_000 }),
  'silent-upstream': check('a provider that falls silent is told of in time', silentUpstream, { requests: 200, timeoutMs: 10_000 }, {
    requests: 10, timeoutMs: 800,
  }),
  'aborted-streams': check('callers that leave leave nothing', abortedStreams, { streams: 100_000, atOnce: 50 }, {
    streams: 200, atOnce: 10,
  }),
  drain: check('SIGTERM cuts no stream', drain, { streams: 500, streamMs: 10_000 }, { streams: 20, streamMs: 1_500 }),
  workers: check(
    'workers die and reload under load, and every count is right', workersUnderFire,
    { workers: 2, reloads: 60, kills: 20, atOnce: 16, everyMs: 200 }, { workers: 2, reloads: 3, kills: 2, atOnce: 8, everyMs: 200 }
  ),
  overload: check(
    'three times as many requests as may run cost those that may nothing', overload, { maxActive: 100, replyMs: 200, seconds: 20 },
    { maxActive: 20, replyMs: 200, seconds: 1 }
  ),
  'big-bodies': check('a body of the worst shapes does not hold the loop and fits into a small heap', bigBodies, {
    megabytes: 32, atOnce: 1, heapMb: 512, mostHeldMs: 20, mostWaitMs: Infinity, mostTimesBody: 10,
  }, null),
  'big-bodies-at-once': check('several of them hold nobody up', bigBodies, {
    megabytes: 32, atOnce: 8, heapMb: 512, mostHeldMs: 20, mostWaitMs: 20, mostTimesBody: 6,
  }, {
    megabytes: 2, atOnce: 3, heapMb: 512, mostHeldMs: 20, mostWaitMs: 20, mostTimesBody: 6,
  }),
  cardinality: check('metrics stay bounded', cardinality, { requests: 1_000_000, atOnce: 32 }, { requests: 2_000, atOnce: 16 }),
  soak: check('everything at once for half an hour', soak, { minutes: 30, perSecond: 400, atOnce: 64 }, {
    minutes: 0.05, perSecond: 40, atOnce: 8,
  }),
  'supply-chain': check('an installation runs no scripts and has no package that is known to be at fault', supplyChain, { maxDirect: 10 }, {
    maxDirect: 10,
  }),
  'fifty-calls-redis': check(
    'a balance for 50 serves 50', fiftyCalls, { engine: 'redis', calls: 50, requests: 2_000, processes: 3 }, null, 'redis-server'
  ),
  'fifty-calls-lmdb': check('a balance for 50 serves 50', fiftyCalls, { engine: 'lmdb', calls: 50, requests: 2_000, processes: 3 }, null),
  'ledger-kills': check('kill -9 loses no acknowledged record', ledgerKills, { rounds: 50, requests: 10_000, holdTtlMs: 5_000 }, null),
  'lmdb-kills': check('kill -9 of two processes loses nothing acknowledged', lmdbKills, { kills: 1_000 }, null),
  'store-outage': check(
    'Redis dies', storeOutage, { processes: 3, awayMs: 10_000, everyMs: 20, commandTimeoutMs: 50 }, null, 'redis-server'
  ),
  'store-hang': check('Redis hangs', storeHang, { processes: 3, hangsMs: 10_000, everyMs: 20, commandTimeoutMs: 50 }, null, 'redis-server'),
  'many-records': check(
    'reports of a million records are exact, soon there, and take no more memory', manyRecords,
    { records: 1_000_000, maxMs: 5_000, maxGrowthMb: 64 }, { records: 20_000, maxMs: 5_000, maxGrowthMb: 64 }
  ),
  reconciliation: check('ledger and metrics agree', reconciliation, { requests: 20_000, atOnce: 32 }, null),
}
