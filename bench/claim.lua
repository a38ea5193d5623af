-- Claims of ever new actions in one namespace. Arguments: a name for the run, the namespace's token, a credit token or "".

local threads = 0
local number = 0

function setup(thread)
  thread:set("thread_number", threads)
  threads = threads + 1
end

function init(args)
  run, owner = args[1], args[2]
  headers = { ["Content-Type"] = "application/json" }
  if args[3] and args[3] ~= "" then headers["X-Credit-Token"] = args[3] end
end

function request()
  number = number + 1
  local body = string.format(
    '{"namespace":"bench-%s","namespace_token":"%s","action_key":"%s-%d-%d"}', run, owner, run, thread_number, number
  )
  return wrk.format("POST", "/once-key", headers, body)
end

function response(_, _, body)
  if not body:find('"status":"claimed"', 1, true) then error("not claimed: " .. body:sub(1, 300)) end
end
