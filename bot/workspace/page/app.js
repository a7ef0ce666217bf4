// The page of the workspace: one channel, one thread, one person at a time; the server's state is the only truth.

import { blocks, el, emoji, icon, mrkdwn } from "/render.js";

const $ = (id) => document.getElementById(id);
const view = { as: sessionStorage.getItem("as") ?? "", channel: "", thread: "" };
let state = null;
let running = Promise.resolve();
let queued = null;
let pendingScroll = "";

// --- talking to the server

async function post(action, body) {
  let answer;
  try {
    answer = await fetch(`/page/${action}`, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ as: state.viewer, channel: state.channel, ...body }),
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
  const query = new URLSearchParams({ as: view.as, channel: view.channel, thread: view.thread });
  const answer = await fetch(`/page/state?${query}`).catch(() => null);
  $("offline").hidden = answer !== null;
  if (!answer) return;
  if (answer.status === 401) return lock();
  if (answer.status === 404) return forget();
  state = await answer.json();
  Object.assign(view, { as: state.viewer, channel: state.channel });
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
  stream.onmessage = (event) => { if (!state || Number(event.data) !== state.count) refresh(); };
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

const names = {
  user: (id) => state.people[id]?.name,
  channel: (id) => state.channels.find((channel) => channel.id === id)?.name,
};

function draw() {
  $("app").hidden = false;
  const channel = state.channels.find((entry) => entry.id === state.channel);
  document.title = `#${channel.name} · ${state.team.name}`;
  $("team").textContent = state.team.name;
  $("channel-name").textContent = `# ${channel.name}`;
  $("channel-topic").textContent = channel.topic;
  $("channel-badges").replaceChildren(...[
    channel.shared && el("span", { class: "badge outside", title: "People of another organization can read and write here" }, "Shared"),
    channel.private && el("span", { class: "badge" }, "Private"),
    channel.archived && el("span", { class: "badge" }, "Archived"),
  ].filter(Boolean));
  drawRail();
  drawList("channel", state.messages);
  $("channel-empty").hidden = state.messages.length > 0;
  drawThread(channel);
  drawComposer("channel", channel, `Message #${channel.name}`);
}

function drawRail() {
  keep($("channels"), state.channels.map((entry) => {
    const current = entry.id === state.channel;
    return el("li", {}, el("button", {
      type: "button", "aria-current": current ? "true" : null, "data-focus": `channel/${entry.id}`,
      on: { click: () => go(entry.id, "") },
    }, el("span", { class: "hash", "aria-hidden": "true" }, "#"), entry.name));
  }));
  const people = Object.entries(state.people).filter(([, person]) => !person.bot && !person.deleted);
  const options = people.map(([id, person]) => {
    const note = person.outside ? " · outside" : person.guest ? " · guest" : "";
    return el("option", { value: id }, `${person.name}${note}`);
  });
  if (document.activeElement !== $("persona")) $("persona").replaceChildren(...options);
  $("persona").value = state.viewer;
  const on = state.connected > 0;
  $("presence").classList.toggle("on", on);
  $("presence").textContent = on ? "The bot is connected" : "No bot is connected";
}

function drawThread(channel) {
  const open = Boolean(view.thread);
  $("thread-pane").hidden = !open;
  $("app").classList.toggle("with-thread", open);
  if (!open) return $("thread-messages").replaceChildren();
  const thread = state.thread ?? [];
  $("thread-topic").textContent = `in #${channel.name}`;
  $("thread-empty").hidden = thread.length > 0;
  drawList("thread", thread);
  drawComposer("thread", channel, "Reply in the thread");
  if (!thread.length) $("thread-form").hidden = true;
}

function drawComposer(where, channel, placeholder) {
  const person = state.people[state.viewer];
  const closed = channel.archived ? `#${channel.name} is archived.`
    : state.member ? "" : `${person.name} is not a member of #${channel.name}.`;
  $(`${where}-form`).hidden = Boolean(closed);
  $(`${where}-closed`).hidden = !closed;
  $(`${where}-closed`).textContent = closed;
  $(`${where}-input`).placeholder = `${placeholder} as ${person.name}`;
  hint(where);
}

function drawList(where, messages) {
  const scroll = $(`${where}-scroll`);
  const place = `${state.channel}/${where === "thread" ? view.thread : ""}/${state.viewer}`;
  const moved = scroll.dataset.place !== place;
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
  const before = scroll.dataset.last ?? "";
  const last = messages.at(-1)?.ts ?? "";
  keep($(`${where}-messages`), items(where, messages));
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

function items(where, messages) {
  const found = [];
  let previous = null;
  messages.forEach((message, index) => {
    const day = dayOf(message.ts);
    if (where === "channel" && (!previous || dayOf(previous.ts) !== day)) {
      found.push(el("li", { class: "day" }, el("span", {}, day)));
    }
    if (where === "thread" && index === 1) {
      const count = messages.filter((entry) => !entry.is_ephemeral).length - 1;
      found.push(el("li", { class: "day" }, el("span", {}, count === 1 ? "1 reply" : `${count} replies`)));
    }
    const follows = previous && where + index !== "thread1" && author(previous).key === author(message).key
      && message.ts - previous.ts < 300 && dayOf(previous.ts) === day && !quiet(message) && !quiet(previous);
    found.push(drawMessage(where, message, follows));
    previous = message;
  });
  return found;
}

const quiet = (message) => ["channel_join", "channel_leave", "tombstone"].includes(message.subtype);

function drawMessage(where, message, follows) {
  const who = author(message);
  if (quiet(message)) {
    return el("li", { class: "message quiet", "data-ts": message.ts }, el("div", { class: "body" }, mrkdwn(message.text, names)));
  }
  const head = el("div", { class: follows ? "head unseen" : "head" },
    el("span", { class: "author" }, who.name),
    who.bot && el("span", { class: "badge" }, "App"),
    who.outside && el("span", { class: "badge outside", title: "From another organization" }, "Outside"),
    el("time", { datetime: new Date(message.ts * 1000).toISOString(), title: moment(message.ts) }, clock(message.ts)));
  const body = el("div", { class: "body" }, head,
    message.is_ephemeral && el("p", { class: "note" }, "Only visible to you"),
    message.subtype === "thread_broadcast" && where === "channel" && repliedTo(message),
    ...content(message),
    message.edited && el("span", { class: "edited" }, "(edited)"),
    reactions(message),
    where === "channel" && message.reply_count ? threadLink(message) : null);
  const avatar = follows
    ? el("time", { class: "gutter", "aria-hidden": "true" }, clock(message.ts))
    : el("span", { class: `avatar hue-${hue(who.key)}`, "aria-hidden": "true" }, who.name.slice(0, 1).toUpperCase());
  const kind = `message${follows ? " follows" : ""}${message.is_ephemeral ? " ephemeral" : ""}${
    message.ts === view.thread && where === "channel" ? " opened" : ""}`;
  return el("li", { class: kind, "data-ts": message.ts }, avatar, body, message.is_ephemeral ? null : tools(where, message));
}

function author(message) {
  const person = state.people[message.user];
  if (message.username) return { key: message.username, name: message.username, bot: true };
  if (message.user === "USLACKBOT") return { key: "slackbot", name: "Slackbot", bot: true };
  if (!person) return { key: message.bot_id ?? message.user ?? "?", name: message.bot_id ?? "Somebody", bot: Boolean(message.bot_id) };
  return { key: message.user, name: person.name, bot: person.bot, outside: person.outside };
}

function content(message) {
  const shown = (message.blocks ?? []).filter((block) => block.type !== "rich_text" || message.bot_id);
  const parts = shown.length
    ? [el("div", { class: "blocks" }, ...blocks(shown, names, (part, button) => press(message, part, button)))]
    : message.text ? [mrkdwn(message.subtype === "me_message" ? `_${message.text}_` : message.text, names)] : [];
  for (const file of message.files ?? []) parts.push(el("p", { class: "file" }, icon("file"), `${file.name} · ${file.size} bytes`));
  for (const entry of message.attachments ?? []) {
    parts.push(el("blockquote", { class: "attachment" }, entry.title ?? entry.fallback ?? entry.text ?? ""));
  }
  return parts;
}

function reactions(message) {
  const given = message.reactions ?? [];
  if (!given.length) return null;
  return el("div", { class: "reactions" }, ...given.map((entry) => {
    const mine = entry.users.includes(state.viewer);
    const people = entry.users.map((id) => names.user(id) ?? id).join(", ");
    return el("button", {
      type: "button", class: "reaction", "aria-pressed": String(mine), title: `${people} reacted with :${entry.name}:`,
      "aria-label": `${entry.name}, ${entry.count}, by ${people}`, "data-focus": `reaction/${entry.name}`,
      on: { click: () => react(message, entry.name) },
    }, el("span", { "aria-hidden": "true" }, emoji(entry.name)), ` ${entry.count}`);
  }));
}

function threadLink(message) {
  const count = message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`;
  const faces = (message.reply_users ?? []).slice(0, 4).map((id) =>
    el("span", { class: `avatar small hue-${hue(id)}`, "aria-hidden": "true" }, (names.user(id) ?? "?").slice(0, 1).toUpperCase()));
  return el("button", {
    type: "button", class: "thread-link", "data-focus": "thread", on: { click: () => go(state.channel, message.ts) },
  }, ...faces, el("strong", {}, count), el("span", { class: "since" }, `last ${moment(message.latest_reply)}`));
}

const repliedTo = (message) => el("p", { class: "note" }, "replied in a ", el("button", {
  type: "button", class: "inline", "data-focus": "root", on: { click: () => go(state.channel, message.thread_ts) },
}, "thread"));

function tools(where, message) {
  const tool = (label, sign, act, key) => el("button", {
    type: "button", "aria-label": label, title: label, "data-focus": key, on: { click: act },
  }, sign);
  return el("div", { class: "tools", role: "group", "aria-label": "Message tools" },
    ...["eyes", "white_check_mark", "+1"].map((name) => tool(`React with ${name}`, icon(name), () => react(message, name), `tool/${name}`)),
    where === "channel" && tool("Reply in thread", icon("reply"), () => go(state.channel, message.thread_ts ?? message.ts, true), "tool/reply"));
}

// Puts new items in place of the old, but leaves those that did not change (and so selection and focus) alone.
function keep(list, fresh) {
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const key = focused?.dataset.focus;
  const row = focused?.closest("[data-ts]")?.dataset.ts;
  fresh.forEach((node, index) => {
    const old = list.children[index];
    if (!old) list.append(node);
    else if (!old.isEqualNode(node)) old.replaceWith(node);
  });
  while (list.children.length > fresh.length) list.lastChild.remove();
  if (key && !list.contains(document.activeElement)) {
    const scope = row ? list.querySelector(`[data-ts="${CSS.escape(row)}"]`) : list;
    scope?.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
  }
}

// --- doing

function go(channel, thread, write = false) {
  location.hash = thread ? `${channel}/${thread}` : channel;
  if (write || thread) pendingFocus = "thread-input";
  if (!thread) pendingFocus = "channel-input";
}
let pendingFocus = "";

async function route() {
  const [channel, thread] = location.hash.slice(1).split("/");
  Object.assign(view, { channel: channel ?? "", thread: thread ?? "" });
  await refresh();
  if (pendingFocus && !$(pendingFocus).closest("[hidden]")) $(pendingFocus).focus();
  pendingFocus = "";
}

async function send(where) {
  const input = $(`${where}-input`);
  const text = input.value.trim();
  if (!text || input.disabled) return;
  const isCommand = /^\/[\w-]/.test(text);
  if (isCommand && where === "thread") {
    return toast("Slash commands do not work in threads; write it in the channel.");
  }
  input.disabled = true;
  try {
    if (isCommand) {
      const { error } = await post("command", { text });
      if (error && !["operation_timeout", "dispatch_failed", "invalid_command", "not_allowed"].includes(error)) toast(`The command failed: ${error}`);
    } else {
      const broadcast = where === "thread" && $("thread-broadcast").checked;
      await post("say", { text, thread: where === "thread" ? view.thread : null, broadcast });
      $("thread-broadcast").checked = false;
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

async function press(message, part, button) {
  if (part.confirm && !(await confirmed(part.confirm))) return;
  button.disabled = true;
  button.setAttribute("aria-busy", "true");
  try {
    const { error } = await post("press", { ts: message.ts, action: part.action_id, value: part.value });
    if (error) toast(`The app did not take the click: ${error}`);
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

function confirmed(question) {
  const dialog = $("confirm");
  $("confirm-title").textContent = question.title.text;
  $("confirm-text").replaceChildren(question.text.type === "mrkdwn" ? mrkdwn(question.text.text, names) : question.text.text);
  $("confirm-yes").textContent = question.confirm.text;
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
  const commands = state?.commands.join(" ") ?? "";
  $(`${where}-hint`).textContent = text.startsWith("/") && where === "channel" ? `Command: ${commands || "none installed"}`
    : text.includes("\n") || text.length > 40 ? "Shift + Enter for a new line" : where === "channel" ? "Enter sends, / runs a command" : "";
}

function grow(input) {
  input.style.height = "auto";
  input.style.height = `${Math.min(input.scrollHeight, 240)}px`;
}

// --- small helpers

const at = (ts) => new Date(Number(ts) * 1000);
const clock = (ts) => at(ts).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

function dayOf(ts) {
  const day = at(ts).toDateString();
  if (day === new Date().toDateString()) return "Today";
  if (day === new Date(Date.now() - 86400000).toDateString()) return "Yesterday";
  return at(ts).toLocaleDateString([], { weekday: "long", day: "numeric", month: "long" });
}

const moment = (ts) => `${dayOf(ts).replace("Today", "today").replace("Yesterday", "yesterday")} at ${clock(ts)}`;

function hue(key) {
  const place = Object.keys(state.people).indexOf(key);
  return place >= 0 ? place % 8 : [...key].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 997, 7) % 8;
}

// --- wiring

for (const where of ["channel", "thread"]) {
  const input = $(`${where}-input`);
  const scroll = $(`${where}-scroll`);
  $(`${where}-form`).addEventListener("submit", (event) => { event.preventDefault(); send(where); });
  input.addEventListener("input", () => { grow(input); hint(where); });
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
  refresh();
});
$("thread-close").addEventListener("click", () => go(state.channel, ""));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && view.thread && !$("confirm").open) go(state.channel, "");
});
window.addEventListener("hashchange", route);
route().then(listen);
