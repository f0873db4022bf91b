/**
 * Prints what the runner is to run: for `npm test` the tests that are not slow, for `npm run test:slow` those that are (`slow`), for
 * `npm run test:all` both (`all`). Whoever adds a test file need not list it.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { argv } from 'node:process'

const ending = '.test.ts'
const folder = '.tap/together'
/** As many lines of tests as run in some ten seconds: each process loads the gateway anew, but nothing runs beside the last one. */
const groupLines = 1_300

const tests = readdirSync('test', { recursive: true })
  .filter((file) => file.endsWith(ending) && !file.startsWith('sdk/'))
  .map((file) => `test/${file}`)
  .sort()

/** They start or kill programs, need a browser or a cluster, compile or pack the package, wait for clocks, or load for a while. */
const slow = [
  ...named(
    'auth/store-load', 'bin/add-parts', 'bin/keys-push', 'bin/missing-packages', 'bin/process', 'bin/workers', 'bin/workers-state',
    'conformance/command', 'conformance/kit', 'console/browser', 'core/errors/refused-upload', 'examples/cloud-tokens', 'examples/cluster',
    'examples/demo', 'examples/docker', 'examples/kubernetes', 'examples/observability', 'examples/prometheus', 'examples/systemd',
    'forward/connection-queue', 'forward/slow-readers', 'limits/store-trouble', 'overload/overload', 'package', 'papers',
    'paths/bypass', 'standalone/operating', 'standalone/plain-lines', 'standalone/store-passwords', 'standalone/workers', 'state/lmdb/lock',
    'state/lmdb/spent', 'state/redis/cluster-login', 'state/redis/sentinel', 'state/redis/trouble', 'state/usage-store-trouble',
    'types/api', 'types/option-docs', 'upstreams/deadline', 'upstreams/schedule', 'usage/corpus', 'usage/memory', 'usage/traffic'
  ),
  ...tests.filter((file) => file.startsWith('test/endurance/')),
]

/** They change the process that they run in, which no other test is to be in. */
const alone = named('state/lmdb/lmdb')

function named (...names) {
  const files = names.map((name) => `test/${name}${ending}`)
  const gone = files.filter((file) => !existsSync(file))
  if (gone.length > 0) throw new Error(`not there: ${gone.join(', ')}`)
  return files
}

/** All others, cut into groups. Neighbours stay together: they share most of what they load. */
function groups () {
  const parts = []
  let lines = groupLines
  for (const file of tests.filter((file) => !slow.includes(file) && !alone.includes(file))) {
    if (lines >= groupLines) {
      parts.push([])
      lines = 0
    }
    parts.at(-1).push(file)
    lines += readFileSync(file, 'utf8').split('\n').length
  }
  return parts
}

function write (files, i) {
  const path = `${folder}/${i + 1}.js`
  writeFileSync(path, `import { together } from '../../test/loader/together.js'\n\nawait together(${JSON.stringify(files, null, 2)})\n`)
  return path
}

function grouped () {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  // Those that take longest are late in the alphabet, and nothing is left to run beside the last.
  return [...groups().map(write).reverse(), ...alone]
}

const wanted = { slow: () => slow, all: () => [...slow, ...grouped()] }[argv[2]] ?? grouped
console.log(wanted().join(' '))
