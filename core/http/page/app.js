// Begins, asks again and again what has changed, and brings it to what is shown. Keys are at the end.

import { follow, forget, get, hasKey, login, onLocked, own } from "./api.js";
import { $, ago, ask, h, keep, show, toast } from "./dom.js";
import { Session, TABS, create, firstRequest, order, url } from "./session.js";
import { doing, needsAnswer, stateOf, store, wordsOf } from "./store.js";
import { Events, Service } from "./views.js";

const PAUSE = 2500; // milliseconds between two looks at all sessions; more where a look takes long
const AT_ONCE = 60; // rows of the list that are added at a time
const SHARE = 10; // so many times what a look took is the least time between two
const app = $("app");
let shown = null; // what is in the main part
let aborting = null;
let looking = null;
let filter = "";
let most = AT_ONCE; // rows that are shown

// ---------------------------------------------------------------- logging in

function locked(title, text) {
  aborting?.abort();
  clearTimeout(looking);
  shown?.close?.();
  shown = null;
  app.hidden = true;
  $("locked").hidden = false;
  if (title) $("locked-title").textContent = title;
  if (text) $("locked-text").textContent = text;
}

async function begin() {
  onLocked(() => { forget(); locked(); });
  const key = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (key) {
    history.replaceState(null, "", location.pathname + "#/");
    try {
      await login(key);
    } catch (error) {
      if (!hasKey()) return locked("This link does not log in", `${error.told ?? error.message} Type this for another one:`);
      toast(error.told ?? error.message, true);
    }
  }
  if (!hasKey()) return locked();
  try {
    await look();
  } catch (error) {
    if (error.status === 401) return;
    toast(error.told ?? String(error), true);
  }
  app.hidden = false;
  route();
  watch();
}

// ---------------------------------------------------------------- what has changed

async function look() {
  const begun = performance.now();
  const [{ sessions }, { requests }] = await Promise.all([get("/standing-sessions"), get("/requests")]);
  store.requests = requests;
  store.sessions = new Map(sessions.map((row) => [row.name, row]));
  render();
  return performance.now() - begun;
}

async function again() {
  clearTimeout(looking);
  clearTimeout(soon);
  soon = null;
  looked = performance.now();
  try {
    took = await look();
    linked(true);
  } catch (error) {
    if (error.status === 401) return;
    linked(false);
  }
  if (!document.hidden) looking = setTimeout(again, Math.max(PAUSE, SHARE * took));
}

let soon = null, looked = 0, took = 0; // when the latest look began, and how long it took
function changed() {
  soon ??= setTimeout(again, Math.max(250, looked + SHARE * took - performance.now()));
}

function watch() {
  aborting?.abort();
  aborting = new AbortController();
  follow(
    (event) => {
      shown?.event?.(event);
      if (event.name || event.event.startsWith("standing.")) changed();
    },
    linked,
    aborting.signal,
  );
  again();
}

function linked(up) {
  const state = $("link-state");
  state.className = `link-state ${up ? "on" : "off"}`;
  const words = up ? "Live" : "Not connected";
  if (state.textContent !== words) state.textContent = words;
}

document.addEventListener("changed", changed);
document.addEventListener("threaded", () => shown?.update?.());
document.addEventListener("visibilitychange", () => {
  if (app.hidden) return;
  if (document.hidden) {
    aborting?.abort();
    clearTimeout(looking);
  } else {
    watch();
    shown?.panel?.load?.();
  }
});

// ---------------------------------------------------------------- what is shown

function render() {
  const rows = [...store.sessions.values()];
  const asking = rows.filter(needsAnswer);
  const others = rows.filter((row) => !needsAnswer(row));
  const told = (row) => ({ name: row.name, state: stateOf(row), doing: doing(row), when: ago(row.lastMessageAt ?? row.startedAt), words: wordsOf(row) });
  keep($("needs"), asking.map(told), (row) => row.name, rowNode);
  keep($("sessions"), others.map(told), (row) => row.name, rowNode);
  $("needs-title").hidden = !asking.length;
  document.title = asking.length ? `(${asking.length}) the-loop` : "the-loop";
  sift();
  mark();
  shown?.update?.();
}

