/**
 * The buckets of `core/balances/buckets.ts`: a part of the prelude, whose names it uses. All are in one hash. Fields of each: spent (`s`),
 * held (`h`), its amount (`a`) and the share of it that was reported (`t`), then the amount before (`b`) and its share (`u`).
 */
import { bucketKeepMs, toldPercents } from '../../core/balances/buckets.js'

/** Number of old buckets removed when one is made: more than are ever made at once. */
const bucketsAtOnce = 100

export const buckets = `
local KEEP = ${bucketKeepMs}

local function bucketName (scope, key, id)
  if scope == 'group' then return 'g|' .. id end
  return 'k' .. #key .. ':' .. key .. '|' .. id
end
local function readBucket (name)
  local found = redis.call('HMGET', B, 's' .. name, 'h' .. name, 'a' .. name, 't' .. name, 'b' .. name, 'u' .. name)
  return {
    name = name, isNew = not found[1], spent = tonumber(found[1]) or 0, held = tonumber(found[2]) or 0,
    amount = tonumber(found[3]) or 0, told = tonumber(found[4]) or 0,
    other = tonumber(found[5]) or 0, otherTold = tonumber(found[6]) or 0
  }
end
local function reachedPercent (bucket)
  for _, percent in ipairs({ ${toldPercents.join(', ')} }) do
    if bucket.spent * 100 >= bucket.amount * percent then return percent end
  end
  return 0
end
local function saveBucket (bucket)
  local name = bucket.name
  redis.call('HSET', B, 's' .. name, int(bucket.spent), 'h' .. name, int(bucket.held),
    'a' .. name, int(bucket.amount), 't' .. name, bucket.told)
end
local function saveOther (bucket)
  redis.call('HSET', B, 'b' .. bucket.name, int(bucket.other), 'u' .. bucket.name, bucket.otherTold)
end
local function tellReached (bucket, scope, id, told)
  local percent = reachedPercent(bucket)
  if percent <= bucket.told then return end
  bucket.told = percent
  told[#told + 1] = scope
  told[#told + 1] = id
  told[#told + 1] = percent
end
local function resize (bucket, amount, told)
  if bucket.amount == amount then return end
  local other, otherTold = bucket.amount, bucket.told
  bucket.amount = amount
  if amount == bucket.other then bucket.told = bucket.otherTold else bucket.told = math.min(otherTold, reachedPercent(bucket)) end
  bucket.other, bucket.otherTold = other, otherTold
  saveOther(bucket)
  tellReached(bucket, bucket.scope, bucket.id, told)
  saveBucket(bucket)
end
local function forgetBuckets ()
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', E, '-inf', int(now), 'LIMIT', 0, ${bucketsAtOnce})) do
    redis.call('HDEL', B, 's' .. name, 'h' .. name, 'a' .. name, 't' .. name, 'b' .. name, 'u' .. name)
    redis.call('ZREM', E, name)
  end
end
local function makeBucket (bucket)
  if not bucket.isNew then return end
  bucket.isNew = false
  forgetBuckets()
  if bucket.ends then redis.call('ZADD', E, int(bucket.ends + KEEP), bucket.name) end
end
-- Once. What is held by its former name is settled there: it is taken for spent.
local function rename (bucket, former)
  local found = readBucket(former)
  if found.isNew then return end
  bucket.spent, bucket.amount, bucket.told = found.spent + found.held, found.amount, found.told
  bucket.other, bucket.otherTold = found.other, found.otherTold
  makeBucket(bucket)
  saveBucket(bucket)
  saveOther(bucket)
  found.spent = 0
  saveBucket(found)
end
local function openBucket (scope, key, id, amount, ends, former)
  local bucket = readBucket(bucketName(scope, key, id))
  bucket.ends = tonumber(ends)
  if bucket.isNew and former ~= '' then rename(bucket, bucketName(scope, key, former)) end
  if bucket.isNew then bucket.amount = amount end
  return bucket
end
-- Charges a hold's buckets in place of what it held or was charged before. Without a list nobody is told: another settlement does it.
local function charge (hold, tokens, cost, told)
  for _, held in ipairs(hold.buckets or {}) do
    local bucket = readBucket(bucketName(held.scope, hold.key, held.id))
    if not bucket.isNew then
      local before, after = hold.tokens, tokens
      if held.unit == 'cost' then before, after = hold.cost, cost end
      bucket.spent = bucket.spent + after
      if hold.state == 'closed' then bucket.spent = bucket.spent - before else bucket.held = bucket.held - before end
      if told then tellReached(bucket, held.scope, held.id, told) end
      saveBucket(bucket)
    end
  end
end
`
