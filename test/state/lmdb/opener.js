/**
 * Opens lmdb's files and closes them again, as commands and other gateways do beside one that runs.
 *
 *     node opener.js FOLDER TIMES
 */
import { openState } from '../../../dist/plugins/state/index.js'

const [, , path, times] = process.argv
for (let time = 0; time < Number(times); time += 1) await (await openState({ engine: 'lmdb', path })).close()
