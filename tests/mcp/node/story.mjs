// A whole story told through an official TypeScript client, in calls. `call(name, arguments)` gives
// { isError, answer }. Any surprise is thrown. The same story as tests/mcp/story_client.py.
import assert from "node:assert/strict";

export async function tell(tools, call, unique) {
  const told = async (name, args = {}) => {
    const { isError, answer } = await call(name, args);
    assert(!isError, `${name}: ${JSON.stringify(answer)}`);
    return answer;
  };
  assert(tools.length >= 13 && new Set(tools).size === tools.length);
  await lease(told);
  await handoff(told);
  await once(told, unique);
  await mistakes(call);
}

async function lease(told) {
  const { namespace } = await told("create_lease_namespace");
  const work = { key: "report-2026", namespace, fingerprint: "v1" };
  const mine = await told("acquire_lease", { ...work, holder: "first" });
  assert.deepEqual([mine.ok, mine.status, mine.attempt], [true, "held", 1]);
  const theirs = await told("acquire_lease", work);
  assert.deepEqual([theirs.ok, theirs.status, theirs.holder], [false, "held", "first"]);
  const other = await told("acquire_lease", { ...work, fingerprint: "v2" });
  assert.deepEqual([other.ok, other.status], [false, "conflict"]);
  const proof = { key: work.key, namespace, owner_token: mine.owner_token };
  const renewed = await told("renew_lease", { ...proof, ttl_seconds: 120 });
  assert.equal(renewed.fencing_token, mine.fencing_token);
  const checked = await told("check_lease", { key: work.key, namespace, fencing_token: mine.fencing_token });
  assert.deepEqual([checked.status, checked.fence], ["held", "current"]);
  const done = await told("complete_lease", { ...proof, result: { pages: 12 } });
  assert.equal(done.status, "completed");
  const again = await told("acquire_lease", work);
  assert.deepEqual([again.status, again.result], ["completed", { pages: 12 }]);
  const late = await told("renew_lease", proof);
  assert.deepEqual([late.ok, late.status], [false, "lost"]);
}

async function handoff(told) {
  const made = await told("create_agent_handoff", { payload: { task: "review", lines: [1, 2] }, note: "please" });
  const theirs = { handoff_id: made.handoff_id, token: made.receiver_token };
  const ours = { handoff_id: made.handoff_id, token: made.owner_token };
  const seen = await told("read_agent_handoff", theirs);
  assert.deepEqual([seen.role, seen.state, seen.payload.lines], ["receiver", "offered", [1, 2]]);
  const waiting = told("read_agent_handoff", { ...ours, wait_seconds: 25, since_version: 1 });
  await new Promise((resolve) => setTimeout(resolve, 300));
  const moved = await told("advance_agent_handoff", { ...theirs, from: "offered", to: "accepted", nonce: "n1" });
  assert.deepEqual([moved.ok, moved.state, moved.by], [true, "accepted", "receiver"]);
  const news = await waiting;
  assert.deepEqual([news.wait_reason, news.state, news.history.at(-1).by], ["changed", "accepted", "receiver"]);
  const late = await told("advance_agent_handoff", { ...ours, from: "offered", to: "returned" });
  assert.deepEqual([late.ok, late.code, late.current_state], [false, "state_mismatch", "accepted"]);
}

async function once(told, unique) {
  const action = { namespace: `shop-${unique}`, action_key: "charge-1" };
  const claimed = await told("once_key_claim", { ...action, payload_sha256: "ab" });
  assert.equal(claimed.status, "claimed");
  const proof = { ...action, namespace_token: claimed.namespace_token };
  assert.equal((await told("once_key_claim", proof)).status, "held");
  const result = { paid: 7 };
  const done = await told("once_key_complete", { ...proof, claim_token: claimed.claim_token, result });
  assert.equal(done.status, "completed");
  const again = await told("once_key_claim", proof);
  assert.deepEqual([again.status, again.result, again.has_result], ["duplicate", result, true]);
  assert.equal((await told("once_key_claim", action)).status, "forbidden");
}

async function mistakes(call) {
  const { isError, answer } = await call("acquire_lease", { key: "k", fingerprnt: "x" });
  assert.deepEqual([isError, answer.code, answer.field], [true, "invalid_request", "fingerprnt"]);
  await assert.rejects(call("no_such_tool", {}), /Unknown tool/);
}

export function answerOf(result) {
  const text = JSON.parse(result.content[0].text);
  if (result.structuredContent !== undefined) assert.deepEqual(result.structuredContent, text);
  return { isError: result.isError ?? false, answer: text };
}
