/**
 * The parties of `core/balances/parties.ts`, a key and its group: a part of the script behind the prelude, whose names it uses. The
 * arguments of an ask list for each party, from `at` on: counted, balance, concurrency, requests, tokens, buckets, and for each bucket id,
 * unit, amount, end, former id.
 */
import { concurrencyRetryMs } from '../../core/balances/parties.js'

export const parties = `
local function partyOf (scope, ask, a, at, told)
  local party = account(scope, ask.key)
  party.scope, party.window, party.buckets = scope, advance(windowOf(scope, ask.place)), {}
  party.balance, party.concurrency = tonumber(a[at + 1]), tonumber(a[at + 2])
  party.perMinute, party.tokensPerMinute = tonumber(a[at + 3]), tonumber(a[at + 4])
  for i = 1, tonumber(a[at + 5]) do
    local b = at + 1 + i * 5
    local bucket = openBucket(scope, ask.key, a[b], tonumber(a[b + 2]), a[b + 3], a[b + 4])
    bucket.scope, bucket.id, bucket.unit = scope, a[b], a[b + 1]
    resize(bucket, tonumber(a[b + 2]), told)
    party.buckets[i] = bucket
  end
  return party
end

-- Nil where the party allows it all. What time cannot heal is named first.
local function refusal (party, ask, entering)
  local function refused (limit, allowed, used, retry, bucket)
    return { limit, party.scope, int(allowed), int(math.max(0, allowed - used)), int(retry), bucket }
  end
  local w, need, gone = party.window, math.max(1, ask.tokens), party.spent + party.held
  if party.balance and gone + need > party.balance then return refused('balance', party.balance, gone, 0) end
  for _, bucket in ipairs(party.buckets) do
    local used = bucket.spent + bucket.held
    local wanted = bucket.unit == 'cost' and math.max(1, ask.cost) or need
    if used + wanted > bucket.amount then
      return refused('budget', bucket.amount, used, bucket.ends and math.max(0, bucket.ends - now) or 0, bucket.id)
    end
  end
  if party.concurrency and entering and party.active >= party.concurrency then
    return refused('concurrency', party.concurrency, party.active, ${concurrencyRetryMs})
  end
  if party.perMinute and ask.requests > 0 and w.r + ask.requests > party.perMinute then
    return refused('requests', party.perMinute, w.r, wait(w, 'r', w.r + ask.requests - party.perMinute))
  end
  if party.tokensPerMinute and w.t + need > party.tokensPerMinute then
    return refused('tokens', party.tokensPerMinute, w.t, wait(w, 't', w.t + need - party.tokensPerMinute))
  end
end

-- What the hold keeps of it, and what is left and free then.
local function takeFrom (parties, ask, entering)
  local taken = { scopes = {}, balances = {}, buckets = {}, second = second, left = { key = '', group = '' }, free = {} }
  for i, party in ipairs(parties) do
    local scope, w, balance = party.scope, party.window, party.balance
    move(scope, ask.key, 0, ask.tokens, entering and 1 or 0)
    count(w, w.b, ask.requests, ask.tokens)
    taken.scopes[i], taken.second, taken.balances[scope] = scope, w.b, balance ~= nil
    if balance then taken.left[scope] = int(balance - party.spent - party.held - ask.tokens) end
    for _, bucket in ipairs(party.buckets) do
      makeBucket(bucket)
      bucket.held = bucket.held + (bucket.unit == 'cost' and ask.cost or ask.tokens)
      saveBucket(bucket)
      taken.buckets[#taken.buckets + 1] = { scope = scope, id = bucket.id, unit = bucket.unit }
      taken.free[#taken.free + 1] = int(bucket.amount - bucket.spent - bucket.held)
    end
  end
  return taken
end
`
