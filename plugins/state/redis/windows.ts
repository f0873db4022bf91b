/**
 * The windows of `core/balances/window.ts`: a part of the prelude, whose names it uses. Each is a hash: requests (`r`) and tokens (`t`) of
 * each of its seconds and of all of them, and the newest second (`b`).
 */
import { windowSeconds } from '../../core/balances/window.js'

export const windows = `
local SLOTS = ${windowSeconds}

local function windowOf (scope, place) if scope == 'group' then return WG end return KEYS[place] end

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
`
