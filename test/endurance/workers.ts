/** Workers that are killed and configurations that change, under load: what was begun is whole or cut, and every count is right. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { createCaller, inParallel, type Answer } from './caller.js'
import { startProvider } from './provider.js'
import { sum, temporaryFolder, type Report } from './processes.js'
import { secret } from '../helpers/gateway.js'
import { launch, originOf, program, until } from '../helpers/launch.js'

interface Options {
  readonly workers: number
  readonly reloads: number
  readonly kills: number
  readonly atOnce: number
  readonly everyMs: number
}

interface Load {
  /** Resolves with every answer once the last is there. */
  readonly end: () => Promise<Answer[]>
}

/** A worker that is killed takes what it counted in its last turn with it: less than its callers at that moment. */
export async function workersUnderFire ({ workers, reloads, kills, atOnce, everyMs }: Options): Promise<Report> {
  const folder = temporaryFolder()
  const provider = await startProvider({ delayMs: () => 5 })
  const file = `${folder.path}/gateway.yaml`
  const write = (keys: number): void => writeFileSync(file, JSON.stringify(configOf(provider.url, folder.path, workers, keys)))
  write(1)
  // Not as other gateways here: what they tell of their ledger goes where a worker has its channel to the primary.
  const gateway = launch({ teardown: () => {} }, program, ['start', '--config', file], { PORT: '0' })
  const origin = await originOf(gateway)
  const pid = Number(gateway.process.pid)
  const { call, close } = createCaller(atOnce)
  const violations: string[] = []
  const mustBe = (what: string, is: number, wanted: number): void => {
    if (is !== wanted) violations.push(`${what}: ${is} instead of ${wanted}`)
  }
  let phase = 0
  const load = (): Load => {
    phase += 1
    const over = new AbortController()
    const answers: Answer[] = []
    const done = inParallel(atOnce, atOnce, async (caller) => {
      for (let index = 0; !over.signal.aborted; index += 1) {
        answers.push(await call(origin, { secret, tag: `p${phase}-${caller}-${index}`, stream: index % 3 === 0 }))
      }
    })
    return {
      end: async () => {
        over.abort()
        await done
        return answers
      },
    }
  }

  const reloading = load()
  for (let reload = 0; reload < reloads; reload += 1) {
    write(1 + reload % 2)
    gateway.process.kill('SIGHUP')
    await pause(everyMs)
  }
  const reloaded = tallyOf(await reloading.end())
  const afterReloads = await countedBy(origin)
  mustBe('requests cut while the configuration changed', reloaded.cut, 0)
  mustBe('requests refused while the configuration changed', reloaded.refused, 0)
  mustBe('counted by then', afterReloads.ok, reloaded.whole)
  mustBe('tokens by then', afterReloads.tokens, sum(provider.reported.values()))

  const killing = load()
  for (let kill = 0; kill < kills; kill += 1) {
    await pause(everyMs)
    const pids = workersOf(pid)
    const victim = Number(pids[kill % pids.length])
    process.kill(victim, 'SIGKILL')
    await until(gateway.out, /a worker serves in the place/)
    mustBe('workers after a kill', workersOf(pid).length, workers)
  }
  const killed = tallyOf(await killing.end())
  const afterKills = await countedBy(origin)
  const missing = reloaded.whole + killed.whole - afterKills.ok
  mustBe(`requests refused while workers were killed (${killed.words})`, killed.refused, 0)
  if (killed.cut > kills * atOnce || missing > kills * atOnce) violations.push(`${killed.cut} cut and ${missing} missing: more than ran`)
  if (afterKills.ok > provider.seen.size) violations.push(`${afterKills.ok} counted of ${provider.seen.size}`)

  const before = sum(provider.reported.values())
  const calm = load()
  await pause(everyMs * 2)
  const after = tallyOf(await calm.end())
  const atLast = await countedBy(origin)
  mustBe('counted after the kills', atLast.ok - afterKills.ok, after.whole)
  mustBe('tokens after the kills', atLast.tokens - afterKills.tokens, sum(provider.reported.values()) - before)
  mustBe('active at last', atLast.active, 0)
  mustBe('sent twice', [...provider.seen.values()].filter((times) => times > 1).length, 0)
  gateway.process.kill('SIGTERM')
  mustBe('exit code', Number(await gateway.exited), 0)
  mustBe('workers left', workersOf(pid).length, 0)
  await close()
  await provider.close()
  folder.remove()
  return { violations, slow: [], workers, reloads, kills, reloaded, killed, missing, after }
}

function configOf (url: string, path: string, workers: number, keys: number): object {
  return {
    log: { level: 'warn' },
    listen: { workers },
    upstreams: { main: { url, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }, { id: 'two', group: 'all', secret: `${secret}-2` }].slice(0, keys),
    state: { engine: 'lmdb', path: `${path}/data` },
    usage: { includeUsage: true },
    forward: { drain: { maxMs: 0 } },
    // What a busy machine has it refuse is not looked at here.
    overload: { maxLoopDelayMs: 0 },
  }
}

function tallyOf (answers: readonly Answer[]): { whole: number, cut: number, refused: number, words: string } {
  const cut = answers.filter(({ whole }) => !whole).length
  const whole = answers.filter((answer) => answer.whole && answer.status === 200).length
  const refused = answers.filter((answer) => answer.whole && answer.status !== 200)
  return {
    whole,
    cut,
    refused: refused.length,
    words: [...new Set(refused.map(({ status, error }) => `${status} ${/"code":"(\w+)"/.exec(error)?.[1]}`))].join(),
  }
}

/** Processes whose parent is `pid`. */
function workersOf (pid: number): number[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && parentOf(name) === pid).map(Number)
}

function parentOf (pid: string): number {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return 0
  }
}

async function countedBy (origin: string): Promise<{ ok: number, tokens: number, active: number }> {
  const text = await (await fetch(`${origin}/metrics`)).text()
  const total = (pattern: RegExp): number => sum([...text.matchAll(pattern)].map(([, value]) => Number(value)))
  return {
    ok: total(/^llm_gateway_requests_total\{[^}]*outcome="ok"\} (\d+)$/gm),
    tokens: total(/^llm_gateway_tokens_total\{[^}]*\} (\d+)$/gm),
    active: total(/^llm_gateway_active_requests\{[^}]*\} (\d+)$/gm),
  }
}
