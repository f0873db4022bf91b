/** Frames of RFC 9113, so that a test decides what comes together and what is wrong: no client sends that. */
function frame (type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export const ends = 1
const headersEnd = 4
export const data = (flags: number, text: string, stream = 1): Buffer => frame(0, flags, stream, Buffer.from(text))
export const reset = (code: number, stream = 1): Buffer => frame(3, 0, stream, Buffer.from([0, 0, 0, code]))
export const acknowledged = frame(4, 1, 0, Buffer.alloc(0))
/** The caller will ask nothing more. */
export const goAway = frame(7, 0, 0, Buffer.alloc(8))
/** A ping has eight bytes. */
export const wrongPing = frame(6, 0, 0, Buffer.alloc(3))

/** How a connection begins. */
export const opening = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, Buffer.alloc(0))])

/** The caller takes gigabytes at once, of a stream (4) and in all. */
export const wideWindows = Buffer.concat([
  frame(4, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])), frame(8, 0, 0, Buffer.from([0x7f, 0xff, 0, 0])),
])

/** The first request of a connection. */
export function request (headers: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat([opening, requestOn(1, headers)])
}

/** Names and values as they are, without the tables of RFC 7541. */
export function requestOn (stream: number, headers: Readonly<Record<string, string>>): Buffer {
  const fields = Object.entries(headers).flatMap(([name, value]) => [
    Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value),
  ])
  return frame(1, headersEnd, stream, Buffer.concat(fields))
}
