/* Keeps a page fresh. The page is whole without it: everything here only saves a reload.

   Live parts are elements with an id and `data-live`. A signal on the stream (or the clock, when there is no stream)
   says "look again": the page is fetched once more and its live parts are put in the place of the old ones. Rows of a
   list (`data-rows` with `data-key` rows) change in place; new ones wait behind a button, so that nothing moves under
   a pointer. What is being typed, the focus and ticked boxes stay. Times left are counted from the server's seconds on
   the browser's monotonic clock; its wall clock is never asked. */
"use strict";

const feed = document.body.dataset.feed || "";
const byId = (id) => document.getElementById(id);
const badge = byId("connection");
const news = byId("news");
const SAY = { live: "live", reconnecting: "reconnecting", polling: "polling", offline: "offline", over: "signed out" };

/* ------------------------------------------------------------------------------------------------ times left */

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function inWords(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (let i = 0; i < UNITS.length; i++) {
    if (whole >= UNITS[i][0]) {
      const below = UNITS[i + 1] ? Math.floor((whole % UNITS[i][0]) / UNITS[i + 1][0]) : 0;
      return `${Math.floor(whole / UNITS[i][0])} ${UNITS[i][1]}` + (below ? ` ${below} ${UNITS[i + 1][1]}` : "");
    }
  }
  return "0 s";
}

/* What the server says was true when it looked: so long before its answer arrived. */
const lagOf = (page) => Number((page.getElementById("lag") || { dataset: {} }).dataset.lag || 0);
const ends = new WeakMap();
const arrival = performance.getEntriesByType("navigation")[0];
let seenAt = (arrival ? arrival.responseStart : performance.now()) - lagOf(document);

/* Only what is on the screen is written to; the end of what is not is known all the same. */
const onScreen = new WeakSet();
const watcher = "IntersectionObserver" in window ? new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) { onScreen.add(entry.target); write(entry.target); } else onScreen.delete(entry.target);
  }
}, { rootMargin: "200px" }) : null;

function known(element) {
  let found = ends.get(element);
  if (!found) {
    const isAge = "age" in element.dataset;
    const seconds = Number(isAge ? element.dataset.age : element.dataset.left);
    found = { isAge, zero: seenAt + (isAge ? -seconds : seconds) * 1000, over: !isAge && seconds <= 0 };
    ends.set(element, found);
    if (watcher) watcher.observe(element); else onScreen.add(element);
  }
  return found;
}

function write(element) {
  const { isAge, zero } = known(element);
  const seconds = (isAge ? performance.now() - zero : zero - performance.now()) / 1000;
  const words = !isAge && seconds <= 0 ? element.dataset.over : inWords(seconds);
  if (element.textContent !== words) element.textContent = words;
}

let alarm = 0;

function tick() {
  let ended = false;
  let next = Infinity;
  for (const element of document.querySelectorAll(".left[data-left], .age[data-age]")) {
    const it = known(element);
    if (!it.isAge && !it.over) {
      if (it.zero <= performance.now()) { it.over = ended = true; write(element); } else next = Math.min(next, it.zero);
    }
    if (onScreen.has(element)) write(element);
  }
  if (ended && feed) setTimeout(refresh, 150);
  clearTimeout(alarm);
  if (next < Infinity) alarm = setTimeout(tick, Math.min(next - performance.now() + 1, 250000));
}

/* ------------------------------------------------------------------------------------------------ fresh parts */

let busy = false;
let again = false;
let failures = 0;
let offlineSince = "";
let over = false;
let waiting = null;

async function refresh() {
  if (over || !feed) return;
  if (busy) { again = true; return; }
  busy = true;
  try {
    const asked = performance.now();
    const answer = await fetch(location.pathname + location.search, {
      headers: { "X-Fencepost-Live": "1" }, cache: "no-store", redirect: "manual",
    });
    if (answer.status === 401 || answer.type === "opaqueredirect") { endSession(); return; }
    if (answer.status >= 500) throw new Error(String(answer.status));
    const answered = performance.now();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    seenAt = Math.max(asked, answered - lagOf(page));
    failures = 0;
    if (offlineSince) { offlineSince = ""; enable(true); }
    put(page);
    show();
  } catch (fault) {
    failures += 1;
    if (failures >= 2 && !offlineSince) {
      offlineSince = new Date().toISOString().slice(11, 19) + " UTC";
      enable(false);
    }
    show();
  } finally {
    busy = false;
    if (again) { again = false; soon(); }
  }
}

/* At once for one change, once a second for many: never later because still more happens. */
let timer = 0;
let last = -1000;
function soon() {
  if (timer) return;
  timer = setTimeout(() => { timer = 0; last = performance.now(); refresh(); }, Math.max(120, last + 1000 - performance.now()));
}

