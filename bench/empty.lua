-- The same request bytes as an acquire, to a route that does nothing.

wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"key":"bench-000000-0-abcdefghijklmnopqrstuvwxyz-00000000001",'
  .. '"owner_token":"own_abcdefghijklmnopqrstuvwxyz00000000000000001","ttl_seconds":60}'
