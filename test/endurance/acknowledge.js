/**
 * Loaded into a gateway before its program: each usage record that is on the disk is noted in the file that is open as
 * descriptor 3, as soon as the ledger is told so (fdatasync) and before it can acknowledge the record and settle the request's
 * hold. A note outlives the process that wrote it, however it ends.
 */
import { writeSync } from 'node:fs'
import { open } from 'node:fs/promises'

const handle = await open('/dev/null')
const files = Object.getPrototypeOf(handle)
await handle.close()

const { appendFile, datasync } = files
/** Ids of the records that were written to a file and not yet synced. */
const written = new WeakMap()

files.appendFile = async function (data, ...options) {
  await appendFile.call(this, data, ...options)
  const ids = [...String(data).matchAll(/^[0-9a-f]{8} (.*)$/gm)].map(([, text]) => JSON.parse(text).id)
  written.set(this, [...written.get(this) ?? [], ...ids])
}

files.datasync = async function () {
  const ids = written.get(this) ?? []
  written.delete(this)
  await datasync.call(this)
  for (const id of ids) writeSync(3, `${id}\n`)
}
