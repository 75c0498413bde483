-- Gives back to a bucket what was charged to it in vain.
--
-- KEYS: the bucket. ARGV: how much, in ns. A bucket never holds more than its burst: what would be
-- above is forgotten, and the key with it.
local kept = redis.call('GET', KEYS[1])
if not kept then return 0 end
local s, n = string.match(kept, '^(%d+)%.(%d+)$')
if not s then return 0 end
local time = redis.call('TIME')
local sec, ns = tonumber(time[1]), tonumber(time[2]) * 1000
local debt = (tonumber(s) - sec) * 1e9 + tonumber(n) - ns - tonumber(ARGV[1])
if debt <= 0 then return redis.call('DEL', KEYS[1]) end
local whole = math.floor(debt / 1e9)
s, n = sec + whole, ns + (debt - whole * 1e9)
if n >= 1e9 then s, n = s + 1, n - 1e9 end
redis.call('SET', KEYS[1], string.format('%.0f.%09.0f', s, n),
  'PX', string.format('%.0f', math.ceil(debt / 1e6) + 1))
return 1
