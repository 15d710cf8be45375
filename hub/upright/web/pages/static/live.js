// Live: one stream of events a tab. What happened is looked up by reading this page anew, so that it is the server that says
// how things look. Focus stays where it is; what a person types or has unfolded is kept. When the line is lost the page says
// so, and since when; it goes on behind the last event that it knows. A hidden tab has no stream: browsers allow few.

const main = document.getElementById("main");
const sign = document.getElementById("live");
const QUICKEST_MS = 700;
const AGES_MS = 60_000;
const SLOWEST_MS = 30_000;

let seq = Number(main.dataset.seq);
let stream = null;
let asOf = new Date();
let reading = false;
let again = false;
let due = 0;
let patience = 1_000;

function show(live) {
  sign.classList.toggle("stale", !live);
  const at = asOf.toLocaleTimeString(document.documentElement.lang);
  const said = live ? sign.dataset.live : sign.dataset.stale.replace("{at}", at);
  if (sign.textContent !== said) sign.textContent = said;
}

// ------------------------------------------------------------------ showing what is new
function isTyped(old) {
  const fields = [...old.querySelectorAll("textarea, input:not([type=hidden]), select")];
  return fields.some((one) => one === document.activeElement || (one.defaultValue !== undefined && one.value !== one.defaultValue));
}

function hasLooseText(element) {
  return [...element.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim());
}

function swap(old, fresh) {
  if (isTyped(old)) return;
  const here = document.activeElement;
  const nth = old.contains(here) ? [...old.querySelectorAll(here.tagName)].indexOf(here) : -1;
  const at = [old.scrollTop, old.scrollLeft];
  old.replaceWith(fresh);
  fresh.scrollTo(at[1], at[0]);
  if (!here.isConnected || nth >= 0) {
    const target = (here.id && document.getElementById(here.id)) || fresh.querySelectorAll(here.tagName)[nth];
    target?.focus({ preventScroll: true });
  }
}

function copyAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
}

// Elements with ids are known again wherever they stand; others by their place. What is equal is not touched.
function merge(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (!fresh.children.length || old.tagName !== fresh.tagName || hasLooseText(old) || hasLooseText(fresh)) {
    swap(old, fresh);
    return;
  }
  copyAttributes(old, fresh);
  const known = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
  const before = [...old.children];
  const kept = new Set();
  let place = old.firstElementChild;
  for (const child of [...fresh.children]) {
    while (place && kept.has(place)) place = place.nextElementSibling;
    const beside = place && !place.id && !child.id && place.tagName === child.tagName ? place : null;
    const was = child.id ? known.get(child.id) : beside;
    if (!was) {
      old.insertBefore(child, place);
      continue;
    }
    kept.add(was);
    if (was === place) place = place.nextElementSibling;
    else old.insertBefore(was, place);
    merge(was, child);
  }
  for (const one of before) {
    if (kept.has(one)) continue;
    if (one.contains(document.activeElement)) main.focus({ preventScroll: true });
    one.remove();
  }
}

async function read() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (answer.redirected && new URL(answer.url).pathname.startsWith("/sign-in")) {
      location.assign(answer.url);
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    seq = Math.max(seq, Number(fresh.dataset.seq));
    merge(main, fresh);
    asOf = new Date();
    show(stream?.readyState === EventSource.OPEN);
  } catch {
    show(false);
  } finally {
    reading = false;
    if (again) {
      again = false;
      soon();
    }
  }
}

function soon() {
  if (due) return;
  due = setTimeout(() => {
    due = 0;
    read();
  }, QUICKEST_MS);
}

// ------------------------------------------------------------------ the stream
function close() {
  stream?.close();
  stream = null;
}

function open() {
  if (stream || document.hidden) return;
  stream = new EventSource(`/v1/events?unnamed=1&after=${seq}`);
  stream.onopen = () => {
    patience = 1_000;
    read();
  };
  stream.onmessage = (event) => {
    seq = Math.max(seq, Number(event.lastEventId));
    soon();
  };
  stream.onerror = () => {
    show(false);
    if (stream?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    close(); // refused: what comes next is gone, or there are too many; read anew, and start there
    setTimeout(reopen, patience);
    patience = Math.min(patience * 2, SLOWEST_MS);
  };
}

async function reopen() {
  const known = seq;
  seq = 0; // what the page itself says goes before what was counted: the numbers may be others now
  await read();
  if (!seq) seq = known;
  open();
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", open);
setInterval(() => stream && soon(), AGES_MS);
open();
