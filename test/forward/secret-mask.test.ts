/** Which ways of writing a secret are found, and that no other byte is changed. */
import t from 'tap'
import { PieceMask, SecretSearch } from '../../plugins/forward/secret-mask.js'
import { cutAt } from '../usage/meter-reply.js'

const secret = 'sk-a/b+c&d<e>f"g\'h'

function eachLetter (write: (code: number, letter: string) => string): string {
  return [...secret].map((letter) => write(letter.charCodeAt(0), letter)).join('')
}

const names: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' }
const hexOf = (code: number): string => code.toString(16)

const written = [
  secret,
  JSON.stringify(JSON.stringify(secret)).slice(3, -3),
  encodeURIComponent(encodeURIComponent(encodeURIComponent(secret))),
  eachLetter((code) => `%${hexOf(code)}`),
  eachLetter((code) => `\\\\\\u00${hexOf(code).toUpperCase()}`),
  eachLetter((code) => `\\x${hexOf(code)}`),
  eachLetter((code) => `&#${code};`),
  eachLetter((code) => `\\\\\\u0026amp;#X0000${hexOf(code)};`),
  eachLetter((_, letter) => letter in names ? `&${names[letter]};` : letter),
  Buffer.from(secret).toString('hex'),
]

const around = [
  ['', ''], ['key=', ' & 50% of \\u00zz &#12 &am \\x0\n'], ['%2', '%'], ['\n\\\\\\ ', '\\'], ['\n\\\\\\\\x', ''], ['&#x', '&'],
]

t.test('a secret is masked in each way of writing it, wherever it is cut, and nothing else', async (t) => {
  for (const text of written) {
    for (const [before = '', after = ''] of around) {
      const bytes = Buffer.from(before + text + after)
      const wrong = [...bytes.keys()].filter((at) => {
        const mask = new PieceMask(new SecretSearch([secret]))
        const out = Buffer.concat([...cutAt(bytes, [at]).map((piece) => mask.push(piece)), mask.end()]).toString()
        return out !== before + '*'.repeat(text.length) + after
      })
      t.strictSame(wrong, [], before + text)
    }
  }
})

t.test('in base64 all is masked but characters that hold bits of other bytes', async (t) => {
  for (const before of ['', 'a', 'ab', 'abc', 'user:']) {
    for (const form of ['base64', 'base64url'] as const) {
      const text = Buffer.from(`${before}${secret}\u00ff\u00fe`).toString(form)
      const out = new SecretSearch([secret]).masked(Buffer.from(text)).toString()
      t.ok(out.includes('*'.repeat(22)), out)
      t.equal(out.replaceAll('*', '').length, text.length - out.split('*').length + 1)
    }
  }
})

t.test('what only looks like escapes is left as it is', async (t) => {
  for (const text of [
    '', '\\', '\\\\\\', '\\u00', '\\u00g1', '\\x4', '%', '%2', '%25', '%2525%', '&', '&amp', '&amp;', '&#', '&#;', '&#x;', '&#xg;', '&#1f;',
    '&#00000000000;', '&#99', '&lt', 'sk-a/b+c', '73-6b', '\\u0026', '\\u0026#',
  ]) {
    const bytes = Buffer.from(text)
    t.equal(new SecretSearch([secret]).masked(bytes), bytes, text)
  }
})

t.test('a secret with escapes or other letters than ASCII in it is masked as it may be repeated, wherever it is cut', async (t) => {
  for (const [secret, text] of [
    ['pa\\ssword', 'pa\\\\ssword'], ['pass\\-word', 'pass\\\\-word'], ['ab%41cdefg', 'ab%2541cdefg'], ['ab&lt;cdefg', 'ab&amp;lt;cdefg'],
    ['ab&cd<efgh', 'ab&amp;amp;cd&amp;lt;efgh'], ['clé-secrète', 'clé-secrète'], ['clé-secrète', 'cl\\u00e9-secr\\u00E8te'],
    ['clé-秘密-12', 'cl\\u00e9-\\u79d8\\u5bc6-12'], ['秘密の鍵です九九', encodeURIComponent(encodeURIComponent('秘密の鍵です九九'))],
  ] as const) {
    const bytes = Buffer.from(text)
    const wrong = [...bytes.keys()].filter((at) => {
      const mask = new PieceMask(new SecretSearch([secret]))
      const out = Buffer.concat([...cutAt(bytes, [at]).map((piece) => mask.push(piece)), mask.end()]).toString()
      return out !== '*'.repeat(bytes.length)
    })
    t.strictSame(wrong, [], text)
  }
})

t.test('what is left of a secret without its escapes is not masked if it is short', async (t) => {
  const bytes = Buffer.from('abc ')
  for (const secret of ['%61%62%63', '\\u0020\\u0020']) t.equal(new SecretSearch([secret]).masked(bytes), bytes, secret)
})
