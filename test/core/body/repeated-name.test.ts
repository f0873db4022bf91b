import fc from 'fast-check'
import t from 'tap'
import { repeatedName } from '../../../plugins/core/body/repeated-name.js'

t.test('a name that an object holds twice is found with its path and line', async (t) => {
  for (const [text, path, line] of [
    ['{"a":1,"a":2}', ['a'], 1],
    ['{\n"a": 1,\n"\\u0061": 2 }', ['a'], 3],
    ['{"a":[1,{"b":"}","c":[],\n"b" : {}}]}', ['a', 1, 'b'], 2],
    ['[[],{"":1},{"":1,"":2}]', [2, ''], 1],
    ['{"\\"a\\\\":1,"x":"a:b","\\"a\\\\":2}', ['"a\\'], 1],
    ['{"__proto__":1,"__proto__":1}', ['__proto__'], 1],
  ] as const) {
    t.strictSame(repeatedName(text), { path, line }, text)
  }
  for (const text of ['{}', '"a"', '1', '{"a":{"a":"a"},"b":["a","a",{"a":1},{"a":1}],"A":0}']) t.equal(repeatedName(text), null, text)
})

t.test('nothing is found in what a serializer writes', async () => {
  fc.assert(fc.property(fc.json(), (text) => repeatedName(text) === null))
})
