/** A provider that answers as none should: nobody gets what was meant for another, and nothing grows. */
import { createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { secret } from '../helpers/gateway.js'
import { bodyOf, createCaller, inParallel } from './caller.js'
import { launchGateway, residentMb, temporaryFolder, type Report } from './processes.js'

const bomb = gzipSync(Buffer.alloc(4 * 1024 * 1024, ' '))

type Evil = (tag: string) => ReadonlyArray<string | Buffer>

function reply (tag: string, more = ''): string {
  const body = JSON.stringify({
    id: tag, object: 'chat.completion', model: 'm', choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  })
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`
}

const evils: Readonly<Record<string, Evil>> = {
  plain: (tag) => [reply(tag)],
  'bytes behind the end': (tag) => [`${reply(tag)}more of ${tag}`],
  'a second reply': (tag) => [reply(tag) + reply(`${tag}-again`)],
  'two lengths': (tag) => [reply(tag, 'content-length: 5\r\n')],
  'a length and chunks': (tag) => [reply(tag, 'transfer-encoding: chunked\r\n')],
  'a broken chunk': (tag) => [`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n${tag}`],
  'headers without end': (tag) => [`HTTP/1.1 200 OK\r\n${`x-filler: ${tag}${'.'.repeat(500)}\r\n`.repeat(200)}`],
  'a bomb': () => [
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`, bomb,
  ],
  'no status': (tag) => [`${tag}\r\n\r\n`],
  'an end in the middle': (tag) => [reply(tag).slice(0, -20)],
  nothing: () => [],
}

/** Where the connection is closed behind the reply: all of these would have a client wait. */
const closing = new Set(['headers without end', 'no status', 'an end in the middle', 'nothing', 'a broken chunk'])

const kinds = Object.keys(evils)

/** What a process keeps comes and goes by some ten megabytes: the most of one half of the run is compared with the most of the other. */
const parts = 5
/** Twice what lives. With room to spare V8 collects later and later, which is no growth. */
const heapMb = 96

export async function evilReplies ({ requests, atOnce }: { readonly requests: number, readonly atOnce: number }): Promise<Report> {
  const folder = temporaryFolder()
  let count = 0
  const server = createServer((socket) => answer(socket, () => kinds[count++ % kinds.length] ?? 'plain'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = Object(server.address())
  const gateway = await launchGateway(folder.path, {
    upstreams: { main: { url: `http://127.0.0.1:${port}`, credential: 'provider-key' } },
    groups: { all: { protocols: ['chat_completions'] } },
    keys: [{ id: 'one', group: 'all', secret }],
    state: { engine: 'memory' },
    log: { level: 'fatal' },
  }, 0, { NODE_OPTIONS: `--max-old-space-size=${heapMb}` })
  const { call, close } = createCaller(atOnce)
  const violations: string[] = []
  const statuses: Record<number, number> = {}
  const round = async (first: number, many: number): Promise<void> => {
    await inParallel(many, atOnce, async (i) => {
      const tag = `t${first + i}`
      const { status, text } = await call(gateway.origin, { secret, tag })
      statuses[status] = (statuses[status] ?? 0) + 1
      const others = [...text.matchAll(/t\d+/g)].filter(([found]) => found !== tag)
      if (others.length > 0) violations.push(`${tag} got ${String(others[0])}`)
    })
  }
  const half = async (first: number): Promise<number> => {
    const many = Math.ceil(requests / 2 / parts)
    let most = 0
    for (let part = 0; part < parts; part++) {
      await round(first + part * many, many)
      most = Math.max(most, residentMb(gateway.pid))
    }
    return most
  }
  const before = await half(0)
  const grownMb = await half(requests) - before
  const alive = (await fetch(`${gateway.origin}/health`)).status
  if (alive !== 200) violations.push(`/health is ${alive} afterwards`)
  if (grownMb > 20) violations.push(`memory grew by ${grownMb} MB`)
  await close()
  await gateway.kill('SIGTERM')
  server.close()
  folder.remove()
  return { violations, slow: [], requests, statuses, grownMb }
}

function answer (socket: Socket, next: () => string): void {
  let text = ''
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    if (end < 0 || text.length < end + 4 + bodyOf({ secret, tag: '' }).length) return
    const tag = String(/"user":"(\w+)"/.exec(text)?.[1])
    text = ''
    const kind = next()
    for (const bytes of evils[kind]?.(tag) ?? []) socket.write(bytes)
    if (closing.has(kind)) socket.end()
  })
}
