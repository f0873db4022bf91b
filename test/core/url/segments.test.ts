import t from 'tap'
import { readings } from '../../../plugins/core/url/segments.js'

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
})
