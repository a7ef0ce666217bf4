// The page of the workspace: one channel, one thread, one person at a time; the server's state is the only truth.

import { items } from "/messages.js";
import { el, icon, mrkdwn } from "/render.js";
import { $, keep, names, page, view } from "/shared.js";
import { drawHome, drawModal } from "/views.js";

const act = {
  press, react, go, edit, save, remove, pressView, closeModal,
  submit: (shown, values) => post("submit", { view: shown.id, values }),
};
// What only one person sees is gone with the page, as in Slack's own clients.
const since = (Date.now() / 1000).toFixed(6);
let running = Promise.resolve();
let queued = null;
let pendingScroll = "";

// --- talking to the server

async function post(action, body) {
  let answer;
  try {
    answer = await fetch(`/page/${action}`, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ as: page.state.viewer, channel: page.state.channel, ...body }),
    });
  } catch {
    throw new Error("The workspace does not answer. Is it still running?");
  }
  const result = await answer.json();
  if (!answer.ok) throw new Error(result.error);
  return result;
}

// Loads the state once more; calls while a load is under way share the one that follows it.
function refresh() {
  queued ??= running = running.catch(() => {}).then(() => { queued = null; return load(); });
  return queued;
}

async function load() {
  const asked = { ...view };
  const query = new URLSearchParams({ ...asked, since });
  const answer = await fetch(`/page/state?${query}`).catch(() => null);
  $("offline").hidden = answer !== null;
  if (!answer) return;
  if (answer.status === 401) return lock();
  if (answer.status === 404) return forget();
  const state = await answer.json();
  // Whoever looked elsewhere meanwhile has asked again: this answer must not turn them back.
  if (Object.keys(asked).some((key) => asked[key] !== view[key])) return;
  page.state = state;
  Object.assign(view, { as: page.state.viewer, channel: page.state.channel });
  draw();
}

// What this tab remembers is not there any more: begin anew, once.
function forget() {
  if (!view.as && !view.channel) return;
  Object.assign(view, { as: "", channel: "", thread: "" });
  sessionStorage.removeItem("as");
  refresh();
}

