-- Decides on several buckets at once, by the store's clock: all admit, or nothing is written.
--
-- KEYS: the buckets. ARGV, four for each: the interval in ns, the burst, the cost, and the most that
-- may be granted. A bucket is the moment up to which it is paid for, as Unix time "seconds.nanoseconds".
-- Answers three integers for each: what was granted (0 for all when one refuses), the wait in ns
-- (0 where it did not refuse), and the debt in ns as it stands now.
--
-- Seconds and nanoseconds are kept apart because a double holds no Unix time in ns.
local time = redis.call('TIME')
local sec, ns = tonumber(time[1]), tonumber(time[2]) * 1000
local reply, grants, refused = {}, {}, false
for i, key in ipairs(KEYS) do
  local at = (i - 1) * 4
  local interval, burst = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local cost, most = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local debt = 0
  local kept = redis.call('GET', key)
  if kept then
    local s, n = string.match(kept, '^(%d+)%.(%d+)$')
    if not s then return redis.error_reply('FOREIGN a key of ours holds something else') end
    debt = math.max(0, (tonumber(s) - sec) * 1e9 + tonumber(n) - ns)
  end
  local credit = interval * burst - debt
  local wait = cost * interval - credit
  if wait > 0 then refused = true else wait = 0 end
  grants[i] = math.max(cost, math.min(math.floor(credit / interval), most))
  reply[i * 3 - 2], reply[i * 3 - 1], reply[i * 3] = 0, wait, debt
end
if refused then return reply end
for i, key in ipairs(KEYS) do
  local debt = reply[i * 3] + grants[i] * tonumber(ARGV[(i - 1) * 4 + 1])
  local whole = math.floor(debt / 1e9)
  local s, n = sec + whole, ns + (debt - whole * 1e9)
  if n >= 1e9 then s, n = s + 1, n - 1e9 end
  redis.call('SET', key, string.format('%.0f.%09.0f', s, n),
    'PX', string.format('%.0f', math.ceil(debt / 1e6) + 1))
  reply[i * 3 - 2], reply[i * 3] = grants[i], debt
end
return reply
