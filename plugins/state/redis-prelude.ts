/**
 * What the steps of `redis-steps.ts` share. KEYS: holds (hash, id -> packed), deadlines (sorted set), accounts (hash),
 * buckets (hash) and when each may be forgotten (sorted set), window of the group, then the windows of keys (hashes that expire).
 * ARGV[1] is a clock for tests, in milliseconds, or empty; ARGV[2] how long a hold lives.
 * Numbers are written with `%.0f`: Lua's own form turns large ones into floating point.
 */
import { rememberMs, sweepMax } from '../core/balances/rules.js'
import { bucketKeepMs, toldPercents } from '../core/balances/buckets.js'
import { windowSeconds } from '../core/balances/window.js'

/** Buckets that are forgotten when one is made: more than were ever made at once. */
const bucketsAtOnce = 100

export const prelude = `
local H, D, A, B, E, WG = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local SLOTS, REMEMBER, KEEP = ${windowSeconds}, ${rememberMs}, ${bucketKeepMs}
local now, ttl = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local second = math.floor(now / 1000)

local function int (n) return string.format('%.0f', n) end
local function suffix (scope, key) if scope == 'group' then return '' end return ':' .. key end
local function windowOf (scope, place) if scope == 'group' then return WG end return KEYS[place] end

local function load (id)
  local packed = redis.call('HGET', H, id)
  if not packed then return end
  -- What cannot be read is none, or it would be met at every sweep.
  local ok, hold = pcall(cmsgpack.unpack, packed)
  if ok and type(hold) == 'table' then return hold end
end
local function save (id, hold, deadline)
  redis.call('HSET', H, id, cmsgpack.pack(hold))
  redis.call('ZADD', D, int(deadline), id)
end
local function drop (id)
  redis.call('HDEL', H, id)
  redis.call('ZREM', D, id)
end

local function account (scope, key)
  local s = suffix(scope, key)
  local found = redis.call('HMGET', A, 's' .. s, 'h' .. s, 'a' .. s)
  return { spent = tonumber(found[1]) or 0, held = tonumber(found[2]) or 0, active = tonumber(found[3]) or 0 }
end
-- Nothing stays of a count that is over: most keys never come back.
local function add (name, by)
  if by ~= 0 and redis.call('HINCRBY', A, name, int(by)) == 0 then redis.call('HDEL', A, name) end
end
local function move (scope, key, spent, held, active)
  local s = suffix(scope, key)
  add('s' .. s, spent)
  add('h' .. s, held)
  add('a' .. s, active)
end
-- Of a party without a balance nobody asks what it ever spent.
local function spentOf (hold, scope, tokens)
  if hold.balances and not hold.balances[scope] then return 0 end
  return tokens
end

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

local function advance (key)
  local found = redis.call('HMGET', key, 'b', 'r', 't')
  local last = tonumber(found[1])
  local w = { key = key, b = second, r = tonumber(found[2]) or 0, t = tonumber(found[3]) or 0 }
  if not last then return w end
  if second <= last and last - second < SLOTS then
    w.b = last
    return w
  end
  if math.abs(second - last) >= SLOTS then
    redis.call('DEL', key)
    w.r, w.t = 0, 0
    return w
  end
  local fields = {}
  for s = last + 1, second do
    fields[#fields + 1] = 'r' .. (s % SLOTS)
    fields[#fields + 1] = 't' .. (s % SLOTS)
  end
  local stale = redis.call('HMGET', key, unpack(fields))
  for i = 1, #stale, 2 do
    w.r = w.r - (tonumber(stale[i]) or 0)
    w.t = w.t - (tonumber(stale[i + 1]) or 0)
  end
  redis.call('HDEL', key, unpack(fields))
  redis.call('HSET', key, 'b', int(second), 'r', int(w.r), 't', int(w.t))
  return w
end
local function count (w, at, requests, tokens)
  redis.call('HINCRBY', w.key, 'r' .. (at % SLOTS), int(requests))
  redis.call('HINCRBY', w.key, 't' .. (at % SLOTS), int(tokens))
  redis.call('HINCRBY', w.key, 'r', int(requests))
  redis.call('HINCRBY', w.key, 't', int(tokens))
  redis.call('HSET', w.key, 'b', int(w.b))
  redis.call('EXPIRE', w.key, SLOTS * 2)
end
local function correct (w, at, difference)
  if at > w.b - SLOTS and at <= w.b then return count(w, at, 0, difference) end
  if difference > 0 then count(w, w.b, 0, difference) end
end
local function wait (w, kind, amount)
  local freed = 0
  for s = w.b - SLOTS + 1, w.b do
    freed = freed + (tonumber(redis.call('HGET', w.key, kind .. (s % SLOTS))) or 0)
    if freed >= amount then return (s + SLOTS) * 1000 - now end
  end
  return SLOTS * 1000
end

local swept = false
local function sweep ()
  if swept then return 0 end
  swept = true
  local due = redis.call('ZRANGEBYSCORE', D, '-inf', int(now), 'LIMIT', 0, ${sweepMax})
  for _, id in ipairs(due) do
    local hold = load(id)
    if not hold or hold.state == 'closed' then
      drop(id)
    else
      for _, scope in ipairs(hold.scopes) do move(scope, hold.key, spentOf(hold, scope, hold.floor), -hold.tokens, -hold.active) end
      charge(hold, hold.floor, hold.costFloor)
      hold.tokens, hold.cost, hold.active, hold.state = hold.floor, hold.costFloor, 0, 'closed'
      save(id, hold, now + REMEMBER)
    end
  end
  return #due
end
`
