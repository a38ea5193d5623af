-- A finished job on etcd, with as many calls as the same promise needs: a lease to bound the hold, a transaction that
-- takes the key if nobody has it (its revision is the fence), one that keeps the result and gives the key up if it is
-- still ours, and the end of the lease. Through the JSON gateway, as every caller of HTTP can.
--
-- The gateway takes and gives base64. Keys and values here are letters and digits, four at a time: valid as they stand.

local headers = { ["Content-Type"] = "application/json" }
local threads = 0
local job = 0
local steps, first, last = {}, 1, 0

function setup(thread)
  thread:set("thread_number", threads)
  threads = threads + 1
end

function init()
  run = os.time() % 1000000
end

local function name(kind, number)
  return string.format("%s%08d%04d%012d", kind, run, thread_number, number)
end

local function add(path, body)
  last = last + 1
  steps[last] = { path = path, body = body }
end

local function take(number, lease)
  local value = string.format("%012d", number) .. string.rep("0", 20 - #lease) .. lease
  local lock, done = name("lock", number), name("done", number)
  add("/v3/kv/txn", string.format(
    '{"compare":[{"key":"%s","target":"CREATE","create_revision":"0"},'
      .. '{"key":"%s","target":"CREATE","create_revision":"0"}],'
      .. '"success":[{"request_put":{"key":"%s","value":"%s","lease":"%s"}},{"request_range":{"key":"%s"}}],'
      .. '"failure":[{"request_range":{"key":"%s"}}]}',
    lock, done, lock, value, lease, lock, done))
end

local function complete(number, lease, fence)
  local lock, done = name("lock", number), name("done", number)
  add("/v3/kv/txn", string.format(
    '{"compare":[{"key":"%s","target":"CREATE","create_revision":"%s"}],'
      .. '"success":[{"request_put":{"key":"%s","value":"done%s"}},{"request_range":{"key":"%s"}},'
      .. '{"request_delete_range":{"key":"%s"}}]}',
    lock, fence, done, lease, done, lock))
end

function request()
  if first <= last then
    local step = steps[first]
    steps[first] = nil
    first = first + 1
    return wrk.format("POST", step.path, headers, step.body)
  end
  return wrk.format("POST", "/v3/lease/grant", headers, '{"TTL":60}')
end

-- Each answer names what comes next: the lease that was granted, the lock that was taken, the result that was kept.
function response(status, _, body)
  local granted = body:match('"ID":"(%d+)"')
  if granted then
    job = job + 1
    return take(job, granted)
  end
  local finished = body:match('"value":"done(%d+)"')
  if finished then
    return add("/v3/lease/revoke", string.format('{"ID":"%s"}', (finished:gsub("^0+", ""))))
  end
  local number, lease = body:match('"value":"(%d%d%d%d%d%d%d%d%d%d%d%d)(%d+)"')
  if number then
    complete(tonumber(number), lease, body:match('"create_revision":"(%d+)"'))
  end
end
