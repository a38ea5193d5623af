/* Bars that shrink by themselves, and names for keys that never leave this browser.

   The server knows a key as SHA-256 over "fencepost:lease-key" and, for the namespace (if there is one) and the key, the
   length as eight bytes and the text. The same is computed here from what is typed, and rows with that digest get the
   name. Nothing typed is sent or stored. */
"use strict";

const PURPOSE = new TextEncoder().encode("fencepost:lease-key");
const field = document.getElementById("names");
const said = document.getElementById("names-said");
const labels = new Map();

async function digestOf(parts) {
  const texts = parts.map((part) => new TextEncoder().encode(part));
  const bytes = new Uint8Array(PURPOSE.length + texts.reduce((sum, text) => sum + 8 + text.length, 0));
  bytes.set(PURPOSE);
  let at = PURPOSE.length;
  for (const text of texts) {
    new DataView(bytes.buffer).setBigUint64(at, BigInt(text.length));
    bytes.set(text, at + 8);
    at += 8 + text.length;
  }
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function readNames() {
  labels.clear();
  for (const line of field.value.split("\n").map((text) => text.trim()).filter(Boolean)) {
    const parts = line.split(/\s+/).slice(0, 2);
    labels.set(await digestOf(parts), parts[parts.length - 1]);
  }
  label();
}

function label() {
  let found = 0;
  for (const row of document.querySelectorAll("[data-key]")) {
    const place = row.querySelector("[data-open]");
    const name = labels.get(row.dataset.key);
    let shown = row.querySelector(".named");
    if (!name) { if (shown) shown.remove(); continue; }
    found += 1;
    if (!shown) {
      shown = document.createElement("span");
      shown.className = "named";
      place.before(shown);
    }
    if (shown.textContent !== name + " ") shown.textContent = name + " ";
  }
  if (said) said.textContent = labels.size ? `${found} of ${labels.size} names are on this page.` : "";
}

if (field && crypto.subtle) {
  document.getElementById("naming").hidden = false;
  field.addEventListener("input", readNames);
}

/* A bar shrinks from what is left to nothing, in a movement that the browser makes by itself; only those on the screen do. */
const moving = new WeakMap();
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) { if (moving.has(target)) moving.get(target).cancel(); moving.delete(target); continue; }
    const { left, total, at } = target.dataset;
    const gone = performance.now() - Number(at);
    const begin = Math.max(0, Number(left) * 1000 - gone);
    const scale = Math.min(1, begin / (Number(total) * 1000));
    const steps = [{ transform: `scaleX(${scale})` }, { transform: "scaleX(0)" }];
    moving.set(target, target.animate(steps, { duration: begin, fill: "forwards" }));
  }
}, { rootMargin: "100px" });

function bars() {
  for (const bar of document.querySelectorAll(".bar-left:not([data-at])")) {
    bar.dataset.at = seenAt;
    seen.observe(bar);
  }
}
bars();
setInterval(() => { bars(); if (field) label(); }, 250);