// Shows the rows that have every word of the filter. They stay where they are, and of many only the first are shown
// until somebody goes further down, so that a key costs little.
function sift() {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const node of document.querySelectorAll(".rows > .row")) {
    const fits = words.every((word) => node.words.includes(word));
    found += fits;
    const seen = fits && found <= most;
    if (node.hidden === seen) node.hidden = !seen;
  }
  $("rail-more").hidden = found <= most;
  const all = store.sessions.size;
  $("sessions-title").textContent = words.length ? `Sessions, ${found} of ${all}` : `Sessions, ${all}`;
  $("rail-empty").hidden = found > 0;
  $("rail-empty").textContent = all ? "No session has these words." : "There is no session yet. “New session” below makes one.";
}

function rowNode(row, old) {
  const [kind] = row.state;
  const node = old ?? h("li.row", {}, h("a", { href: url(row.name, "talk") }, h("span"), h("span.row-name", {}, row.name), h("span.row-when"), h("span.row-what")));
  node.className = `row is-${kind}`;
  node.words = row.words;
  const [dot, , when, what] = node.firstChild.children;
  dot.className = `dot ${kind}`;
  when.textContent = row.when;
  what.textContent = row.doing;
  what.title = row.doing;
  return node;
}

function mark() {
  const { page, name } = store.view;
  const old = document.querySelectorAll(".rail [aria-current]");
  for (const node of old) node.removeAttribute("aria-current");
  if (page === "events") $("to-events").setAttribute("aria-current", "page");
  if (page === "service") $("to-service").setAttribute("aria-current", "page");
  if (page === "session") link(name)?.setAttribute("aria-current", "page");
}

const link = (name) => document.querySelector(`.rows > [data-key="${CSS.escape(name)}"] a`);

function route() {
  if (app.hidden) return;
  const [, page, name, tab] = /^#\/(?:(s)\/([^/]+)(?:\/(\w+))?|events|service)?$/.exec(location.hash) ?? [];
  const wanted = TABS.some(([known]) => known === tab) ? tab : "talk";
  if (page === "s") {
    const decoded = decodeURIComponent(name);
    if (!(shown instanceof Session) || shown.name !== decoded) {
      put(new Session(decoded), "session", decoded);
      shown.open(wanted);
    } else if (shown.tab !== wanted) shown.open(wanted);
    store.view.tab = wanted;
    sessionStorage.setItem("tab", wanted);
  } else if (location.hash === "#/events") titled(new Events(), "events", "Events");
  else if (location.hash === "#/service") titled(new Service(), "service", "Service");
  else put({ node: [h("div.empty", {}, h("h2", {}, "Choose a session"), h("p", {}, "Arrow keys or j and k go through the list, Enter opens one, ? shows all keys."))] }, "list", "");
  mark();
}

function titled(view, page, title) {
  const end = page === "service" ? h("div.actions", {}, h("button.button", { type: "button", onclick: logOut }, "Log out")) : null;
  const { node } = view;
  view.node = [h("header.head", {}, h("div.head-line", {}, h("a.back", { href: "#/", "aria-label": "All sessions" }, "‹"), h("h1", {}, title), end)), h("div.body", {}, node)];
  put(view, page, "");
  view.start();
}

function put(view, page, name) {
  shown?.close?.();
  shown?.stop?.();
  shown = view;
  store.view = { page, name, tab: "" };
  app.dataset.view = page;
  show($("main"), view.node);
}

async function logOut() {
  try {
    await own("/page/logout", {});
  } catch (error) {
    return toast(error.told ?? String(error), true);
  }
  forget();
  locked("You are logged out", "Type this on the machine where the service runs for another link:");
}

