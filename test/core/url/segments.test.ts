import t from 'tap'
import { beforeVersions, endsInVersion, fromVersions, readings } from '../../../plugins/core/url/segments.js'

const read = (path: string): string[] => readings(path, true).map((segments) => segments.join('/'))

t.test('no two readings of a path are the same, as each costs as much as the path is long', async (t) => {
  for (const path of ['/a;b/c', `/${'a;/'.repeat(5_000)}`, '/a/../b', '/%61%2541/b', '/a\\b c', '/%zz']) {
    const found = read(path)
    t.equal(new Set(found).size, found.length, path.slice(0, 20))
  }
})

t.test('a path is read decoded any number of times, with and without its dots, blanks and parameters', async (t) => {
  t.strictSame(read('/a\\../b c'), ['a/../bc', 'bc'])
  t.strictSame(read('/a;x/b'), ['a', 'a/b'])
  t.strictSame(read('/%2561'), ['%2561', '%61', 'a'])
  t.strictSame(read('/%zz'), ['%zz'])
  t.strictSame(read('/%zz%6A%6a'), ['%zz%6A%6a', '%zzjj'], 'the rest of a broken one, too')
  t.strictSame(read('/%25252561'), ['%25252561', '%252561', '%2561', '%61', 'a'])
  for (const mark of ['#', '?']) {
    t.strictSame(read(`/a;b/c;p${mark}q/d`), ['a', 'a/c/d', 'a/c'], 'cut before or after its parameters are dropped')
    t.strictSame(read(`/a${mark}b\n/c`), ['a'], 'whatever comes behind the mark')
  }
  t.strictSame(read('/a;b\\c'), ['a', 'a/c'], 'a parameter ends where a segment does')
  t.strictSame(read('/a\tb%20c'), ['ab%20c', 'abc'])
  t.strictSame(read('/a/b/..'), ['a/b/..', 'a'])
  t.strictSame(read('/../a..b'), ['../a..b', 'a..b'])
})

t.test('the address before a path is left out, and is none within it', async (t) => {
  for (const address of ['http://h', 'H2+x-1.0://h:1']) t.strictSame(read(`${address}/v1/a`), ['v1/a'])
  t.strictSame(read('/x/http://h'), ['x/http:/h'])
})

t.test('for a router to which case does not count, each reading is in lower case', async (t) => {
  t.strictSame(readings('/A%42', false), [['a%42'], ['ab']])
  t.strictSame(readings('/A%42', true), [['A%42'], ['AB']])
})

t.test('the versions of a path are those at its end, or from the first one on', async (t) => {
  t.strictSame(['/a/v1/b/v1/v1beta/', '/v1', '/a/v1x'].map(beforeVersions), ['/a/v1/b', '', '/a/v1x'])
  t.strictSame(['/a/v1/b/v1beta/c', '/v1/a', '/a'].map(fromVersions), ['/v1/b/v1beta/c', '/v1/a', '/'])
  t.strictSame(['/a/v1', '/v1/a', '/v1/', ''].map(endsInVersion), [true, false, true, false])
})