function listen() {
  const stream = new EventSource("/page/changes");
  stream.onmessage = (event) => { if (!page.state || Number(event.data) !== page.state.count) refresh(); };
  stream.onopen = () => { $("offline").hidden = true; };
  stream.onerror = () => {
    $("offline").hidden = false;
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

function lock() {
  $("app").hidden = true;
  $("locked").hidden = false;
}

// --- drawing

function draw() {
  $("app").hidden = false;
  const app = page.state.apps.find((entry) => entry.id === page.state.channel);
  const channel = app ?? page.state.channels.find((entry) => entry.id === page.state.channel);
  const called = app ? app.name : `#${channel.name}`;
  document.title = `${called} · ${page.state.team.name}`;
  $("team").textContent = page.state.team.name;
  $("channel-name").textContent = app ? app.name : `# ${channel.name}`;
  $("channel-topic").textContent = channel.topic;
  $("channel-badges").replaceChildren(...[
    channel.shared && el("span", { class: "badge outside", title: "People of another organization can read and write here" }, "Shared with another organization"),
    channel.private && el("span", { class: "badge" }, "Private"),
    channel.archived && el("span", { class: "badge" }, "Archived"),
  ].filter(Boolean));
  drawRail();
  drawList("channel", page.state.messages);
  $("channel-empty").hidden = page.state.messages.length > 0;
  $("channel-empty-hint").textContent = app ? "Write to the app below. Only you and the app see it."
    : "Write the first message below. When the bot starts, it opens a thread here for each of its sessions.";
  drawThread(channel);
  drawComposer("channel", channel, `Message ${called}`);
  drawTabs(app);
  drawModal(act);
}

// An app has two tabs; the one of its messages is a channel like all others.
function drawTabs(app) {
  const home = Boolean(app) && view.tab === "home";
  $("tabs").hidden = !app;
  for (const [tab, on] of [["home", home], ["messages", !home]]) $(`tab-${tab}`).setAttribute("aria-pressed", String(on));
  $("home").hidden = !home;
  $("channel-scroll").hidden = home;
  if (home) $("channel-form").hidden = true;
  if (home) drawHome(act);
}

function drawRail() {
  keep($("channels"), page.state.channels.map((entry) => {
    const current = entry.id === page.state.channel;
    return el("li", {}, el("button", {
      type: "button", "aria-current": current ? "true" : null, "data-focus": `channel/${entry.id}`,
      on: { click: () => go(entry.id, "") },
    }, el("span", { class: "hash", "aria-hidden": "true" }, "#"), entry.name));
  }));
  keep($("apps"), page.state.apps.map((entry) => el("li", {}, el("button", {
    type: "button", "aria-current": entry.id === page.state.channel ? "true" : null, "data-focus": `app/${entry.id}`,
    on: { click: () => go(entry.id, "home") },
  }, entry.name))));
  const people = Object.entries(page.state.people).filter(([, person]) => !person.bot && !person.deleted);
  const options = people.map(([id, person]) => {
    const note = person.outside ? " · outside" : person.guest ? " · guest" : "";
    return el("option", { value: id }, `${person.name}${note}`);
  });
  if (document.activeElement !== $("persona")) $("persona").replaceChildren(...options);
  $("persona").value = page.state.viewer;
  const on = page.state.connected > 0;
  $("presence").classList.toggle("on", on);
  $("presence").textContent = on ? "Bot connected" : "No bot connected";
}

function drawThread(channel) {
  const open = Boolean(view.thread);
  $("thread-pane").hidden = !open;
  $("app").classList.toggle("with-thread", open);
  if (!open) return $("thread-messages").replaceChildren();
  const thread = page.state.thread ?? [];
  $("thread-topic").textContent = `in #${channel.name}`;
  $("thread-empty").hidden = thread.length > 0;
  drawList("thread", thread);
  drawStatus(thread[0]);
  drawComposer("thread", channel, "Reply in the thread");
  if (!thread.length) $("thread-form").hidden = true;
}

// The line goes after two minutes by itself, of which nobody tells.
let waning = 0;

function drawStatus(root) {
  const { status } = page.state;
  const bot = page.state.people[root?.user]?.name ?? "The app";
  $("thread-status").textContent = status ? `${bot} ${status}` : "";
  clearTimeout(waning);
  if (status) waning = setTimeout(refresh, 20000);
}

function drawComposer(where, channel, placeholder) {
  const person = page.state.people[page.state.viewer];
  const closed = channel.archived ? `#${channel.name} is archived.`
    : page.state.member ? "" : `${person.name} is not a member of #${channel.name}.`;
  $(`${where}-form`).hidden = Boolean(closed);
  $(`${where}-closed`).hidden = !closed;
  $(`${where}-closed`).textContent = closed;
  $(`${where}-input`).placeholder = `${placeholder} as ${person.name}`;
  hint(where);
}

function drawList(where, messages) {
  const scroll = $(`${where}-scroll`);
  const place = `${page.state.channel}/${where === "thread" ? view.thread : ""}/${page.state.viewer}`;
  const moved = scroll.dataset.place !== place;
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
  const before = scroll.dataset.last ?? "";
  const last = messages.at(-1)?.ts ?? "";
  keep($(`${where}-messages`), items(where, messages, act));
  scroll.dataset.place = place;
  scroll.dataset.last = last;
  if (moved || atEnd || pendingScroll === where) {
    scroll.scrollTop = scroll.scrollHeight;
    $(`${where}-jump`).hidden = true;
    if (pendingScroll === where) pendingScroll = "";
  } else if (last > before) {
    $(`${where}-jump`).hidden = false;
  }
}

// --- doing

let pendingFocus = "";

function go(channel, thread) {
  const hash = thread ? `#${channel}/${thread}` : `#${channel}`;
  pendingFocus = thread ? "thread-input" : "channel-input";
  if (location.hash === hash) route();
  else location.hash = hash;
}

// What is half-written belongs to its channel or thread, and waits there.
const drafts = new Map();
const places = () => ({ channel: view.channel, thread: `${view.channel}/${view.thread}` });

function carryDrafts(move) {
  for (const [where, place] of Object.entries(places())) drafts.set(place, $(`${where}-input`).value);
  move();
  for (const [where, place] of Object.entries(places())) {
    $(`${where}-input`).value = drafts.get(place) ?? "";
    grow($(`${where}-input`));
  }
}

async function route() {
  const [channel, place] = location.hash.slice(1).split("/");
  const [thread, tab] = place === "home" ? ["", "home"] : [place ?? "", ""];
  page.editing = "";
  for (const where of ["channel", "thread"]) choose(where, []);
  carryDrafts(() => Object.assign(view, { channel: channel || view.channel, thread, tab }));
  await refresh();
  await opened();
  if (pendingFocus && !$(pendingFocus).closest("[hidden]")) $(pendingFocus).focus();
  pendingFocus = "";
}

// Each look at an app's tab is told to the app.
async function opened() {
  if (page.state?.apps.some((entry) => entry.id === page.state.channel)) {
    try { await post("home", { tab: view.tab || "messages" }); } catch (error) { toast(error.message); }
  }
}

async function pressView(shown, part) {
  if (part.confirm && !(await confirmed(part.confirm))) return;
  try {
    const { error } = await post("pressview", { view: shown.id, action: part.action_id, value: part.value });
    if (error) toast(FAILURES[error] ?? `The click failed: ${error}`);
  } catch (error) {
    toast(error.message);
  }
}

async function closeModal(shown) {
  try { await post("close", { view: shown.id }); } catch (error) { toast(error.message); }
}

async function send(where) {
  const input = $(`${where}-input`);
  const text = input.value.trim();
  if (!(text || chosen[where].length) || input.disabled) return;
  const isCommand = /^\/[\w-]/.test(input.value);
  if (isCommand && where === "thread") {
    return toast("Slash commands do not work in threads: run it in the channel, or begin with a space to send it as text.");
  }
  input.disabled = true;
  try {
    if (isCommand) {
      await post("command", { text }); // what came of it is shown as a message to this person
    } else {
      const broadcast = where === "thread" && $("thread-broadcast").checked;
      const files = await Promise.all(chosen[where].map(encoded));
      await post("say", { text, thread: where === "thread" ? view.thread : null, broadcast, files });
      $("thread-broadcast").checked = false;
      choose(where, []);
    }
    input.value = "";
    grow(input);
    pendingScroll = where;
    refresh();
  } catch (error) {
    toast(error.message);
  } finally {
    input.disabled = false;
    input.focus();
    hint(where);
  }
}

const FAILURES = {
  dispatch_failed: "No bot is connected, so nobody took the click (dispatch_failed).",
  operation_timeout: "The bot did not answer the click in time (operation_timeout).",
  no_interactivity: "The app that posted this takes no clicks.",
};

async function press(message, part, button) {
  if (part.confirm && !(await confirmed(part.confirm))) return;
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try {
    const { error } = await post("press", { ts: message.ts, action: part.action_id, value: part.value });
    if (error) toast(FAILURES[error] ?? `The click failed: ${error}`);
  } catch (error) {
    toast(error.message);
  } finally {
    button.disabled = false;
    button.removeAttribute("aria-busy");
  }
}

async function react(message, name) {
  try { await post("react", { ts: message.ts, name }); } catch (error) { toast(error.message); }
}

function edit(key) {
  page.editing = key;
  draw();
  const box = document.querySelector(".editor textarea");
  box?.focus();
  box?.setSelectionRange(box.value.length, box.value.length);
}

async function save(message, text) {
  if (!text.trim()) return remove(message);
  try { await post("edit", { ts: message.ts, text: text.trim() }); } catch (error) { return toast(error.message); }
  edit("");
}

const DELETION = {
  title: { text: "Delete message" }, text: { text: "Delete this message? This cannot be undone." },
  confirm: { text: "Delete" }, deny: { text: "Cancel" },
};

async function remove(message) {
  if (!(await confirmed(DELETION))) return;
  try { await post("delete", { ts: message.ts }); } catch (error) { return toast(error.message); }
  edit("");
}

// --- files

const chosen = { channel: [], thread: [] };
const MOST_BYTES = 2.8e6;

function choose(where, files) {
  if (files.reduce((sum, file) => sum + file.size, 0) > MOST_BYTES) {
    return toast(`A message takes at most ${MOST_BYTES / 1e6} MB of files here.`);
  }
  chosen[where] = files;
  $(`${where}-files`).value = "";
  $(`${where}-chosen`).hidden = !files.length;
  $(`${where}-chosen`).replaceChildren(...files.map((file) => el("li", {}, icon("file"), el("span", {}, file.name),
    el("button", {
      type: "button", class: "icon", "aria-label": `Leave out ${file.name}`,
      on: { click: () => choose(where, chosen[where].filter((other) => other !== file)) },
    }, "✕"))));
}

function encoded(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ name: file.name, data: reader.result.split(",")[1] ?? "" });
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

function confirmed(question) {
  const dialog = $("confirm");
  $("confirm-title").textContent = question.title.text;
  $("confirm-text").replaceChildren(question.text.type === "mrkdwn" ? mrkdwn(question.text.text, names) : question.text.text);
  $("confirm-yes").textContent = question.confirm.text;
  $("confirm-yes").className = `button ${question.style ?? "primary"}`;
  $("confirm-no").textContent = question.deny.text;
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.onsubmit = (event) => resolve(event.submitter?.value === "yes");
    dialog.oncancel = () => resolve(false);
  });
}

