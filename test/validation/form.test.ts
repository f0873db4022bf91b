import fc from 'fast-check'
import t from 'tap'
import { endpoints, type Endpoint } from '../../plugins/protocols/index.js'
import { ModelCall } from '../../plugins/core/call/model-call.js'
import { Checker } from '../../plugins/validation/checker.js'
import { readForm } from '../../plugins/validation/form.js'
import { readOptions } from '../../plugins/validation/options.js'
import { BodyRefusal } from '../../plugins/validation/body-refusal.js'

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff, 0x0d, 0x0a, 0x2d, 0x2d])

function field (name: string, value: string): string {
  return `--X1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
}

function read (text: string | Buffer): Record<string, string> | string {
  const bytes = Buffer.from(text)
  const result = readForm(bytes, 'X1', ['model', 'stream', 'svg[model]'], 4)
  return result instanceof BodyRefusal
    ? result.error.message
    : Object.fromEntries([...result].map(([name, [start, end]]) => [name, bytes.toString('utf8', start, end)]))
}

const image = Buffer.concat([
  Buffer.from('--X1\r\nContent-Disposition: form-data; name="image[]"; filename="C:\\\\a \\"b\\".png"\r\nContent-Type: image/png\r\n\r\n'),
  png,
  Buffer.from('\r\n'),
])

t.test('the wanted fields are read among files and other fields', async (t) => {
  const form = Buffer.concat([
    Buffer.from(field('prompt', 'Add a hat\r\n--c')),
    image,
    Buffer.from(field('model', 'gpt-image-1') + field('stream', 'true') + '--X1--\r\n'),
  ])
  t.strictSame(read(form), { model: 'gpt-image-1', stream: 'true' })
  t.strictSame(read(field('model', 'ü') + '--X1--'), { model: 'ü' }, 'no line end after the last boundary')
  t.strictSame(read(field('model', '') + '--X1--\r\n\r\n'), { model: '' })
  t.strictSame(read(field('prompt', 'x') + '--X1--'), {})
  t.strictSame(read(field('_charset_', 'UTF-8') + field('model', 'm') + '--X1--'), { model: 'm' }, 'what a browser fills in')
  t.strictSame(read('--X1--\r\n'), {}, 'an empty form')
})

t.test('a form may begin with a line end, as those of UnityWebRequest and of multipart for Elixir do', async (t) => {
  t.strictSame(read(`\r\n${field('model', 'm')}--X1--\r\n`), { model: 'm' })
})

t.test('a form may have as many parts as the limit, and not one more', async (t) => {
  t.strictSame(read(`${field('a', '').repeat(3)}${field('model', 'm')}--X1--`), { model: 'm' })
  t.equal(read(`${field('a', '').repeat(5)}--X1--`), 'The form has more than 4 parts.')
})

t.test('a field that only begins like a path into an object is another one', async (t) => {
  t.strictSame(read(field('svg[model]', 'm') + field('svg[models]', 'b') + field('svg', 'c') + '--X1--'), { 'svg[model]': 'm' })
})

t.test('the ways in which clients write a part are read', async (t) => {
  const part = (...lines: string[]): string => `--X1\r\n${lines.join('\r\n')}\r\n\r\nm\r\n--X1--\r\n`
  t.strictSame(read(part('Content-Disposition: form-data; name=model')), { model: 'm' })
  t.strictSame(read(part('content-disposition:form-data;name="model"')), { model: 'm' })
  t.strictSame(read(part('Content-Type: text/plain; charset=utf-8', 'Content-Disposition: form-data; name="model"', 'Content-Length: 1')), {
    model: 'm',
  })
  for (const header of [
    'Content-Length: 1', 'Content-ID: 1', 'Content-Type: application/x-www-form-urlencoded', 'Content-Transfer-Encoding: 8bit',
    'content-transfer-encoding:Binary', 'Content-Type: text/plain; charset="UTF-8"',
    'Content-Type: text/plain; charset=ISO-8859-1', 'Content-Type: application/json', 'Content-Type: text/plain;charset=utf8;',
    'Content-Type: text/plain; format=flowed; charset=Windows-1252', 'Content-Type: text/plain; charset=ascii',
  ]) t.strictSame(read(part(header, 'Content-Disposition: form-data; name="model"')), { model: 'm' }, header)
  t.strictSame(read(part('Content-Transfer-Encoding: base64', 'Content-Disposition: form-data; name="image"; filename="a"')), {})
  for (const file of [
    'filename="ä.png"; filename*=utf-8\'\'%C3%A4.png', 'filename="model"', 'filename=model.png', 'filename="name=a model; n (1).png"',
    'filename=Tom\'s.png', 'filename="Tom\'s \\"n\\".png"', 'filename=""',
    'filename="a name=model.png"', 'filename="rename=n.png"; filename*=utf-8\'\'rename%3Dn.png', 'filename="6" pipe.png"',
    'filename=""a" b.png"', 'filename="C:\\6" pipe\\"',
    'filename="a.png"; modification-date="Sat, 28 Nov 2026 08:13:13 GMT"; size=3',
  ]) t.strictSame(read(part(`Content-Disposition: form-data; name="image"; ${file}`, 'Content-Type: image/png; name="a.png"')), {}, file)
})

t.test('a form that two readers could read differently is refused', async (t) => {
  const part = (head: string, value = 'm'): string => `--X1\r\n${head}\r\n\r\n${value}\r\n--X1--\r\n`
  const cases: Array<[what: string, form: string | Buffer, reason: RegExp]> = [
    ['nothing', '', /no body/],
    ['no boundary', 'model=m', /last boundary is missing/],
    ['no end', field('model', 'm'), /last boundary is missing/],
    ['an end that is cut', field('model', 'm') + '--X1-', /last boundary is missing/],
    ['another line before the first part', `\r\n\r\n${field('model', 'm')}--X1--`, /does not start/],
    ['bare line feeds before the first part', `\n\n${field('model', 'm')}--X1--`, /does not start/],
    ['text before the first part', `x\r\n${field('model', 'm')}--X1--`, /does not start/],
    ['text after the end', `${field('model', 'm')}--X1--\r\n${field('model', 'other')}--X1--`, /separated/],
    ['bare line feeds', part('Content-Disposition: form-data; name="model"').replaceAll('\r\n', '\n'), /separated/],
    [
      'a boundary after a bare line feed',
      part('Content-Disposition: form-data; name="image"; filename="a"', 'x\n--X1\nContent-Disposition: form-data; name="model"\n\nevil'),
      /separated/,
    ],
    [
      'a boundary that only ends its line',
      part(
        'Content-Disposition: form-data; name="image"; filename="a"', 'xx\n--X1\r\nContent-Disposition: form-data; name="model"\r\n\r\nevil'
      ),
      /separated/,
    ],
    ['a longer boundary', field('image', 'x\r\n--X1b') + '--X1--', /separated/],
    ['two letters behind a boundary', `--X1xx${field('model', 'm').slice(6)}--X1--`, /separated/],
    ['no value', '--X1\r\nContent-Disposition: form-data; name="model"\r\n\r\n--X1--', /separated/],
    ['its boundary without dashes', field('image', 'x\r\nX1\r\nContent-Disposition: form-data; name="model"\r\n\r\ndear') + '--X1--', /without dashes/],
    ['a part without headers', '--X1\r\n\r\nm\r\n--X1--', /no plain name/],
    ['headers that do not end', '--X1\r\nContent-Disposition: form-data; name="model"\r\n--X1--', /separated/],
    ['headers beyond 8 KiB', part(`X: ${'x'.repeat(9000)}\r\nContent-Disposition: form-data; name="model"`), /separated/],
    ['no disposition', part('Content-Type: text/plain'), /no plain name/],
    ['two dispositions', part('Content-Disposition: form-data; name="x"\r\nContent-Disposition: form-data; name="model"'), /no plain name/],
    ['another disposition', part('Content-Disposition: attachment; name="model"'), /no plain name/],
    ['a disposition that only starts alike', part('Content-Disposition: form-datax; name="model"'), /no plain name/],
    ['no name', part('Content-Disposition: form-data; filename="a"'), /no plain name/],
    ['an empty name', part('Content-Disposition: form-data; name=""; filename="model"'), /no plain name/],
    ['form-data in capitals', part('Content-Disposition: FORM-DATA; name="x"'), /no plain name/],
    ['NAME in capitals', part('Content-Disposition: form-data; NAME="model"'), /no plain name/],
    ['two names', part('Content-Disposition: form-data; name="x"; name="model"'), /no plain name/],
    ['an escaped name', part('Content-Disposition: form-data; name="mo\\del"'), /no plain name/],
    ['a name in another spelling beside it', part('Content-Disposition: form-data; name="x"; name*=utf-8\'\'model'), /no plain name/],
    ['a name in pieces beside it', part('Content-Disposition: form-data; NAME*0="mo"; name="x"; name*1="del"'), /no plain name/],
    ['a name in another parameter', part('Content-Disposition: form-data; name="x"; xname=model'), /no plain name/],
    ['a name between other quotes', part('Content-Disposition: form-data; y=\'; name="\'; name=model; z=\'"'), /no plain name/],
    ['one in a date', part('Content-Disposition: form-data; name="x"; modification-date="\'; name=n; y=\'"'), /no plain name/],
    ['a control character', part('Content-Disposition: form-data; name="model\0"'), /no plain name/],
    ...[
      'X-A: Content-Disposition: form-data; name="model"', 'X-A: name = \'svg[model]\'', 'Content-Type: text/plain; NAME=Model',
      'Content-ID: model', 'content-type:model',
    ].map((line): (typeof cases)[number] => [
      line, part(`${line}\r\nContent-Disposition: form-data; name="x"`), /a field could be read as .*model/,
    ]),
    ...['a; name=model', 'a name=; name=model', 'a\\"; name=\\"model', '\'; name=[model]; y=\''].map((file): (typeof cases)[number] => [
      `a name in the file name ${file}`, part(`Content-Disposition: form-data; name="x"; filename="${file}"`), /a field could be read as model/,
    ]),
    ['a name behind an empty one in FILENAME', part('Content-Disposition: form-data; name="x"; FILENAME="name=; name=model"'), /read as model/],
    ['a name behind an empty one before the own one', part('Content-Disposition: form-data; filename="name=;name=model;"; name="x"'), /read as model/],
    ['a name in a file name before the own one', part('Content-Disposition: form-data; filename="a name=model"; name="x"'), /read as model/],
    ['a name behind a bare quote', part('Content-Disposition: form-data; name="x"; filename="6" name=model"'), /no plain name/],
    ['a control character in a file name', part('Content-Disposition: form-data; name="x"; filename="a\0"'), /no plain name/],
    ['many names', part(`X-A: ${'name=a '.repeat(9)}\r\nContent-Disposition: form-data; name="x"`), /no plain name/],
    ['an open quote', part('Content-Disposition: form-data; name="model'), /no plain name/],
    ['a folded line', part('Content-Disposition: form-data; name="x"\r\n ; name="model"'), /no plain name/],
    [
      'a bare line feed in a header',
      part('Content-Disposition: form-data; name="x"\nContent-Disposition: form-data; name="model"'),
      /no plain name/,
    ],
    ...['model=', 'model:', ',model', 'a; name=model'].map((name): (typeof cases)[number] => [
      `the name ${name}`, field('model', 'a') + field(name, 'b') + '--X1--', /no plain name/,
    ]),
    ['the model in an encoded word', field('model', 'a') + field('=?utf-8?Q?model?=', 'b') + '--X1--', /no plain name/],
    ['a line that is no header', part('Content-Disposition: form-data; name="x"\r\nmodel'), /no plain name/],
    ['the model twice', field('model', 'a') + field('model', 'b') + '--X1--', /the field model stands in it twice/],
    ['the model as a file', part('Content-Disposition: form-data; name="model"; filename="m"'), /the field model is not a short plain text/],
    [
      'the model as a file in another spelling',
      part('Content-Disposition: form-data; name="model"; filename*=utf-8\'\'m'),
      /the field model is not a short plain text/,
    ],
    ...['Model', 'MODEL', 'model[]', 'Model[0]', ' model', 'model.x', '[model]', ']model', 'model]'].map((name): (typeof cases)[number] => [
      `the model as ${name}`, field('model', 'a') + field(name, 'b') + '--X1--', /a field could be read as model/,
    ]),
    ...['svg[Model]', 'svg.model', 'svg[model][]', 'SVG[model'].map((name): (typeof cases)[number] => [
      `the drawer as ${name}`, field(name, 'b') + '--X1--', /a field could be read as svg\[model\]/,
    ]),
    ...[
      'Content-Transfer-Encoding: quoted-printable', 'content-transfer-encoding:BASE64', 'Content-Transfer-Encoding: 8bit, base64',
      'Content-Type: text/plain; charset=utf-16', 'Content-Type: text/plain; Charset="UTF-7"', 'Content-Type: text/plain; charset=',
      'Content-Type: text/plain; charset=utf-8; charset=utf-16', 'Content-Type: text/plain; charset*=us-ascii\'\'utf-16',
    ].map((header): (typeof cases)[number] => [
      `the model in ${header}`, part(`${header}\r\nContent-Disposition: form-data; name="model"`), /the field model is not a short plain text/,
    ]),
    ...['4', '14', '', '0x9', '+9'].map((length): (typeof cases)[number] => [
      `a length of "${length}"`, part(`Content-Disposition: form-data; name="model"\r\nContent-Length: ${length}`, 'dear-mini'), /another length/,
    ]),
    ...['multipart/mixed; boundary=X2', 'Multipart/Form-Data; boundary=X2'].map((type): (typeof cases)[number] => [
      type, part(`Content-Disposition: form-data; name="x"\r\nContent-Type: ${type}`), /parts of its own/,
    ]),
    ['a file of another length', part('Content-Length: 80\r\nContent-Disposition: form-data; name="image"; filename="a"'), /another length/],
    ...['\xef\xbb\xbfm', '\xff\xfem\0', '\xfe\xff\0m', '\0\0\xfe\xff\0\0\0m', '\0m'].map((value): (typeof cases)[number] => [
      'a byte order mark or UTF-16', Buffer.from(field('model', value) + '--X1--', 'latin1'), /the field model is not a short plain text/,
    ]),
    ...['utf-16', 'cp037', '', 'utf-8 '].map((charset): (typeof cases)[number] => [
      `a field _charset_ of ${charset}`, field('model', 'm') + field('_Charset_', charset) + '--X1--', /in another charset/,
    ]),
    ['a model of 2 KB', field('model', 'm'.repeat(2048)) + '--X1--', /the field model is not a short plain text/],
  ]
  for (const [what, form, reason] of cases) t.match(read(form), reason, what)
})

t.test('any form of plain parts gives its fields, and no cut of it does', async (t) => {
  const name = fc.constantFrom('image', 'mask', 'prompt', 'a b', 'model name', 'models', 'image[]')
  // Anything may stand in a part but the delimiter itself.
  const value = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)).filter((bytes) => !bytes.includes('X1'))
  const parts = fc.array(fc.tuple(name, value), { maxLength: 4 })
  fc.assert(fc.property(parts, parts, fc.stringMatching(/^[\w.-]{1,30}$/), fc.nat(), (before, after, model, cut) => {
    if (model.includes('X1')) return true
    const other = (list: typeof before): Buffer[] => list.flatMap(([field, bytes]) => [
      Buffer.from(`--X1\r\nContent-Disposition: form-data; name="${field}"; filename="f"\r\n\r\n`), bytes, Buffer.from('\r\n'),
    ])
    const form = Buffer.concat([...other(before), Buffer.from(field('model', model)), ...other(after), Buffer.from('--X1--\r\n')])
    const whole = readForm(form, 'X1', ['model'], 9)
    const part = readForm(form.subarray(0, cut % (form.length - 2)), 'X1', ['model'], 9)
    return !(whole instanceof BodyRefusal) && form.toString(
      'utf8', ...whole.get('model') ?? []
    ) === model && whole.size === 1 && part instanceof BodyRefusal
  }), { numRuns: 2000 })
  t.pass()
})

function requestTo (id: string): ModelCall {
  const endpoint: Endpoint | undefined = endpoints.find((candidate) => candidate.id === id)
  if (endpoint === undefined) throw new Error(`no endpoint ${id}`)
  return new ModelCall({ kind: 'endpoint', endpoint, url: '/', mountLength: 0, model: null, keys: null, repair: null })
}

t.test('a form sets the model and the wish for a stream', async (t) => {
  const checker = new Checker(readOptions({}), () => {})
  const headers = { 'content-type': 'multipart/form-data; boundary=X1' }
  const edit = requestTo('images.edits')
  t.equal(checker.check(edit, headers, Buffer.from(field('model', 'm') + field('stream', 'true') + '--X1--')), null)
  t.strictSame([edit.model, edit.stream, edit.body.json], ['m', true, {}], 'no number of answers where none is asked for')
  const plain = requestTo('images.edits')
  t.equal(checker.check(plain, headers, Buffer.from(field('model', '') + field('stream', 'false') + '--X1--')), null)
  t.match(plain, { model: null, stream: false })
  const variation = requestTo('images.variations')
  t.equal(checker.check(variation, headers, Buffer.from(field('stream', 'true') + '--X1--')), null)
  t.match(variation, { model: null, stream: false }, 'an endpoint that cannot stream')
  t.equal(checker.check(variation, headers, Buffer.from(field('model', 'm') + field('n', ' 7') + '--X1--')), null)
  t.strictSame(variation.body.json, { n: 7 }, 'what its price is held for')
  t.equal(checker.check(variation, headers, Buffer.from(field('n', '9007199254740993') + '--X1--')), null)
  t.strictSame(variation.body.json, { n: 2 ** 53 }, 'a server may take it for the most that it makes')
  for (const odd of ['Infinity', '-5', '0', '1.5', '']) {
    t.equal(checker.check(variation, headers, Buffer.from(field('n', odd) + '--X1--')), null)
    t.strictSame(variation.body.json, { n: null }, `no number of answers: ${odd}`)
  }
  for (const form of [field('n', '1') + field('n', '9'), field('N', '9'), field('n[]', '9')]) {
    t.match(checker.check(variation, headers, Buffer.from(`${form}--X1--`)), { keyword: 'form' })
  }
  t.match(checker.check(edit, headers, Buffer.from('x')), { keyword: 'form', error: { code: 'invalid_body', statusCode: 400 } })
  t.match(checker.check(edit, { 'content-type': 'text/plain' }, Buffer.from('x')), { keyword: 'media_type' })
})
