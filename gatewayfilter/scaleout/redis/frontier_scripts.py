"""The Lua scripts of the frontier in Redis: each is one atomic change.

Keys, all in one slot by the hash tag `{gf:queue}`, behind the prefix KEYS[1]:

==========================  ================================================================================
`meta`                      hash: `seq` (number of the newest URL), `paused` (since when)
`u:DIGEST`                  hash of a URL: url, p (priority), s (state), due, nb (not before), n (attempts), tok, h (holder),
                            e (error), t (task), d (depth), i (its place: number, slot and digest)
`i:STATE:PRIORITY`          sorted set of places by the time of a state: due, end of the lease, end of the rest, death
`w:PRIORITY:SLOT`           sorted set of the waiting places of one slot of sites
`h:PRIORITY`                the first of each of those sets: a crawler's own slots are found without reading the others
`levels`                    sorted set of the priorities in use
`k:TASK`, `tasks`           digests of a task; number of URLs by task and state
==========================  ================================================================================

Times are those of the server: ARGV[1] is the caller's time, `shift` what the server's clock is ahead of it. In tests
ARGV[2] is "0", and the caller's time counts.
"""

from typing import Final

LIBRARY: Final = """
local P = KEYS[1]
local call = redis.call
local now, shift = tonumber(ARGV[1]), 0
if ARGV[2] == '1' then
  local t = call('TIME')
  local server = tonumber(t[1]) + tonumber(t[2]) / 1000000
  shift = server - now
  now = server
end
local function num(x) return string.format('%.17g', x) end
local function slot_of(place) return string.sub(place, 13, 16) end
local function head(p, slot)
  local set = P .. 'w:' .. p .. ':' .. slot
  return call('ZRANGE', set, 0, 0, 'WITHSCORES')
end
local function tally(task, state, by)
  if task == '' then return end
  local field = state .. ':' .. task
  if call('HINCRBY', P .. 'tasks', field, by) <= 0 then call('HDEL', P .. 'tasks', field) end
end
local function enter(place, p, state, due)
  call('ZADD', P .. 'i:' .. state .. ':' .. p, due, place)
  if state == 'waiting' then
    local slot = slot_of(place)
    local first = head(p, slot)
    call('ZADD', P .. 'w:' .. p .. ':' .. slot, due, place)
    local new = head(p, slot)
    if new[1] ~= first[1] then
      if first[1] then call('ZREM', P .. 'h:' .. p, first[1]) end
      call('ZADD', P .. 'h:' .. p, new[2], new[1])
    elseif new[2] ~= first[2] then call('ZADD', P .. 'h:' .. p, new[2], new[1]) end
  end
end
local function leave(place, p, state)
  call('ZREM', P .. 'i:' .. state .. ':' .. p, place)
  if state == 'waiting' then
    local slot = slot_of(place)
    call('ZREM', P .. 'w:' .. p .. ':' .. slot, place)
    if call('ZREM', P .. 'h:' .. p, place) == 1 then
      local new = head(p, slot)
      if new[1] then call('ZADD', P .. 'h:' .. p, new[2], new[1]) end
    end
  end
end
local function record(digest)
  local v = call('HMGET', P .. 'u:' .. digest, 's', 'p', 'due', 'n', 'tok', 't', 'd', 'i', 'nb', 'h', 'url', 'e')
  if not v[1] then return nil end
  return {digest = digest, s = v[1], p = v[2], due = tonumber(v[3]), n = tonumber(v[4]), tok = v[5], t = v[6],
    d = tonumber(v[7]), i = v[8], nb = tonumber(v[9]), h = v[10], url = v[11], e = v[12]}
end
local function move(r, state, due, ...)
  leave(r.i, r.p, r.s)
  tally(r.t, r.s, -1)
  r.s, r.due = state, due
  local fields = {...}
  for k = 1, #fields, 2 do if fields[k] == 'p' then r.p = fields[k + 1] end end
  call('HSET', P .. 'u:' .. r.digest, 's', state, 'due', num(due), ...)
  enter(r.i, r.p, state, due)
  tally(r.t, state, 1)
end
local function drop(r)
  leave(r.i, r.p, r.s)
  tally(r.t, r.s, -1)
  if r.t ~= '' then call('SREM', P .. 'k:' .. r.t, r.digest) end
  call('DEL', P .. 'u:' .. r.digest)
end
local function levels() return call('ZRANGE', P .. 'levels', 0, -1) end
local function count(state)
  local sum = 0
  for _, p in ipairs(levels()) do sum = sum + call('ZCARD', P .. 'i:' .. state .. ':' .. p) end
  return sum
end
local function due_of(state, most, until_)
  local found = {}
  for _, p in ipairs(levels()) do
    if #found >= most then break end
    for _, place in ipairs(call('ZRANGEBYSCORE', P .. 'i:' .. state .. ':' .. p, '-inf', until_, 'LIMIT', 0, most - #found)) do
      local digest = string.sub(place, 17)
      if call('EXISTS', P .. 'u:' .. digest) == 1 then found[#found + 1] = digest
      else leave(place, p, state) end
    end
  end
  return found
end
local function expire()
  for _, digest in ipairs(due_of('leased', 500, num(now))) do
    local r = record(digest)
    if r then move(r, 'waiting', r.due, 'tok', '', 'h', '') end
  end
end
"""

