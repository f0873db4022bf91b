/**
 * The rules of `book.ts` as Redis scripts: each is one atomic step on the server, by the server's clock. Every key of a
 * group carries the group as its hash tag, so that a step touches one slot of a cluster.
 *
 * KEYS of every script: holds (hash, id -> packed), deadlines (sorted set), accounts (hash), window of the group, window of
 * the key (hashes that expire). ARGV[1] is a clock for tests, in milliseconds, or empty.
 * Numbers are written with `%.0f`: Lua's own form turns large ones into floating point.
 */
import { rememberMs, sweepMax } from './book.js'
import { concurrencyRetryMs } from './parties.js'
import { windowSeconds } from './window.js'

const prelude = `
local H, D, A, WG, WK = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local SLOTS, REMEMBER = ${windowSeconds}, ${rememberMs}
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local second = math.floor(now / 1000)

local function int (n) return string.format('%.0f', n) end
local function suffix (scope, key) if scope == 'group' then return '' end return ':' .. key end
local function windowOf (scope) if scope == 'group' then return WG end return WK end

local function load (id)
  local packed = redis.call('HGET', H, id)
  if packed then return cmsgpack.unpack(packed) end
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
local function move (scope, key, spent, held, active)
  local s = suffix(scope, key)
  if spent ~= 0 then redis.call('HINCRBY', A, 's' .. s, int(spent)) end
  if held ~= 0 then redis.call('HINCRBY', A, 'h' .. s, int(held)) end
  if active ~= 0 then redis.call('HINCRBY', A, 'a' .. s, int(active)) end
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

local function sweep ()
  local due = redis.call('ZRANGEBYSCORE', D, '-inf', int(now), 'LIMIT', 0, ${sweepMax})
  for _, id in ipairs(due) do
    local hold = load(id)
    if not hold or hold.state == 'closed' then
      drop(id)
    else
      for _, scope in ipairs(hold.scopes) do move(scope, hold.key, hold.floor, -hold.tokens, -hold.active) end
      hold.tokens, hold.active, hold.state = hold.floor, 0, 'closed'
      save(id, hold, now + REMEMBER)
    end
  end
  return #due
end
`

/** ARGV: clock, ttl, id, key, requests, tokens, floor, then for the key and the group: counted, balance, concurrency, requests, tokens. */
const hold = `
local ttl, id, key = tonumber(ARGV[2]), ARGV[3], ARGV[4]
local requests, tokens, floor = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
sweep()
local open = load(id)
if open and open.settled then return { 1, '', '' } end
if open and open.state ~= 'open' then open = nil end
local scopes, windows, left = {}, {}, { key = '', group = '' }
for i, scope in ipairs({ 'key', 'group' }) do
  local at = 3 + i * 5
  if ARGV[at] == '1' then
    local balance, concurrency = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    local perMinute, tokensPerMinute = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
    local party = account(scope, key)
    local w = advance(windowOf(scope))
    local function refuse (limit, allowed, used, retry)
      return { 0, limit, scope, int(allowed), int(math.max(0, allowed - used)), int(retry) }
    end
    local need = math.max(1, tokens)
    local gone = party.spent + party.held
    if balance and gone + need > balance then return refuse('balance', balance, gone, 0) end
    if concurrency and not open and party.active >= concurrency then
      return refuse('concurrency', concurrency, party.active, ${concurrencyRetryMs})
    end
    if perMinute and requests > 0 and w.r + requests > perMinute then
      return refuse('requests', perMinute, w.r, wait(w, 'r', w.r + requests - perMinute))
    end
    if tokensPerMinute and w.t + need > tokensPerMinute then
      return refuse('tokens', tokensPerMinute, w.t, wait(w, 't', w.t + need - tokensPerMinute))
    end
    scopes[#scopes + 1] = scope
    windows[#windows + 1] = w
    if balance then left[scope] = int(balance - gone - tokens) end
  end
end
local at = second
for i, scope in ipairs(scopes) do
  move(scope, key, 0, tokens, open and 0 or 1)
  at = windows[i].b
  count(windows[i], at, requests, tokens)
end
if open then
  open.tokens, open.floor, open.second = open.tokens + tokens, floor, at
  redis.call('HSET', H, id, cmsgpack.pack(open))
else
  save(id, { key = key, scopes = scopes, tokens = tokens, floor = floor, active = 1, second = at, state = 'open' }, now + ttl)
end
return { 1, left.key, left.group }
`

/** ARGV: clock, id. */
const leave = `
local hold = load(ARGV[2])
if not hold or hold.state ~= 'open' or hold.active == 0 then return 0 end
for _, scope in ipairs(hold.scopes) do move(scope, hold.key, 0, 0, -1) end
hold.active = 0
redis.call('HSET', H, ARGV[2], cmsgpack.pack(hold))
return 1
`

/** ARGV: clock, id, key, tokens, then the scopes of a late settlement. */
const settle = `
local id, tokens = ARGV[2], tonumber(ARGV[4])
local late = #ARGV > 4
local hold = load(id)
if not hold then
  if not late then return 0 end
  hold = { key = ARGV[3], scopes = {}, tokens = 0, floor = 0, active = 0, second = 0, state = 'open' }
  for i = 5, #ARGV do hold.scopes[#hold.scopes + 1] = ARGV[i] end
end
for _, scope in ipairs(hold.scopes) do
  if hold.state == 'closed' then
    move(scope, hold.key, tokens - hold.tokens, 0, 0)
  else
    move(scope, hold.key, tokens, -hold.tokens, -hold.active)
    correct(advance(windowOf(scope)), hold.second, tokens - hold.tokens)
  end
end
if not late then
  drop(id)
  return 1
end
hold.tokens, hold.active, hold.state, hold.settled = tokens, 0, 'closed', true
save(id, hold, now + REMEMBER)
return 1
`

/** ARGV: clock, ttl, ids. */
const renew = `
for i = 3, #ARGV do
  local hold = load(ARGV[i])
  if hold and hold.state == 'open' then redis.call('ZADD', D, int(now + tonumber(ARGV[2])), ARGV[i]) end
end
return 0
`

/** ARGV: clock, scope, key. */
const read = `
sweep()
local party = account(ARGV[2], ARGV[3])
local w = advance(windowOf(ARGV[2]))
return { int(party.spent), int(party.held), int(party.active), int(w.r), int(w.t) }
`

/**
 * Stores a key as long as it is as the writer read it, and tells everybody. KEYS: digests by id, records by digest.
 * ARGV: id, old digest and record (empty: a new key), new digest and record, channel, messages.
 */
const putKey = `
local id, oldDigest, oldRecord, digest, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local current = redis.call('HGET', KEYS[1], id)
if (current or '') ~= oldDigest then return 0 end
if current and redis.call('HGET', KEYS[2], current) ~= oldRecord then return 0 end
if digest ~= oldDigest and redis.call('HEXISTS', KEYS[2], digest) == 1 then return 0 end
if current then redis.call('HDEL', KEYS[2], current) end
redis.call('HSET', KEYS[1], id, digest)
redis.call('HSET', KEYS[2], digest, record)
for i = 7, #ARGV do redis.call('PUBLISH', ARGV[6], ARGV[i]) end
return 1
`

export type ScriptName = 'hold' | 'leave' | 'settle' | 'renew' | 'sweep' | 'read' | 'putKey'

export const scripts: Readonly<Record<ScriptName, string>> = {
  hold: prelude + hold,
  leave: prelude + leave,
  settle: prelude + settle,
  renew: prelude + renew,
  sweep: prelude + 'return sweep()\n',
  read: prelude + read,
  putKey,
}
