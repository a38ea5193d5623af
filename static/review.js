/* The link that a reviewer gets carries its secret in the fragment, which no browser sends. This takes it out of the
   address, trades it for a cookie that opens the one handoff, and goes there. Nothing is decided or used up by that. */
"use strict";

async function open(secret) {
  const opening = document.getElementById("opening");
  const form = document.getElementById("door");
  opening.hidden = false;
  form.hidden = true;
  let said = "The server does not answer. Try the link again in a moment.";
  try {
    const answer = await fetch("/review", { method: "POST", body: new URLSearchParams({ token: secret }) });
    if (answer.ok && answer.redirected) { location.replace(answer.url); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    said = (page.querySelector("[role=alert]") || page.querySelector("h1")).textContent.trim();
  } catch (fault) {
    /* `said` tells it */
  }
  opening.hidden = true;
  form.hidden = false;
  const trouble = document.getElementById("trouble");
  trouble.querySelector("p").textContent = said;
  trouble.hidden = false;
}

function take() {
  if (location.hash.length < 2) return;
  const secret = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  open(secret);
}

addEventListener("hashchange", take);
take();