# ARGV: now, clock, rest of dead letters, rest of tasks, then of each URL: digest, url, priority, not_before, task,
# depth, slot, most waiting for its length and priority.
PUSH: Final = """
local dead_rest, task_rest = tonumber(ARGV[3]), tonumber(ARGV[4])
local added, refused = 0, 0
local waiting = count('waiting')
for k = 5, #ARGV, 8 do
  local digest, url, p, nb = ARGV[k], ARGV[k + 1], ARGV[k + 2], tonumber(ARGV[k + 3])
  local task, depth = ARGV[k + 4], tonumber(ARGV[k + 5])
  if nb > 0 then nb = nb + shift end
  local r = record(digest)
  if r and r.s == 'dead' and r.due + dead_rest <= now then
    nb = math.max(nb, math.min(r.due, now + task_rest)) drop(r) r = nil
  elseif r and r.s == 'done' and (r.due <= now or (task ~= '' and task ~= r.t)) then
    nb = math.max(nb, math.min(r.due, now + task_rest)) drop(r) r = nil
  end
  local due = math.max(nb, now)
  if r then
    if r.s == 'waiting' then
      local new_p = r.p
      if tonumber(p) < tonumber(r.p) then new_p = p end
      local sooner = r.n == 0 and due < r.due
      local new_task, new_depth = r.t, r.d
      if r.t == '' then new_task, new_depth = task, depth
      elseif r.t == task then new_depth = math.min(r.d, depth) end
      if new_p ~= r.p or sooner or new_task ~= r.t or new_depth ~= r.d then
        if not sooner then due, nb = r.due, r.nb end
        leave(r.i, r.p, r.s)
        if new_task ~= r.t then
          tally(r.t, r.s, -1) tally(new_task, r.s, 1)
          call('SADD', P .. 'k:' .. new_task, digest)
        end
        call('ZADD', P .. 'levels', new_p, new_p)
        call('HSET', P .. 'u:' .. digest, 'p', new_p, 'due', num(due), 'nb', num(nb), 't', new_task, 'd', new_depth)
        enter(r.i, new_p, 'waiting', due)
      end
    end
  elseif waiting + added >= tonumber(ARGV[k + 7]) then
    refused = refused + 1
  else
    local place = string.format('%012x', call('HINCRBY', P .. 'meta', 'seq', 1)) .. ARGV[k + 6] .. digest
    call('HSET', P .. 'u:' .. digest, 'url', url, 's', 'waiting', 'p', p, 'due', num(due), 'nb', num(nb), 'n', 0, 'tok', '',
      'h', '', 'e', '', 't', task, 'd', depth, 'i', place)
    call('ZADD', P .. 'levels', p, p)
    if task ~= '' then call('SADD', P .. 'k:' .. task, digest) end
    enter(place, p, 'waiting', due)
    tally(task, 'waiting', 1)
    added = added + 1
  end
end
return {added, refused}
"""