function put(page) {
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const old = byId(fresh.id);
    if (!old) continue;
    if ("rows" in old.dataset) { putRows(old, fresh); continue; }
    if (old.outerHTML === fresh.outerHTML) continue;
    if (old.dataset.live === "keep-typed") continue;
    const focus = old.contains(document.activeElement) ? document.activeElement : null;
    const key = focus && (focus.id || focus.textContent);
    const open = new Set([...old.querySelectorAll("details[open][id]")].map((one) => one.id));
    const placed = document.importNode(fresh, true);
    for (const one of placed.querySelectorAll("details[id]")) one.open = one.open || open.has(one.id);
    old.replaceWith(placed);
    if (focus) {
      const same = [...placed.querySelectorAll("a, button, input, summary")].find((one) => (one.id || one.textContent) === key);
      (same || byId("content")).focus({ preventScroll: true });
    }
    if (placed.dataset.announce && placed.dataset.announce !== old.dataset.announce) announce(placed.dataset.announce);
  }
  tick();
}

function putRows(old, fresh) {
  const known = new Map([...old.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row]));
  let added = 0;
  const present = new Set();
  for (const row of fresh.querySelectorAll("[data-key]")) {
    present.add(row.dataset.key);
    const mine = known.get(row.dataset.key);
    if (!mine) { added += 1; continue; }
    const isSame = mine.dataset.version === row.dataset.version && mine.dataset.mark === row.dataset.mark;
    if (isSame && !mine.classList.contains("gone")) continue;
    const placed = document.importNode(row, true);
    const ticked = mine.querySelector("input[type=checkbox]");
    const box = placed.querySelector("input[type=checkbox]");
    if (ticked && box) box.checked = ticked.checked;
    const focus = mine.contains(document.activeElement) ? document.activeElement.tagName : "";
    if (!isSame) placed.classList.add("changed");
    mine.replaceWith(placed);
    if (focus) (placed.querySelector(focus) || byId("content")).focus({ preventScroll: true });
  }
  for (const [key, row] of known) if (!present.has(key)) row.classList.add("gone");
  waiting = added || (known.size === 0) !== (present.size === 0) ? document.importNode(fresh, true) : null;
  if (added && known.size === 0) { showWaiting(); return; }
  sayWaiting(added);
}

function sayWaiting(added) {
  const button = byId("new-rows");
  if (!added) { if (button) { button.remove(); news.hidden = !news.textContent; } return; }
  const text = `${added} new`;
  if (button) { if (button.textContent !== text) button.textContent = text; return; }
  const made = document.createElement("button");
  made.type = "button";
  made.id = "new-rows";
  made.textContent = text;
  made.addEventListener("click", showWaiting);
  news.replaceChildren(made);
  news.hidden = false;
}

function showWaiting() {
  if (!waiting) return;
  const old = byId(waiting.id);
  const ticked = new Set([...old.querySelectorAll("input:checked")].map((box) => box.value));
  for (const box of waiting.querySelectorAll("input[type=checkbox]")) box.checked = ticked.has(box.value);
  const hadFocus = document.activeElement && document.activeElement.id === "new-rows";
  const placed = waiting;
  old.replaceWith(placed);
  waiting = null;
  news.replaceChildren();
  news.hidden = true;
  if (hadFocus) (placed.querySelector("a") || byId("content")).focus({ preventScroll: true });
  tick();
}

function announce(text) {
  news.textContent = text;
  news.hidden = false;
}

function enable(on) {
  for (const button of document.querySelectorAll("main button")) {
    if (!on && !button.disabled) {
      button.disabled = true;
      button.dataset.offline = "1";
      button.title = "The server does not answer";
    } else if (on && button.dataset.offline) {
      button.disabled = false;
      button.removeAttribute("title");
      delete button.dataset.offline;
    }
  }
}

function endSession() {
  over = true;
  const link = document.createElement("a");
  link.href = "/sign-in?next=" + encodeURIComponent(location.pathname + location.search);
  link.textContent = "Sign in again";
  news.replaceChildren("Your session is over; this page is no longer kept fresh. ", link);
  news.classList.add("caution");
  news.hidden = false;
  if (socket) socket.close();
  show();
}

/* ------------------------------------------------------------------------------------------------ connection */

let socket = null;
let isLive = false;
let tries = 0;

