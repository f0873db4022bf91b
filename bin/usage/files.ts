import { frameHead, isFrame } from '../../plugins/state/ledger-frame.js'
import { endMark, readBatches, readLines } from '../../plugins/state/ledger-read.js'
import { CommandError, type Io } from '../io.js'
import { ProgressBar } from '../progress-bar.js'
import { Scanned } from './scan-record.js'
import { keeps, type Source } from './source.js'

const newline = 10

/** The ledger of this host. Rotated files are read one after another and never held. */
export function ledgerSource (path: string, io: Io): Source {
  const bar = new ProgressBar(io.progress)
  const damaged = new Map<string, number>()
  const onDamage = (name: string): void => { damaged.set(name, (damaged.get(name) ?? 0) + 1) }
  return {
    records: async function * ({ from, to, wanted }) {
      const keep = keeps(wanted)
      try {
        for await (const batch of readBatches(path, { from, to, onProgress: bar.update, onDamage })) {
          const kept = batch.filter(keep)
          if (kept.length === 0) continue
          bar.clear()
          yield kept
        }
      } catch (error) {
        throw explained(error, path)
      }
    },
    addTo: async (sums, by, calendar, { from, to, wanted }) => {
      const keep = keeps(wanted)
      const record = new Scanned()
      const addLines = (bytes: Buffer, file: string): void => {
        for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
          const found = bytes.indexOf(newline, start)
          end = found < 0 ? bytes.length : found
          if (!isFrame(bytes, start, end)) {
            if (bytes.toString('latin1', start, end) !== endMark) onDamage(file)
            continue
          }
          record.read(bytes, start + frameHead)
          if (record.time >= from && record.time < to && keep(record)) sums.add(by.map(({ read }) => read(record, calendar)), record)
        }
      }
      await readLines(path, { from, to, onProgress: bar.update }, addLines).catch((error: unknown) => { throw explained(error, path) })
    },
    close: async () => {
      bar.clear()
      for (const [name, lines] of damaged) io.err(`${name}: ${lines} lines are not whole and were left out`)
    },
  }
}

function explained (error: unknown, path: string): unknown {
  if (Reflect.get(Object(error), 'code') !== 'ENOENT') return error
  return new CommandError(`there is no usage ledger at ${path}: no gateway with this configuration has run here`)
}
