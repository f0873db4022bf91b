import t from 'tap'
import { didYouMean } from '../../../plugins/core/config/did-you-mean.js'

t.test('the nearest name is meant, and none where none is near', async (t) => {
  const names = ['chat', 'messages', 'requestsPerMinute', 'a']
  for (const [text, meant] of [
    ['caht', 'chat'], ['cha', 'chat'], ['chatt', 'chat'], ['chit', 'chat'], ['Messages', 'messages'], ['mesages', 'messages'],
    ['requestPerMinutes', 'requestsPerMinute'],
    ['x', null], ['', null], ['telepathy', null], ['toString', null],
  ] as const) t.equal(didYouMean(text, names), meant === null ? '' : `; did you mean ${meant}?`, text)
  t.equal(didYouMean('x', []), '')
})