window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#login=")) begin();
  else route();
});
$("filter").addEventListener("input", (event) => { filter = event.target.value; most = AT_ONCE; sift(); });
$("new-session").addEventListener("click", makeNew);
$("show-help").addEventListener("click", help);

async function makeNew() {
  if (store.status === null) store.status = await get("/status").catch(() => null);
  create();
}

// ---------------------------------------------------------------- keys

const KEYS = [
  ["j k ↑ ↓", "Through the list"], ["Enter", "Open the session"], ["/", "Filter the list, or search in the events"],
  ["m", "Write a message"], ["a", "Go to what waits for your answer"], ["1 … 6", "Conversation, screen, queue, loops, events, details"],
  ["i", "Interrupt the turn"], ["p", "Pause, or end the pause"], ["r", "Restart"], ["x", "Stop, or start"],
  ["n", "New session"], ["e", "All events"], ["Esc", "Leave a field, or go back to the list"], ["?", "This help"],
];

function help() {
  const table = h("div.shortcuts", {}, KEYS.map(([keys, what]) => [h("span", {}, keys.split(" ").map((key) => key === "…" ? " to " : [h("kbd", {}, key), " "])), h("span", {}, what)]));
  ask({ title: "Keys", text: [table] });
}

function step(by) {
  const links = [...document.querySelectorAll(".rows .row:not([hidden]) a")];
  if (!links.length) return;
  const at = links.findIndex((one) => one === document.activeElement);
  const current = at >= 0 ? at : links.findIndex((one) => one.hasAttribute("aria-current"));
  const next = links[Math.max(0, Math.min(links.length - 1, current + by))];
  if (next === links.at(-1) && !$("rail-more").hidden) more();
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function more() {
  most += AT_ONCE;
  sift();
}

new IntersectionObserver(([seen]) => seen.isIntersecting && more(), { root: $("rail-list"), rootMargin: "600px" }).observe($("rail-more"));

const ACTIONS = { i: "interrupt", p: "pause", r: "restart", x: "stop" };

document.addEventListener("keydown", (event) => {
  if (app.hidden || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if ($("dialog").open || event.target.closest(".screen-box.typing")) return;
  const writing = event.target.closest("input, textarea, select");
  if (event.key === "Escape") {
    if (writing) writing.blur();
    else if (store.view.page !== "list") location.hash = "#/";
    return;
  }
  if (writing) {
    if (writing.id === "filter" && ["ArrowDown", "Enter"].includes(event.key)) {
      event.preventDefault();
      const first = document.querySelector(".rows .row:not([hidden]) a");
      if (event.key === "Enter") first?.click();
      else first?.focus();
    }
    return;
  }
  const { page, name } = store.view;
  const tab = /^[1-6]$/.test(event.key) && page === "session" ? TABS[event.key - 1][0] : null;
  const scrolls = event.target.closest(".scroll, .screen-box");
  if (event.key === "?") help();
  else if (event.key === "j" || (event.key === "ArrowDown" && !scrolls)) step(1);
  else if (event.key === "k" || (event.key === "ArrowUp" && !scrolls)) step(-1);
  else if (event.key === "/") (shown?.panel?.search ?? shown?.search ?? $("filter")).focus();
  else if (event.key === "n") makeNew();
  else if (event.key === "e") location.hash = "#/events";
  else if (tab) location.hash = url(name, tab);
  else if (event.key === "a") {
    const asking = [...store.sessions.values()].find(needsAnswer);
    if (firstRequest()) firstRequest().focus();
    else if (asking) location.hash = url(asking.name, "talk");
  } else if (page === "session" && event.key === "m") {
    if (shown.tab !== "talk") location.hash = url(name, "talk");
    requestAnimationFrame(() => requestAnimationFrame(() => shown?.panel?.focus?.()));
  } else if (page === "session" && ACTIONS[event.key]) order(ACTIONS[event.key], name);
  else return;
  event.preventDefault();
});

begin();
