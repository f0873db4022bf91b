/**
 * The long runs of `test/endurance/`, with real gateways, real stores and real signals. Each prints its figures as JSON, and exits
 * with 1 where a rule was broken or a time was missed:
 *
 *     npm run endurance -- NAME [NAME...] [{"option": number}]
 *     npm run endurance -- smuggling '{"baseUrl": "http://127.0.0.1:8080"}'    against a gateway that runs
 */
import { argv, exit, stderr, stdout } from 'node:process'
import { checks } from '../endurance/checks.js'

const given = argv.slice(2)
const options = given.filter((text) => text.startsWith('{')).map((text): object => JSON.parse(text))
const names = given.filter((text) => !text.startsWith('{'))
const unknown = names.find((name) => !Object.hasOwn(checks, name))
if (names.length === 0 || unknown !== undefined) {
  const list = Object.entries(checks).map(([name, { what }]) => `  ${name.padEnd(20)} ${what}\n`)
  stderr.write(`${unknown === undefined ? 'Name a check' : `There is no check ${unknown}`}:\n${list.join('')}`)
  exit(2)
}
let failed = false
for (const name of names) {
  const report = await checks[name]?.full(Object.assign({}, ...options))
  if (report === undefined) continue
  const { violations, slow, ...figures } = report
  stdout.write(`${name} ${JSON.stringify({ ...figures, violations: violations.slice(0, 20), slow: slow.slice(0, 20) }, null, 1)}\n`)
  failed ||= violations.length + slow.length > 0
}
exit(failed ? 1 : 0)