# ARGV: now, clock, limit, duration of the lease, token, holder, own slots as four hexadecimal digits each ("" for all).
TAKE: Final = """
if call('HEXISTS', P .. 'meta', 'paused') == 1 then return {} end
expire()
local limit, lease_s, own = tonumber(ARGV[3]), tonumber(ARGV[4]), nil
if ARGV[7] ~= '' then
  own = {}
  for k = 1, #ARGV[7], 4 do own[string.sub(ARGV[7], k, k + 3)] = true end
end
local found = {}
for _, p in ipairs(levels()) do
  local heads, offset = P .. 'h:' .. p, 0
  while #found < limit do
    local place = nil
    while not place do
      local page = call('ZRANGEBYSCORE', heads, '-inf', num(now), 'LIMIT', offset, own and 64 or 1)
      if #page == 0 then break end
      for _, one in ipairs(page) do
        if not own or own[slot_of(one)] then place = one break end
        offset = offset + 1
      end
    end
    if not place then break end
    local r = record(string.sub(place, 17))
    if r and r.s == 'waiting' and r.i == place and r.p == p then
      move(r, 'leased', now + lease_s, 'tok', ARGV[5], 'h', ARGV[6], 'n', r.n + 1)
      found[#found + 1] = {r.url, r.p, r.n + 1, r.t, r.d}
    else leave(place, p, 'waiting') call('ZREM', heads, place) end
  end
end
return found
"""

# ARGV: now, clock, state ("" removes the URL), time, error, what is added to the attempts ("" begins afresh), priority or "",
# "1" where the time is that of `nb`, too, then digest and token of each lease.
GIVE_BACK: Final = """
local given = 0
for k = 9, #ARGV, 2 do
  local r = record(ARGV[k])
  if r and r.s == 'leased' and r.tok == ARGV[k + 1] then
    given = given + 1
    if ARGV[3] == '' then drop(r)
    else
      local n = r.n
      if ARGV[6] == '' then n = 0 else n = n + tonumber(ARGV[6]) end
      local p, nb, due = r.p, r.nb, tonumber(ARGV[4]) + shift
      if ARGV[7] ~= '' then p = ARGV[7] call('ZADD', P .. 'levels', p, p) end
      if ARGV[8] ~= '' then nb = due end
      local new = {ARGV[3], due, 'tok', '', 'h', '', 'e', ARGV[5], 'n', n, 'nb', num(nb)}
      leave(r.i, r.p, r.s)
      tally(r.t, r.s, -1)
      call('HSET', P .. 'u:' .. r.digest, 's', new[1], 'due', num(due), 'p', p, unpack(new, 3))
      enter(r.i, p, new[1], due)
      tally(r.t, new[1], 1)
    end
  end
end
return given
"""

# ARGV: now, clock, duration, digest, token.
EXTEND: Final = """
local r = record(ARGV[4])
if not r or r.s ~= 'leased' or r.tok ~= ARGV[5] then return 0 end
move(r, 'leased', math.max(r.due, now + tonumber(ARGV[3])))
return 1
"""

# ARGV: now, clock, then digest and token of each lease. Returns the places of those that are held.
STILL_HELD: Final = """
local found = {}
for k = 3, #ARGV, 2 do
  local r = record(ARGV[k])
  if r and r.s == 'leased' and r.tok == ARGV[k + 1] then found[#found + 1] = (k - 3) / 2 end
end
return found
"""

# ARGV: now, clock, "1" for these holders and "0" for all but these, holders.
RELEASE: Final = """
local named, most = {}, 0
for k = 4, #ARGV do named[ARGV[k]] = true end
local released = 0
for _, p in ipairs(levels()) do
  for _, place in ipairs(call('ZRANGE', P .. 'i:leased:' .. p, 0, -1)) do
    local r = record(string.sub(place, 17))
    if r and r.h ~= '' and (named[r.h] or false) == (ARGV[3] == '1') then
      move(r, 'waiting', now, 'tok', '', 'h', '')
      released = released + 1
    end
  end
end
return released
"""

