/**
 * Loaded into a gateway before its program: each usage record whose `append` resolved is noted in the file that is open as
 * descriptor 3. That is what "acknowledged" means: the group commit that has the record was on the disk (fdatasync). Only
 * then is the request's hold settled. A note outlives the process that wrote it, however it ends.
 */
import { writeSync } from 'node:fs'
import { FileLedger } from '../../dist/plugins/state/file-ledger.js'

const { append } = FileLedger.prototype

FileLedger.prototype.append = async function (record) {
  await append.call(this, record)
  writeSync(3, `${record.id}\n`)
}
