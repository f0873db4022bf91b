/** The gateway in several processes behind one port, as Node's cluster module hands connections out. */
import cluster, { type Worker } from 'node:cluster'
import { portOf, serve, settings, usage, type Usage } from './serve.js'

/** The next message of a worker that has all the fields named. */
async function told (worker: Worker, field: string): Promise<unknown> {
  return await new Promise(resolve => {
    const listen = (message: unknown): void => {
      if (typeof message !== 'object' || message === null || !(field in message)) return
      worker.off('message', listen)
      resolve(Reflect.get(message, field))
    }
    worker.on('message', listen)
  })
}

function add (sum: Usage, value: unknown): Usage {
  const read = (name: keyof Usage): number => typeof value === 'object' && value !== null
    ? sum[name] + Number(Reflect.get(value, name))
    : NaN
  return { cpuUs: read('cpuUs'), rssBytes: read('rssBytes'), peakRssBytes: read('peakRssBytes'), markCompacts: read('markCompacts') }
}

if (cluster.isPrimary) {
  const workers = Array.from({ length: settings.size }, () => cluster.fork())
  const [port] = await Promise.all(workers.map(async worker => await told(worker, 'port')))
  serve(portOf({ port: Number(port) }), {
    usage: async () => {
      const values = workers.map(async worker => {
        const value = told(worker, 'value')
        worker.send({ id: 1, ask: 'usage' })
        return await value
      })
      return (await Promise.all(values)).reduce<Usage>(add, usage())
    },
  })
} else {
  await import('./chain.js')
}
