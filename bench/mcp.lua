-- The jobs of lease.lua, over REST or as tools: the first argument says which ("rest", "mcp").

local letters = "abcdefghijklmnopqrstuvwxyz"
local revision = "2026-07-28"
local meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"' .. revision
  .. '","io.modelcontextprotocol/clientCapabilities":{}}'
local surface = "rest"
local threads = 0
local granted, first, last = {}, 1, 0
local job = 0

function setup(thread)
  thread:set("thread_number", threads)
  threads = threads + 1
end

function init(args)
  surface = args[1] or "rest"
  run = surface .. tostring(os.time() % 1000000)
end

local function ask(operation, members)
  local headers = { ["Content-Type"] = "application/json" }
  if surface == "rest" then
    return wrk.format("POST", "/services/v1/lease/" .. operation, headers, members)
  end
  local tool = operation .. "_lease"
  headers["MCP-Protocol-Version"] = revision
  headers["Mcp-Method"] = "tools/call"
  headers["Mcp-Name"] = tool
  local body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"' .. tool
    .. '","arguments":' .. members .. "," .. meta .. "}}"
  return wrk.format("POST", "/mcp", headers, body)
end

local function names(number)
  return string.format(
    '"key":"bench-%s-%d-%s-%011d","owner_token":"own_%s%06d%011d"',
    run, thread_number, letters, number, letters, thread_number, number
  )
end

function request()
  if first <= last then
    local number = granted[first]
    granted[first] = nil
    first = first + 1
    return ask("release", "{" .. names(number) .. "}")
  end
  job = job + 1
  return ask("acquire", "{" .. names(job) .. ',"ttl_seconds":60}')
end

function response(_, _, body)
  local number = body:match('"owner_token":"own_' .. letters .. '%d%d%d%d%d%d(%d+)"')
  if number then
    last = last + 1
    granted[last] = tonumber(number)
  elseif not body:find('"status":"released"', 1, true) then
    error("neither granted nor released: " .. body:sub(1, 300))
  end
end
