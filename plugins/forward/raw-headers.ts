/**
 * The headers of an upstream's reply, from their bytes. An upstream sends the same names in much the same order each time:
 * a name that was seen before is known again by its bytes, which costs a fifth of making a string of it once more.
 */
export type Headers = Record<string, string | string[] | undefined>

interface Name {
  readonly written: string
  readonly lower: string
  /** What came after it the last time. */
  next: Name | null
  /** What it said the last time, where that was short and no cookie: most values are the same in each reply. */
  value: string
}

const shortBytes = 64
/** Names that are remembered at the same time: more than upstreams have. */
const rememberedNames = 256

const known = new Map<string, Name>()
const first: Name = { written: '', lower: '', next: null, value: '' }

/** `raw`: names and values by turns. What comes more than once becomes a list. */
export function readHeaders (raw: readonly Buffer[]): Headers {
  const headers: Headers = {}
  let name = first
  let isName = true
  for (const bytes of raw) {
    if (isName) name = nameAfter(name, bytes)
    else add(headers, name.lower, valueOf(name, bytes))
    isName = !isName
  }
  return headers
}

function nameAfter (before: Name, bytes: Buffer): Name {
  if (before.next === null || !isWritten(before.next.written, bytes)) before.next = nameOf(bytes.toString('latin1'))
  return before.next
}

function valueOf (name: Name, bytes: Buffer): string {
  if (isWritten(name.value, bytes)) return name.value
  const value = bytes.toString('latin1')
  if (value.length <= shortBytes && name.lower !== 'set-cookie') name.value = value
  return value
}

function isWritten (name: string, bytes: Buffer): boolean {
  if (name.length !== bytes.length) return false
  for (let at = 0; at < name.length; at += 1) {
    if (bytes[at] !== name.charCodeAt(at)) return false
  }
  return true
}

function nameOf (written: string): Name {
  const found = known.get(written)
  if (found !== undefined) return found
  const name = { written, lower: written.toLowerCase(), next: null, value: '' }
  if (known.size >= rememberedNames) forget()
  known.set(written, name)
  return name
}

/** Names lead from one to the next: all of them go, with whatever an upstream made up. */
function forget (): void {
  known.clear()
  first.next = null
}

function add (headers: Headers, name: string, value: string): void {
  const before = headers[name]
  // A name may also be that of something which every object has.
  if (before === undefined || !Object.hasOwn(headers, name)) headers[name] = value
  else if (typeof before === 'string') headers[name] = [before, value]
  else before.push(value)
}
