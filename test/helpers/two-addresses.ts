import dns from 'node:dns'
import type { FastifyInstance } from 'fastify'

interface Scope {
  teardown: (close: () => unknown) => unknown
}

export interface Address {
  readonly address: string
  readonly port: number
}

const both = [{ address: '127.0.0.1', family: 4 }, { address: '127.0.0.2', family: 4 }]

/** Listens where a name has two addresses, as `localhost` has on many machines: at the second Fastify does so by a further server. */
export async function listenAtTwo (t: Scope, app: FastifyInstance): Promise<Address[]> {
  const { lookup } = dns
  t.teardown(() => { dns.lookup = lookup })
  Reflect.set(dns, 'lookup', (...args: [name: string, options: unknown, done: (error: null, found: object) => void]) => {
    // From Node 22 a server asks so for its own address, too.
    if (args[0] === 'localhost' && Reflect.get(Object(args[1]), 'all') === true) args[2](null, both)
    else Reflect.apply(lookup, dns, args)
  })
  await app.listen({ port: 0 })
  return app.addresses().flatMap((at) => typeof at === 'string' ? [] : at)
}
