import * as zlib from 'node:zlib'
import t from 'tap'
import { unpacked, unpackers } from '../../plugins/forward/unpacked.js'

const error = Buffer.from('{"error":{"message":"slow down"}}')

t.test('reads what this Node can unpack, within its bounds', async (t) => {
  const codings = unpackers(zlib, 100)
  t.strictSame(unpacked(error, '', codings), error)
  t.strictSame(unpacked(zlib.gzipSync(error), 'GZip', codings), error)
  t.strictSame(unpacked(zlib.brotliCompressSync(zlib.deflateSync(error)), 'deflate, identity, br', codings), error)
  t.equal(unpacked(zlib.gzipSync(Buffer.alloc(101)), 'gzip', codings), null, 'too much comes out')
  t.equal(unpacked(error, 'gzip', codings), null)
  const thrice = zlib.gzipSync(zlib.gzipSync(zlib.gzipSync(error)))
  t.equal(unpacked(thrice, 'gzip, gzip, gzip', unpackers(zlib, 1_000)), null, 'each layer would hold the loop')
  t.equal(unpacked(error, 'rot13', codings), null)
})

t.test('zstd is read where the Node version has it', async (t) => {
  const bounds: unknown[] = []
  const library = {
    zstdDecompressSync: (bytes: Buffer, options: unknown) => {
      bounds.push(options)
      return bytes.subarray(1)
    },
  }
  t.strictSame(unpacked(Buffer.from(`z${error}`), 'zstd', unpackers(library, 100)), error)
  t.strictSame(bounds, [{ maxOutputLength: 100 }])
  t.equal(unpacked(error, 'zstd', unpackers({}, 100)), null)
  t.equal(unpackers(zlib, 100).has('zstd'), 'zstdDecompressSync' in zlib)
})
