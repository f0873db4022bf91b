/**
 * The rules of `core/balances/` (`rules.ts`, `endings.ts`) as one Redis script, which takes any number of steps of one group in their
 * order: one atomic decision on the server, by the server's clock. Every key of a group has the group as its hash tag, so that the script
 * touches one slot of a cluster. ARGV, behind those of the prelude: for each step its name, the number of its arguments, and the arguments.
 */
import { parties } from './parties.js'
import { prelude } from './prelude.js'

/** Arguments: id, key, place of its window, requests, tokens, floor, cost, floor of the cost; then key and group as in `parties.ts`. */
const hold = `
steps.hold = function (a)
  local ask = {
    key = a[2], place = tonumber(a[3]), requests = tonumber(a[4]), tokens = tonumber(a[5]), cost = tonumber(a[7]),
  }
  local id, floor, costFloor = a[1], tonumber(a[6]), tonumber(a[8])
  sweep()
  local open = load(id)
  if open and open.settled then return { 1, {}, '', '' } end
  if open and open.state ~= 'open' then open = nil end
  local parties, told, at = {}, {}, 9
  for _, scope in ipairs({ 'key', 'group' }) do
    if a[at] == '1' then
      local party = partyOf(scope, ask, a, at, told)
      local refused = refusal(party, ask, not open)
      if refused then return { 0, told, unpack(refused) } end
      parties[#parties + 1] = party
    end
    at = at + 6 + tonumber(a[at + 5]) * 5
  end
  local taken = takeFrom(parties, ask, not open)
  if open then
    open.tokens, open.floor, open.second = open.tokens + ask.tokens, floor, taken.second
    open.cost, open.costFloor = open.cost + ask.cost, costFloor
    redis.call('HSET', H, id, cmsgpack.pack(open))
  else
    save(id, {
      key = ask.key, scopes = taken.scopes, balances = taken.balances, buckets = taken.buckets, tokens = ask.tokens, cost = ask.cost,
      floor = floor, costFloor = costFloor, active = 1, second = taken.second, state = 'open',
    }, now + ttl)
  end
  return { 1, told, taken.left.key, taken.left.group, unpack(taken.free) }
end
`

/** Arguments: id. */
const leave = `
steps.leave = function (a)
  local hold = load(a[1])
  if not hold or hold.state ~= 'open' or hold.active == 0 then return 0 end
  for _, scope in ipairs(hold.scopes) do move(scope, hold.key, 0, 0, -1) end
  hold.active = 0
  redis.call('HSET', H, a[1], cmsgpack.pack(hold))
  return 1
end
`

/**
 * Arguments: id, key, place of its window, tokens, cost, then the number of parties of a late settlement and of their buckets; of each
 * party its scope and whether it has a balance, of each bucket scope, id, unit, amount, end, former id.
 */
const settle = `
local function stranger (a, late)
  local hold = {
    key = a[2], scopes = {}, balances = {}, buckets = {},
    tokens = 0, cost = 0, active = 0, second = 0, state = 'open',
  }
  for i = 1, late do
    local scope = a[5 + 2 * i]
    hold.scopes[i], hold.balances[scope] = scope, a[6 + 2 * i] == '1'
  end
  for at = 8 + 2 * late, #a, 6 do
    local bucket = openBucket(a[at], a[2], a[at + 1], tonumber(a[at + 3]), a[at + 4], a[at + 5])
    makeBucket(bucket)
    saveBucket(bucket)
    hold.buckets[#hold.buckets + 1] = { scope = a[at], id = a[at + 1], unit = a[at + 2] }
  end
  return hold
end
steps.settle = function (a)
  local id, place, tokens, cost, late = a[1], tonumber(a[3]), tonumber(a[4]), tonumber(a[5]), tonumber(a[6])
  local told = {}
  local hold = load(id) or stranger(a, late)
  for _, scope in ipairs(hold.scopes) do
    if hold.state == 'closed' then
      move(scope, hold.key, spentOf(hold, scope, tokens - hold.tokens), 0, 0)
    else
      move(scope, hold.key, spentOf(hold, scope, tokens), -hold.tokens, -hold.active)
      correct(advance(windowOf(scope, place)), hold.second, tokens - hold.tokens)
    end
  end
  charge(hold, tokens, cost, told)
  if late == 0 then
    drop(id)
    return told
  end
  hold.tokens, hold.cost, hold.state, hold.settled = tokens, cost, 'closed', true
  save(id, hold, now + REMEMBER)
  return told
end
`

/** Arguments of `renew`: ids; `read`: scope, key, place of its window; `readBucket`: scope, key, bucket. */
const others = `
steps.renew = function (a)
  for _, id in ipairs(a) do
    local hold = load(id)
    if hold and hold.state == 'open' then redis.call('ZADD', D, int(now + ttl), id) end
  end
  return 0
end
steps.read = function (a)
  sweep()
  local party = account(a[1], a[2])
  local w = advance(windowOf(a[1], tonumber(a[3])))
  return { int(party.spent), int(party.held), int(party.active), int(w.r), int(w.t) }
end
steps.readBucket = function (a)
  sweep()
  local bucket = readBucket(bucketName(a[1], a[2], a[3]))
  return { int(bucket.spent), int(bucket.held) }
end
`

/** A step that fails, fails alone: its error is its answer. The error of a replica is for the client: see `connect.ts`. */
const run = `
local function take (step, arguments)
  local ok, answer = pcall(step, arguments)
  if ok then return answer end
  local text = type(answer) == 'table' and answer.err or tostring(answer)
  if string.find(text, 'READONLY ', 1, true) then error(answer) end
  return { err = string.gsub(text, '[\\r\\n]', ' ') }
end
local answers, at = {}, 3
while at < #ARGV do
  local step, arguments = steps[ARGV[at]], {}
  for i = 1, tonumber(ARGV[at + 1]) do arguments[i] = ARGV[at + 1 + i] end
  answers[#answers + 1] = take(step, arguments)
  at = at + 2 + #arguments
end
return answers
`

export type StepName = 'hold' | 'leave' | 'settle' | 'renew' | 'read' | 'readBucket'

export const takeSteps = `${prelude}${parties}local steps = {}\n` + hold + leave + settle + others + run