function toast(text) {
  const note = el("div", { class: "toast" }, el("span", {}, text),
    el("button", { type: "button", class: "icon", "aria-label": "Dismiss", on: { click: () => note.remove() } }, "✕"));
  $("toasts").append(note);
  setTimeout(() => note.remove(), 8000);
}

function hint(where) {
  const text = $(`${where}-input`).value;
  if (where === "channel") suggest(text);
  $(`${where}-hint`).textContent = text.includes("\n") || text.length > 40 ? "Shift + Enter for a new line" : where === "channel" ? "Enter sends, / runs a command" : "";
}

// The commands that what is typed may become, with what may follow them.
function suggest(text) {
  const word = text.split(/\s/, 1)[0];
  const found = text.startsWith("/") ? (page.state?.commands ?? []).filter(({ command }) => command.startsWith(word)) : [];
  $("channel-slash").hidden = !found.length;
  keep($("channel-slash"), found.map(({ command, usage_hint: usage, description }) => el("li", {}, el("button", {
    type: "button", "data-focus": command,
    on: { click: () => {
      const input = $("channel-input");
      if (!input.value.startsWith(`${command} `)) input.value = `${command} `;
      input.focus();
      hint("channel");
    } },
  }, el("strong", {}, command), usage && el("code", {}, usage), description && el("span", {}, description)))));
}

