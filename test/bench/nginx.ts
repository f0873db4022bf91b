/** nginx in front of the mock upstream, where it is installed. Its cost is read from the kernel. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../helpers/free-port.js'
import { Callers } from './load/generators.js'
import { placement } from './machine.js'
import type { Usage } from './servers/serve.js'
import { endOf, type Target } from './target.js'

const config = (port: number, upstream: string, folder: string): string => `
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_timeout 75s;
  keepalive_requests 100000000;
  client_max_body_size 64m;
  client_body_buffer_size 64k;
  proxy_max_temp_file_size 0;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream mock { server ${upstream}; keepalive 256; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://mock;
      proxy_http_version 1.1;
      proxy_set_header connection "";
      proxy_buffering off;
    }
  }
}
`

/** nginx runs as a master and one worker, each of one thread. */
function processes (master: number): number[] {
  const children = readFileSync(`/proc/${master}/task/${master}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return [master, ...children.map(Number)]
}

function usageOf (pids: readonly number[]): Usage {
  const usage = { cpuUs: 0, rssBytes: 0, peakRssBytes: 0, markCompacts: 0 }
  for (const pid of pids) {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const kilobytes = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0)
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      usage.cpuUs += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1000
    }
    usage.rssBytes += kilobytes('VmRSS') * 1024
    usage.peakRssBytes += kilobytes('VmHWM') * 1024
  }
  return usage
}

export async function startNginx (upstream: string): Promise<Target> {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, config(port, new URL(upstream).host, folder))
  const command = ['nginx', '-p', folder, '-c', file, '-g', 'daemon off;']
  const [program = 'nginx', ...rest] = placement.server === null ? command : ['taskset', '-c', String(placement.server), ...command]
  const child = spawn(program, rest, { stdio: ['ignore', 'ignore', 'inherit'] })
  const gone = new Promise(resolve => child.once('exit', resolve))
  const pid = child.pid ?? 0
  while (endOf(child) === null && processes(pid).length < 2) await sleep(20)
  if (endOf(child) !== null) throw new Error(`nginx did not start: ${endOf(child)}`)
  const callers = new Callers({ host: '127.0.0.1', port })
  return {
    name: 'n',
    callers,
    usage: async () => usageOf(processes(pid)),
    end: () => endOf(child),
    stop: async () => {
      callers.close()
      child.kill('SIGTERM')
      await gone
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
