/** An image of one colour in any size, as PNG (https://www.w3.org/TR/png-3/): the demo's images have the size that they state. */
import { crc32, deflateSync } from 'node:zlib'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const blue = Buffer.from([0x2a, 0x60, 0x99])

/** Length, name, contents, and the checksum of name and contents. */
function chunk (name: string, contents: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), contents])
  const framed = Buffer.alloc(named.length + 8)
  framed.writeUInt32BE(contents.length, 0)
  named.copy(framed, 4)
  framed.writeUInt32BE(crc32(named), named.length + 4)
  return framed
}

/** One bit per pixel, into a palette of one colour: each row is its filter byte and zeros. */
function picture (width: number, height: number): string {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([1, 3], 8)
  const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height))
  const chunks = [chunk('IHDR', header), chunk('PLTE', blue), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))]
  return Buffer.concat([signature, ...chunks]).toString('base64')
}

const longestSide = 4096
const otherwise = 1024

/** The image for a `size` of a request such as `1536x1024`; `auto`, and impossible sizes, are 1024x1024. */
export function pictureOf (asked: unknown): { readonly size: string, readonly base64: string } {
  const sides = /^(\d{1,4})x(\d{1,4})$/.exec(String(asked))?.slice(1).map(Number) ?? []
  const fits = sides.length > 0 && sides.every((side) => side > 0 && side <= longestSide)
  const [width = otherwise, height = otherwise] = fits ? sides : []
  return { size: `${width}x${height}`, base64: picture(width, height) }
}
