/** The dimensions by which usage can be summed. */
import { didYouMean } from '../../plugins/core/config/did-you-mean.js'
import type { LedgerRecord } from '../../plugins/state/types.js'
import { UsageError } from '../io.js'
import type { Calendar } from './calendar.js'

/** The fields of a record that say whose it is. */
export type Parties = Pick<LedgerRecord, 'group' | 'key' | 'model' | 'protocol' | 'time' | 'labels'>

type Reader = (parties: Parties, calendar: Calendar) => string | null

export interface Dimension {
  readonly name: string
  /** Reads its value from a record. */
  readonly read: Reader
}

const readers = new Map(Object.entries<Reader>({
  group: ({ group }) => group,
  key: ({ key }) => key,
  model: ({ model }) => model,
  protocol: ({ protocol }) => protocol,
  day: ({ time }, calendar) => calendar.day(time),
  month: ({ time }, calendar) => calendar.day(time).slice(0, 7),
}))

const labelPrefix = 'label:'

/** `key`, `label:team`. Throws UsageError. */
export function readDimension (name: string): Dimension {
  const label = name.startsWith(labelPrefix) ? name.slice(labelPrefix.length) : ''
  const read = label === '' ? readers.get(name) : ({ labels = {} }: Parties) => Object.hasOwn(labels, label) ? String(labels[label]) : null
  if (read === undefined) {
    const names = [...readers.keys()]
    throw new UsageError(`--by must be ${names.join(', ')}, label:NAME, or several of them, not ${name}${didYouMean(name, names)}`)
  }
  return { name, read }
}
