/** What must end a run: each check of the benchmark against a server that breaks it, over real sockets. */
import { createServer, type Server, type ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { Callers } from './load/generators.js'
import { closed, interleave, lane, open, refusedLane, type Driven, type Lane, type Plan } from './rounds.js'
import { portOf } from './servers/serve.js'
import type { UpstreamCounts } from './upstream.js'
import { total } from './verify.js'
import { chatWork, streamWork } from './work.js'

const work = chatWork()
const plan = { rounds: 4, windowMs: 20, warmMs: 0 }

interface Broken {
  readonly answer?: (response: ServerResponse) => void
  /** Changes what the mock upstream says it has counted after `requests` requests. */
  readonly counts?: (requests: number) => Partial<UpstreamCounts>
}

async function listening (server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return portOf(server.address())
}

/** Drives a server that answers as a gateway does, but for what is broken. */
async function driven (
  test: Test, { answer, counts }: Broken, broken: (target: Lane['target']) => Lane = target => lane(target, work, 'as-caller'),
  measured: Plan = plan
): Promise<void> {
  let requests = 0
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      requests += 1
      if (answer === undefined) response.end(work.reply)
      else answer(response)
    })
  })
  const callers = new Callers({ host: '127.0.0.1', port: await listening(server) })
  test.teardown(() => {
    callers.close()
    server.close()
  })
  const tell = async (): Promise<UpstreamCounts> => ({
    requests, altered: 0, swapped: 0, leaked: requests, writes: 0, open: 0, cpuUs: 0, ...counts?.(requests),
  })
  const session: Driven = { disturbed: { again: 0, kept: 0 }, lost: new Map(), upstream: { tell } }
  const target = { name: 'broken', callers, usage: async () => null, stop: async () => {} }
  await interleave(session, [broken(target)], closed(2), measured)
}

t.test('a server that passes everything on is measured', async t => {
  await driven(t, {})
  await driven(
    t,
    { answer: response => response.writeHead(401).end('no'), counts: () => ({ requests: 0, leaked: 0 }) },
    target => refusedLane(target, work)
  )
})

t.test('a program is warmed until it has answered enough, within four times the time', async t => {
  let told = 0
  const counts = (): Partial<UpstreamCounts> => {
    told += 1
    return {}
  }
  await driven(t, { counts }, undefined, { ...plan, warmMs: 250, warmRequests: Infinity })
  const closings = 2
  t.equal(told, 2 * (8 + plan.rounds) + closings, 'each of eight slices and four windows is looked at before and after')
})

t.test('a reply that is not the upstream\'s byte for byte ends the run', async t => {
  const changed = Buffer.from(work.reply)
  changed.writeUInt8(changed.readUInt8(500) ^ 1, 500)
  await t.rejects(driven(t, { answer: response => response.end(changed) }), /broken: the reply differs from what the upstream sent/)
  await t.rejects(driven(t, { answer: response => response.end(work.reply.subarray(1)) }), /differs/)
  await t.rejects(driven(t, { answer: response => response.end(work.reply.subarray(0, -1)) }), /bytes instead of/)
  await t.rejects(driven(t, { answer: response => response.end(Buffer.concat([work.reply, work.reply])) }), /differs/)
  const stream = streamWork('bench-x', 5, { kind: 'held' })
  await t.rejects(driven(t, {
    answer: response => {
      for (const piece of stream.pieces.slice(1)) response.write(piece)
      response.end()
    },
  }, target => lane(target, stream, 'as-caller')), /differs/)
})

t.test('any other status ends the run, in both directions', async t => {
  await t.rejects(driven(t, { answer: response => response.writeHead(401).end('who') }), /broken: status 401 instead of 200: .*who/s)
  await t.rejects(driven(t, { answer: response => response.writeHead(201).end(work.reply) }), /status 201 instead of 200/)
  await t.rejects(driven(t, {}, target => refusedLane(target, work)), /status 200 instead of 401/)
})

