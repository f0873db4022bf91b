import { filesOf, readBatches } from '../../plugins/state/ledger/read.js'
import { isGone } from '../../plugins/state/stat-of.js'
import { CommandError, type Io } from '../io.js'
import { ProgressBar } from '../progress-bar.js'
import { addParts } from '../sums/add-parts.js'
import { partsOf } from '../sums/file-parts.js'
import { keeps } from '../sums/wanted.js'
import type { Source } from './source.js'

/** So many are read in some hundredths of a second. */
const partBytes = 16 * 1024 * 1024

/** The ledger of this host. Files are read one after another and never held in memory. */
export function ledgerSource (path: string, io: Io): Source {
  const bar = new ProgressBar(io.progress)
  const damaged = new Map<string, number>()
  const onDamage = (name: string, lines = 1): void => { damaged.set(name, (damaged.get(name) ?? 0) + lines) }
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
    addTo: async (sums, by, calendar, question) => {
      try {
        const parts = partsOf(await filesOf(path, question), partBytes)
        await addParts(parts, sums, { by, calendar, question }, { onDamage, onProgress: bar.update })
      } catch (error) {
        throw explained(error, path)
      }
    },
    close: async () => {
      bar.clear()
      for (const [name, lines] of damaged) io.err(`${name}: ${lines} lines are not whole and were left out`)
    },
  }
}

function explained (error: unknown, path: string): unknown {
  if (!isGone(error)) return error
  return new CommandError(`there is no usage ledger at ${path}: no gateway with this configuration has run here`)
}
