import { takeSteps } from './steps.js'

/**
 * Stores a key if it still is as the writer read it, and notifies everybody. KEYS: digests by id, records by digest. ARGV: id, old digest
 * and record (empty: a new key), new digest and record, channel, messages.
 */
const putKey = `
local id, oldDigest, oldRecord, digest, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local current = redis.call('HGET', KEYS[1], id)
if (current and redis.call('HGET', KEYS[2], current) or '') ~= oldRecord then return 0 end
if digest ~= oldDigest and redis.call('HEXISTS', KEYS[2], digest) == 1 then return 0 end
if current then redis.call('HDEL', KEYS[2], current) end
redis.call('HSET', KEYS[1], id, digest)
redis.call('HSET', KEYS[2], digest, record)
for i = 7, #ARGV do redis.call('PUBLISH', ARGV[6], ARGV[i]) end
return 1
`

/** A key by its id, read atomically: between two commands it may get another digest. KEYS as of `putKey`. ARGV: id. */
const readKey = `
local digest = redis.call('HGET', KEYS[1], ARGV[1])
return digest and redis.call('HGET', KEYS[2], digest)
`

export type ScriptName = 'takeSteps' | 'putKey' | 'readKey'

export const scripts: Readonly<Record<ScriptName, string>> = { takeSteps, putKey, readKey }
