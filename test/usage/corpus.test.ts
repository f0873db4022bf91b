/** Recorded provider replies that are kept beside the project, not in it: without them there is nothing to do here. */
import t from 'tap'
import { firstWrongCoding, firstWrongSplit, repliesIn } from './truth.js'

const recordings = repliesIn('corpus')

for (const { file, protocol, bytes, truth } of recordings) {
  t.test(file, async (t) => {
    t.strictSame(firstWrongSplit(protocol, bytes, truth), null, 'every split')
    t.strictSame(await firstWrongCoding(protocol, bytes, truth), null, 'every content coding')
  })
}

if (recordings.length === 0) t.test('recorded replies', { skip: '../shared/corpus is not there' }, async () => {})
