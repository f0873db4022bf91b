import { createRequire } from 'node:module'
import t from 'tap'
import * as undici from 'undici'
import { undiciParts } from '../../plugins/forward/undici.js'

const require = createRequire(import.meta.url)

t.test('the parts of undici are those of its index', async (t) => {
  const loaded: string[] = []
  const { Agent, errors, util } = undiciParts((name) => {
    loaded.push(name)
    return require(name)
  })
  t.notOk(loaded.includes('undici'), 'each from a file of its own')
  t.equal(Agent, undici.Agent)
  t.equal(errors, undici.errors)
  t.equal(util.headerNameToString, undici.util.headerNameToString)
  t.equal(Agent.prototype.request, undici.Dispatcher.prototype.request)
})

t.test('an undici whose files stand elsewhere is loaded whole', async (t) => {
  const parts = undiciParts((name) => {
    if (name !== 'undici') throw new Error(`Cannot find module '${name}'`)
    return undici
  })
  t.equal(parts, undici)
})