# ARGV: now, clock, most settled, how long dead letters stay, most at once.
SWEEP: Final = """
local most = tonumber(ARGV[5])
local swept = 0
local function remove(digests)
  for _, digest in ipairs(digests) do
    local r = record(digest)
    if r then drop(r) swept = swept + 1 end
  end
end
remove(due_of('done', most, num(now)))
remove(due_of('dead', most, num(now - tonumber(ARGV[4]))))
local surplus = count('done') + count('dead') - tonumber(ARGV[3])
if surplus > 0 then
  surplus = math.min(surplus, most)
  local before = swept
  remove(due_of('done', surplus, '+inf'))
  remove(due_of('dead', surplus - (swept - before), '+inf'))
end
for _, p in ipairs(levels()) do
  local left = 0
  for _, state in ipairs({'waiting', 'leased', 'done', 'dead'}) do
    left = left + call('EXISTS', P .. 'i:' .. state .. ':' .. p)
  end
  if left == 0 then call('ZREM', P .. 'levels', p) end
end
return swept
"""

# ARGV: now, clock.
STATS: Final = """
local found = {now, shift}
for _, state in ipairs({'waiting', 'leased', 'done', 'dead'}) do found[#found + 1] = count(state) end
local due, first = 0, ''
for _, p in ipairs(levels()) do
  due = due + call('ZCOUNT', P .. 'i:waiting:' .. p, '-inf', num(now))
  local head = call('ZRANGE', P .. 'i:waiting:' .. p, 0, 0, 'WITHSCORES')
  if head[1] and (first == '' or tonumber(head[2]) < tonumber(first)) then first = head[2] end
end
return {found[3], due, found[4], found[5], found[6], first, num(shift), call('HGET', P .. 'meta', 'paused') or ''}
"""

# ARGV: now, clock, limit, state or "", priority, time and place of the last one shown ("" for none).
PAGE: Final = """
local limit, states = tonumber(ARGV[3]), {ARGV[4]}
if ARGV[4] == '' then states = {'waiting', 'leased', 'done', 'dead'} end
local found = {}
for _, p in ipairs(levels()) do
  if #found >= limit then break end
  if ARGV[5] == '' or tonumber(p) >= tonumber(ARGV[5]) then
    local rows = {}
    local behind = ARGV[5] ~= '' and tonumber(p) == tonumber(ARGV[5])
    for _, state in ipairs(states) do
      local set, from, offset, taken = P .. 'i:' .. state .. ':' .. p, '-inf', 0, 0
      if behind then from = ARGV[6] end
      while taken < limit do
        local page = call('ZRANGEBYSCORE', set, from, '+inf', 'WITHSCORES', 'LIMIT', offset, limit)
        if #page == 0 then break end
        for k = 1, #page, 2 do
          if not behind or tonumber(page[k + 1]) > tonumber(ARGV[6]) or page[k] > ARGV[7] then
            rows[#rows + 1] = {tonumber(page[k + 1]), page[k], page[k + 1]}
            taken = taken + 1
          end
        end
        offset = offset + limit
      end
    end
    table.sort(rows, function(a, b) if a[1] ~= b[1] then return a[1] < b[1] end return a[2] < b[2] end)
    for k = 1, math.min(#rows, limit - #found) do
      local r = record(string.sub(rows[k][2], 17))
      if r then found[#found + 1] = {r.url, r.p, r.s, r.n, num(r.nb), r.e, r.t, r.d, rows[k][3], rows[k][2]} end
    end
  end
end
return {num(shift), found}
"""

# ARGV: now, clock, most at once.
REVIVE: Final = """
local digests = due_of('dead', tonumber(ARGV[3]), '+inf')
for _, digest in ipairs(digests) do
  local r = record(digest)
  if r then move(r, 'waiting', 0, 'n', 0, 'nb', 0, 'e', '') end
end
return #digests
"""

# ARGV: now, clock, most at once, "1" with a task and "0" for all, task.
CLEAR: Final = """
local digests = {}
if ARGV[4] == '1' then digests = call('SRANDMEMBER', P .. 'k:' .. ARGV[5], ARGV[3])
else
  for _, state in ipairs({'waiting', 'leased', 'done', 'dead'}) do
    for _, digest in ipairs(due_of(state, tonumber(ARGV[3]) - #digests, '+inf')) do digests[#digests + 1] = digest end
  end
end
for _, digest in ipairs(digests) do
  local r = record(digest)
  if r then drop(r) else call('SREM', P .. 'k:' .. ARGV[5], digest) end
end
return #digests
"""