function connect() {
  if (over || socket || feed === "poll") return;
  const target = location.origin.replace(/^http/, "ws") + "/services/v1/stream";
  try { socket = new WebSocket(target, ["fencepost.v1"]); } catch (fault) { socket = null; later(); return; }
  socket.addEventListener("open", () => {
    for (const name of feed.split(" ")) socket.send(JSON.stringify({ t: "sub", id: name, feed: name }));
  });
  socket.addEventListener("message", (event) => {
    let frame;
    try { frame = JSON.parse(event.data); } catch (fault) { return; }
    lastHeard = performance.now();
    if (frame.t === "feed") {
      if (!isLive) { isLive = true; tries = 0; show(); }
      document.dispatchEvent(new CustomEvent("fencepost:feed", { detail: frame }));
      soon();
    }
    if (frame.t === "err") { socket.close(); soon(); }
  });
  socket.addEventListener("close", (event) => {
    socket = null;
    isLive = false;
    show();
    if (event.code === 4013) soon();
    later();
  });
}

let lastHeard = performance.now();

function later() {
  tries += 1;
  const pause = Math.min(20000, 400 * 2 ** Math.min(tries, 6)) * (0.5 + Math.random());
  setTimeout(connect, pause);
  if (tries === 1) soon();
}

function show() {
  if (!badge || !feed) return;
  const state = over ? "over" : offlineSince ? "offline" : isLive ? "live" : feed !== "poll" && tries < 3 ? "reconnecting" : "polling";
  const text = state === "offline" ? `offline since ${offlineSince}` : SAY[state];
  if (badge.dataset.state !== state || badge.textContent !== text) {
    badge.dataset.state = state;
    badge.textContent = text;
  }
  badge.hidden = false;
}

if (feed) {
  connect();
  show();
  setInterval(() => { if (!document.hidden && (!isLive || offlineSince)) refresh(); }, 4000);
  setInterval(() => {
    if (isLive && performance.now() - lastHeard > 50000 && socket) socket.close();
    if (!document.hidden) refresh();
  }, 20000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { tick(); refresh(); connect(); } });
  addEventListener("online", () => { refresh(); connect(); });
  addEventListener("pageshow", (event) => { if (event.persisted) refresh(); });
}
tick();
setInterval(tick, 250);

/* ------------------------------------------------------------------------------------------------ keys */

const KEYS_OFF = "fencepost-keys-off";
const keysOn = () => { try { return !localStorage.getItem(KEYS_OFF); } catch (fault) { return true; } };
const dialog = byId("keys");

if (dialog) {
  const box = byId("keys-on");
  box.checked = keysOn();
  box.addEventListener("change", () => {
    try { if (box.checked) localStorage.removeItem(KEYS_OFF); else localStorage.setItem(KEYS_OFF, "1"); } catch (fault) { /* kept for this page */ }
  });
  byId("keys-button").hidden = false;
  byId("keys-button").addEventListener("click", () => dialog.showModal());
}

function isTyping(element) {
  return element && (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName)) && element.type !== "checkbox";
}

function step(by) {
  const rows = [...document.querySelectorAll("[data-key] a[data-open]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement);
  rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by))].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const confirm = document.querySelector("button[data-confirm]");
    if (confirm && !confirm.disabled) { event.preventDefault(); confirm.click(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !keysOn() || isTyping(event.target) || (dialog && dialog.open)) return;
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "n") showWaiting();
  else if (event.key === "?" && dialog) dialog.showModal();
  else if (/^[1-9]$/.test(event.key)) {
    const choice = document.querySelectorAll("button[data-choice]")[Number(event.key) - 1];
    if (choice) choice.focus();
  }
});

/* A page that answers a form takes the address of the page that the form stood on, so that Back and Reload ask nothing. */
const here = document.body.dataset.here;
if (here) history.replaceState(null, "", here);

/* Nothing picked, nothing to move. */
const bulk = byId("bulk");
function countPicked() {
  const count = document.querySelectorAll("input[name=pick]:checked").length;
  byId("move-picked").disabled = count === 0;
  byId("picked").textContent = count === 0 ? "Pick rows first." : `${count} picked.`;
}
if (bulk) {
  document.addEventListener("change", (event) => { if (event.target.name === "pick") countPicked(); });
  addEventListener("pageshow", countPicked);
}

/* A form is sent once: a second click finds the button asleep until the page is shown again. */
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent) { event.preventDefault(); return; }
  if (form.method === "dialog") return;
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, 5000);
});
addEventListener("pageshow", () => { for (const form of document.forms) delete form.dataset.sent; });

/* ------------------------------------------------------------------------------------------------ sign-in link */

const code = byId("code");
if (location.pathname === "/sign-in" && location.hash.length > 1) {
  if (code) code.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname + location.search);
  if (code) byId("name").focus();
}
