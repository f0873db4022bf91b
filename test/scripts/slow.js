/**
 * The tests that kill processes, need a browser or a cluster, pack the package, or load for a while: `npm run test:slow` runs them,
 * `npm test` all others. Prints their files, or with `--exclude` what leaves them out.
 */
import { existsSync, readdirSync } from 'node:fs'
import { argv } from 'node:process'

const ending = '.test.ts'

const slow = [
  'auth/store-load', 'bin/keys-push', 'bin/process', 'bin/workers', 'bin/workers-state', 'console/browser', 'examples/cluster',
  'examples/demo', 'examples/docker', 'examples/kubernetes', 'examples/observability', 'examples/prometheus', 'examples/systemd',
  'limits/store-trouble', 'package', 'standalone/workers', 'state/lmdb-spent', 'state/redis-trouble', 'state/usage-store-trouble',
  'upstreams/deadline', 'upstreams/schedule', 'usage/memory', 'usage/traffic',
  ...readdirSync('test/endurance').filter((file) => file.endsWith(ending)).map((file) => `endurance/${file.slice(0, -ending.length)}`),
]

const files = slow.map((name) => `test/${name}${ending}`)
const gone = files.filter((file) => !existsSync(file))
if (gone.length > 0) throw new Error(`not there: ${gone.join(', ')}`)

const before = argv[2] === '--exclude' ? '--exclude=' : ''
console.log(files.map((file) => before + file).join(' '))
