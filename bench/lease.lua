-- One finished job after the other: acquire a fresh key, then release or complete it.
-- The caller brings the owner token and puts the job's number into it, so that the answer to an acquire, whichever
-- connection it came over, says which job may go on. Arguments: how it ends, and the path before `/acquire`.

local letters = "abcdefghijklmnopqrstuvwxyz"
local headers = { ["Content-Type"] = "application/json" }
local threads = 0
local granted, first, last = {}, 1, 0
local job = 0
local ending = "release"
local base = "/services/v1/lease"

function setup(thread)
  thread:set("thread_number", threads)
  threads = threads + 1
end

function init(args)
  ending = args[1] or "release"
  base = args[2] or base
  run = tostring(os.time() % 1000000)
end

local function key_of(number)
  return string.format("bench-%s-%d-%s-%011d", run, thread_number, letters, number)
end

local function token_of(number)
  return string.format("own_%s%06d%011d", letters, thread_number, number)
end

function request()
  if first <= last then
    local number = granted[first]
    granted[first] = nil
    first = first + 1
    local more = ending == "complete" and ',"result":{"done":true}' or ""
    local body = string.format('{"key":"%s","owner_token":"%s"%s}', key_of(number), token_of(number), more)
    return wrk.format("POST", base .. "/" .. ending, headers, body)
  end
  job = job + 1
  local body = string.format('{"key":"%s","owner_token":"%s","ttl_seconds":60}', key_of(job), token_of(job))
  return wrk.format("POST", base .. "/acquire", headers, body)
end

function response(status, _, body)
  local number = body:match('"owner_token":"own_' .. letters .. '%d%d%d%d%d%d(%d+)"')
  if number then
    last = last + 1
    granted[last] = tonumber(number)
  end
end
