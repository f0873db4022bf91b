import t from 'tap'
import { hasDoubtfulFraming } from '../../../plugins/core/door/framing.js'

function isDoubtful (lines: Record<string, string | string[]>, httpVersion = '1.1'): boolean {
  const rawHeaders = Object.entries(lines).flatMap(([name, value]) => [value].flat().flatMap((each) => [name, each]))
  const headers = Object.fromEntries(Object.entries(lines).map(([name, value]) => [name.toLowerCase(), [value].flat()[0]]))
  return hasDoubtfulFraming({ headers, rawHeaders, httpVersion })
}

t.test('no host, several, and one that is none', async (t) => {
  t.equal(isDoubtful({}), true)
  t.equal(isDoubtful({}, '1.0'), false)
  t.equal(isDoubtful({}, '2.0'), false, 'there it is the authority')
  for (const host of ['h', 'h:80', '[::1]:80', 'a.example']) t.equal(isDoubtful({ Host: host }), false, host)
  for (const host of ['', 'h/', 'h\\', 'u@h', 'h?', 'h#', 'h,i', 'h i', 'h\ti']) {
    t.equal(isDoubtful({ host }), true, host)
    t.equal(isDoubtful({ host }, '1.0'), true, host)
  }
  t.equal(isDoubtful({ host: ['h', 'h'] }), true)
  t.equal(isDoubtful({ host: 'h', HOST: 'h' }), true)
  t.equal(isDoubtful({ host: 'h', test: 'h' }), false)
  t.equal(isDoubtful({ host: 'h', accept: 'host' }), false, 'a value is no name')
})

t.test('a body in another coding than chunked alone, or in that one where none is', async (t) => {
  for (const [coding, version, doubtful] of [
    ['chunked', '1.1', false], ['Chunked', '1.1', false], ['chunked', '1.0', true], ['gzip, chunked', '1.1', true],
    ['identity', '1.1', true],
  ] as const) {
    t.equal(isDoubtful({ host: 'h', 'transfer-encoding': coding }, version), doubtful, `${coding} ${version}`)
  }
})
