-- Tells how far buckets are from full, in ns by the store's clock, and forgives them where it is told to.
--
-- KEYS: the buckets. ARGV: 1 to forgive them, 0 to look only. Answers one integer for each: how far it
-- was from full. Where a key holds something else, none is forgiven.
local time = redis.call('TIME')
local sec, ns = tonumber(time[1]), tonumber(time[2]) * 1000
local reply, owing = {}, {}
for i, key in ipairs(KEYS) do
  reply[i] = 0
  local kept = redis.call('GET', key)
  if kept then
    local s, n = string.match(kept, '^(%d+)%.(%d+)$')
    if not s then return redis.error_reply('FOREIGN a key of ours holds something else') end
    reply[i] = math.max(0, (tonumber(s) - sec) * 1e9 + tonumber(n) - ns)
    owing[#owing + 1] = key
  end
end
if ARGV[1] == '1' then
  for _, key in ipairs(owing) do redis.call('DEL', key) end
end
return reply