function grow(input) {
  input.style.height = "auto";
  input.style.height = `${Math.min(input.scrollHeight, 240)}px`;
}

// --- wiring

for (const where of ["channel", "thread"]) {
  const input = $(`${where}-input`);
  const scroll = $(`${where}-scroll`);
  $(`${where}-form`).addEventListener("submit", (event) => { event.preventDefault(); send(where); });
  input.addEventListener("input", () => { grow(input); hint(where); });
  $(`${where}-attach`).append(icon("clip"));
  $(`${where}-attach`).addEventListener("click", () => $(`${where}-files`).click());
  const add = (files) => { if (files?.length) choose(where, [...chosen[where], ...files]); };
  $(`${where}-files`).addEventListener("change", (event) => add(event.target.files));
  input.addEventListener("paste", (event) => add(event.clipboardData?.files));
  const pane = $(`${where}-form`).closest(".pane");
  pane.addEventListener("dragover", (event) => event.preventDefault());
  pane.addEventListener("drop", (event) => { event.preventDefault(); add(event.dataTransfer?.files); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(where); }
  });
  scroll.addEventListener("scroll", () => {
    if (scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40) $(`${where}-jump`).hidden = true;
  });
  $(`${where}-jump`).addEventListener("click", () => { scroll.scrollTop = scroll.scrollHeight; });
}
$("persona").addEventListener("change", (event) => {
  view.as = event.target.value;
  sessionStorage.setItem("as", view.as);
  event.target.blur();
  refresh().then(() => {
    if (page.state.channel !== location.hash.slice(1).split("/")[0] && view.tab) go(page.state.channel, "home");
    else opened();
  });
});
$("tab-home").addEventListener("click", () => go(page.state.channel, "home"));
$("tab-messages").addEventListener("click", () => go(page.state.channel, ""));
$("thread-close").addEventListener("click", () => go(page.state.channel, ""));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && view.thread && !$("confirm").open) go(page.state.channel, "");
});
window.addEventListener("hashchange", route);
route().then(listen);