t.test('a peer that gives a wrong answer is left out with its words, and the run goes on', async t => {
  let requests = 0
  const wrong = createServer((request, response) => {
    request.resume().on('end', () => {
      requests += 1
      if (requests < 2) response.end(work.reply)
      else response.writeHead(500).end('no such model')
    })
  })
  const right = createServer((request, response) => { request.resume().on('end', () => response.end(work.reply)) })
  const targets = await Promise.all([wrong, right].map(async (server, at) => {
    const callers = new Callers({ host: '127.0.0.1', port: await listening(server) })
    t.teardown(() => {
      callers.close()
      server.close()
    })
    return { name: at === 0 ? 'wrong' : 'right', callers, usage: async () => null, stop: async () => {} }
  }))
  const tell = async (): Promise<UpstreamCounts> => ({ requests: 0, altered: 0, swapped: 0, leaked: 0, writes: 0, open: 0, cpuUs: 0 })
  const session: Driven = { disturbed: { again: 0, kept: 0 }, lost: new Map(), upstream: { tell } }
  for (const warmMs of [0, 20]) {
    const results = await interleave(session, targets.map(target => lane(target, work, 'unknown')), closed(2), { ...plan, warmMs })
    t.strictSame([...results.keys()], ['right'])
    t.equal(results.get('right')?.length, plan.rounds)
    t.match(session.lost.get('wrong'), /status 500 instead of 200: .*no such model/s)
  }
})

t.test('a count of the upstream that does not fit ends the run', async t => {
  await t.rejects(driven(t, { counts: requests => ({ requests: requests * 2 }) }), /the upstream's count of requests rose by/)
  await t.rejects(driven(t, { counts: requests => ({ requests: requests === 0 ? 1 : requests }) }), /count of requests/)
  await t.rejects(driven(t, { counts: requests => ({ altered: requests }) }), /count of altered/)
  await t.rejects(driven(t, { counts: requests => ({ swapped: requests }) }), /count of swapped/)
  await t.rejects(driven(t, { counts: () => ({ leaked: 0 }) }), /count of leaked/)
})

t.test('a lost connection ends the run with the name of the target', async t => {
  await t.rejects(driven(t, { answer: response => response.destroy() }), /broken: the connection was closed before the reply was complete/)
  const gone = {
    name: 'gone',
    callers: new Callers({ host: '127.0.0.1', port: 9 }),
    usage: async () => null,
    stop: async () => {},
    end: () => 'its process was ended by SIGKILL',
  }
  const session: Driven = {
    disturbed: { again: 0, kept: 0 },
    lost: new Map(),
    upstream: { tell: async () => ({ requests: 0, altered: 0, swapped: 0, leaked: 0, writes: 0, open: 0, cpuUs: 0 }) },
  }
  for (const drive of [closed(2), open(100)]) {
    await t.rejects(
      interleave(session, [lane(gone, work, 'as-caller')], drive, plan), /gone: .*ECONNREFUSED.*; its process was ended by SIGKILL/
    )
  }
})

t.test('a plan that leaves targets without load for too long, or blocks unfinished, is none', async t => {
  const session: Driven = {
    disturbed: { again: 0, kept: 0 }, lost: new Map(), upstream: { tell: async () => { throw new Error('not reached') } },
  }
  await t.rejects(interleave(session, [], closed(1), { ...plan, rounds: 6 }), /whole blocks/)
  const lanes = Array.from(
    { length: 8 },
    () => lane({ name: 'x', callers: new Callers({ host: '', port: 0 }), usage: async () => null, stop: async () => {} }, work, 'unknown')
  )
  await t.rejects(interleave(session, lanes, closed(1), { ...plan, windowMs: 500 }), /idle sockets/)
})

t.test('totals are read from the samples with the labels asked for', async t => {
  const text = '# HELP a_total x\na_total{k="1",o="ok"} 2\na_total{k="2",o="ok"} 3\na_total{k="2",o="no"} 7\na_totals{o="ok"} 9\nb 4\n'
  t.equal(total(text, 'a_total', 'o="ok"'), 5)
  t.equal(total(text, 'a_total'), 12)
  t.equal(total(text, 'b'), 4)
  t.equal(total(text, 'c'), 0)
})
