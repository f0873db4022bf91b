import { AsyncLocalStorage } from 'node:async_hooks'
import t, { type Test } from 'tap'
import { Threads, type ThreadOptions } from '../../plugins/validation/threads.js'

/** A thread that does as it is told. */
const source = `
  import { parentPort, threadId, workerData } from 'node:worker_threads'
  parentPort.on('message', ({ act, bytes }) => {
    if (act === 'exit') process.exit(1)
    if (act === 'throw') throw new TypeError('what it threw')
    if (act === 'fill') for (const kept = [];;) kept.push(new Array(1e5).fill(1.5))
    if (act === 'hang') for (;;);
    const started = Date.now()
    while (act === 'work' && Date.now() - started < 50);
    const answer = { bytes, threadId, workerData, inherited: [...process.execArgv, ...Object.keys(process.env)] }
    parentPort.postMessage(answer, bytes === undefined ? [] : [bytes.buffer])
  })`

interface Answer {
  bytes: Uint8Array
  threadId: number
  workerData: unknown
  inherited: string[]
}

function start (t: Test, options: Partial<ThreadOptions> = {}): Threads<Answer> {
  const threads = new Threads<Answer>({
    file: new URL(`data:text/javascript,${encodeURIComponent(source)}`),
    data: 'told',
    maxThreads: 1,
    heapMb: 64,
    idleMs: 60_000,
    answerMs: 60_000,
    maxWaitingBytes: 1_000,
    ...options,
  })
  t.teardown(() => threads.close())
  return threads
}

const wanted = (): boolean => true

async function ask (threads: Threads<Answer>, act: string, length = 1, isWanted = wanted): Promise<Answer | null> {
  const bytes = new Uint8Array(length).fill(7)
  return await threads.ask({ act, bytes }, bytes.buffer, isWanted)
}

t.test('bytes are given away and come back', async (t) => {
  const threads = start(t)
  const bytes = new Uint8Array([1, 2, 3])
  const answer = threads.ask({ bytes }, bytes.buffer, wanted)
  t.equal(bytes.length, 0, 'nothing is copied')
  const { bytes: back, workerData, inherited } = Object(await answer)
  t.strictSame([back, workerData, inherited], [new Uint8Array([1, 2, 3]), 'told', []], 'and nothing of the process is inherited')
  const [first, second] = await Promise.all([ask(threads, 'work'), ask(threads, 'work')])
  t.equal(first?.threadId, second?.threadId, 'one after the other')
})

t.test('as many threads as there is work for, and no more than allowed', async (t) => {
  const threads = start(t, { maxThreads: 2 })
  const answers = await Promise.all([...Array(6)].map(async () => await ask(threads, 'work')))
  t.equal(new Set(answers.map((answer) => answer?.threadId)).size, 2)
})

t.test('what nobody wants any more is not begun', async (t) => {
  const threads = start(t)
  const running = ask(threads, 'work')
  const left = ask(threads, 'exit', 1, () => false)
  const next = ask(threads, 'work')
  t.equal(await left, null)
  t.ok(await running)
  t.ok(await next)
})

t.test('what nobody wants any more is no trouble where the threads end', async (t) => {
  const threads = start(t)
  let isWanted = true
  const asked = ['hang', 'answer'].map(async (act) => await ask(threads, act, 1, () => isWanted))
  isWanted = false
  await threads.close()
  t.strictSame(await Promise.all(asked), [null, null])
})

t.test('readers wait while too much is waiting', async (t) => {
  const threads = start(t)
  const running = ask(threads, 'work', 900)
  t.equal(threads.isFull, false, 'what is being worked on does not wait')
  const waiting = [ask(threads, 'work', 900), ask(threads, 'work', 900)]
  t.equal(threads.isFull, true)
  const room = new Promise<void>((resolve) => threads.onRoom(resolve))
  await running
  await room
  t.equal(threads.isFull, false)
  await Promise.all(waiting)
})

for (const [act, why] of [['exit', /has ended/], ['throw', /what it threw/], ['fill', /memory limit/], ['hang', /has ended/]] as const) {
  t.test(`a thread that dies takes one question with it: ${act}`, async (t) => {
    const threads = start(t, { answerMs: act === 'hang' ? 1_000 : 60_000 })
    const lost = ask(threads, act)
    const next = ask(threads, 'answer')
    await t.rejects(lost, { message: why })
    t.ok(await next)
    t.ok(await ask(threads, 'answer'))
  })
}

t.test('a thread without work ends, and another one begins with the next', async (t) => {
  const threads = start(t, { idleMs: 1 })
  const first = await ask(threads, 'answer')
  for (let waits = 0; waits < 100; waits += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    const next = await ask(threads, 'answer')
    if (next?.threadId !== first?.threadId) return
  }
  t.fail('the first thread never ended')
})

t.test('a thread that cannot be started is told to whoever asked', async (t) => {
  const threads = start(t, { file: new URL('http://nowhere.example/thread.js') })
  await t.rejects(ask(threads, 'answer'))
  await t.rejects(ask(threads, 'answer'))
})

t.test('nothing is answered once the threads are closed', async (t) => {
  const threads = start(t)
  const asked = [ask(threads, 'hang'), ask(threads, 'answer')]
  const refused = Promise.all(asked.map(async (answer) => await t.rejects(answer)))
  await threads.close()
  await refused
  await t.rejects(ask(threads, 'answer'), { message: /closed/ })
})

t.test('an answer is read in the context of whoever asked', async (t) => {
  const threads = start(t)
  const store = new AsyncLocalStorage<string>()
  const contexts = ['first', 'second'].map(async (name) => await store.run(name, async () => {
    await ask(threads, 'work')
    return store.getStore()
  }))
  t.strictSame(await Promise.all(contexts), ['first', 'second'])
})
