import t from 'tap'
import { originForm } from '../../../plugins/core/url/origin-form.js'

t.test('an address before the path goes where it names the host, and stays where anybody could read another one there', (t) => {
  const path = '/v1/messages?a=http://h/b'
  for (const [target, host, expected] of [
    [path, 'h', path],
    [`http://h${path}`, 'h', path],
    [`http://h${path}`, 'H', path],
    [`HTTPS://H:8080${path}`, 'h:8080', path],
    [`http://[::1]${path}`, '[::1]', path],
    [`http://h/${path}`, 'h', `/${path}`],
    ['http://h/', 'h', '/'],
  ] as const) {
    t.equal(originForm(target, host), expected, target)
  }
  for (const [target, host] of [
    [`http://x${path}`, 'h'], [`http://h:80${path}`, 'h'], [`http://u@h${path}`, 'h'], [`http://u@h${path}`, 'u@h'], [`http://${path}`, ''],
    [`http://h${path}`, undefined], [`ftp://h${path}`, 'h'], [`http:/h${path}`, 'h'], [`h${path}`, 'h'], ['*', 'h'], ['http://h', 'h'],
    ['http://h?a=/v1/messages', 'h'], ['http://h\\x/v1/messages', 'h'], ['http://h#/v1/messages', 'h'], ['', ''],
    ['http://h?/v1/messages', 'h?'], ['http://h\\x/v1/messages', 'h\\x'], ['http://h#/v1/messages', 'h#'],
  ] as const) {
    t.equal(originForm(target, host), target, target)
  }
  t.end()
})
