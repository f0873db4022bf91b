/**
 * What the steps of `steps.ts` share. KEYS: holds (hash, id -> packed), deadlines (sorted set), accounts (hash), buckets (hash) and when
 * each may be removed (sorted set), window of the group, then the windows of keys (hashes that expire). ARGV[1] is a clock for tests, in
 * milliseconds, or empty; ARGV[2] is how long a hold lives. Numbers are written with `%.0f`: Lua's own form turns large ones into floating
 * point.
 */
import { rememberMs, sweepMax } from '../../core/balances/endings.js'
import { buckets } from './buckets.js'
import { windows } from './windows.js'

export const prelude = `
local H, D, A, B, E, WG = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local REMEMBER = ${rememberMs}
local now, ttl = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local second = math.floor(now / 1000)

local function int (n) return string.format('%.0f', n) end
local function suffix (scope, key) if scope == 'group' then return '' end return ':' .. key end

local function load (id)
  local packed = redis.call('HGET', H, id)
  -- Every new request's: the error of reading nothing would cost more than the call.
  if not packed then return end
  -- What cannot be read is none, or it would be met at every sweep.
  local _, hold = pcall(cmsgpack.unpack, packed)
  if type(hold) == 'table' then return hold end
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
${buckets}${windows}
local swept = false
local function sweep ()
  if swept then return end
  swept = true
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', D, '-inf', int(now), 'LIMIT', 0, ${sweepMax})) do
    local hold = load(id)
    if not hold or hold.state == 'closed' then
      drop(id)
    else
      for _, scope in ipairs(hold.scopes) do move(scope, hold.key, spentOf(hold, scope, hold.floor), -hold.tokens, -hold.active) end
      charge(hold, hold.floor, hold.costFloor)
      hold.tokens, hold.cost, hold.state = hold.floor, hold.costFloor, 'closed'
      save(id, hold, now + REMEMBER)
    end
  end
end
`
