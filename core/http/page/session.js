// One session: what it is and does, its tabs, and what can be done with it.

import { get, post } from "./api.js";
import { $, ago, ask, h, keep, moment, show, time, toast } from "./dom.js";
import { markdown } from "./markdown.js";
import { Screen } from "./screen.js";
import { context, cost, requestsOf, stateOf, store } from "./store.js";
import { Events } from "./views.js";

export const TABS = [["talk", "Conversation"], ["screen", "Screen"], ["queue", "Queue"], ["loops", "Loops"], ["events", "Events"], ["details", "Details"]];
const threads = new Map(); // where each one's thread is, once that was told
const drafts = new Map(); // what is half written for a session stays with it

const problem = (error) => toast(error.told ?? String(error), true);
const number = (value) => value.toLocaleString("en");
const url = (name, tab) => `#/s/${encodeURIComponent(name)}${tab && tab !== "talk" ? `/${tab}` : ""}`;
export { url };

const OUTCOME = {
  started: "started", resumed: "resumed", stopped: "stopped", paused: "paused", unpaused: "no longer paused",
  interrupted: "interrupted", deleted: "deleted", announced: "announced", waiting: "is being done", held: "held",
};

// Does one verb, and says what came of it.
export async function act(verb, name, body = {}) {
  try {
    const answer = await post(`/standing-sessions/${verb}`, { name, ...body });
    for (const row of answer.sessions) {
      if (!answer.ok || row.outcome === "held") toast(`${name}: ${row.detail || row.outcome}`, !answer.ok);
      else toast(`${name}: ${OUTCOME[row.outcome] ?? row.outcome.replaceAll("-", " ")}`);
    }
  } catch (error) {
    problem(error);
  }
  document.dispatchEvent(new CustomEvent("changed", { detail: name }));
}

const SURE = {
  stop: ["Stop", "Its turn and its background jobs end. Messages that wait are cancelled. It stays down until it is started; its conversation is kept."],
  restart: ["Restart", "Its turn and its background jobs end. Then the same conversation is resumed."],
  delete: ["Delete", "It is stopped and removed. Its folder and its harness's record of the conversation stay."],
};

export async function order(verb, name) {
  const row = store.sessions.get(name);
  if (!row) return;
  if (verb === "pause" && row.hold?.kind === "paused") verb = "resume";
  if (verb === "stop" && !row.running) verb = "start";
  const sure = SURE[verb];
  if (sure && !(await ask({ title: `${sure[0]} ${name}?`, text: sure[1], yes: sure[0], danger: verb !== "restart" }))) return;
  await act(verb, name);
}

// ---------------------------------------------------------------- requests

async function answer(request, body, card) {
  for (const button of card.querySelectorAll("button")) button.disabled = true;
  try {
    const told = await post("/requests/answer", { id: request.id, ...body });
    if (told.state !== "open") toast(told.allowed === null ? "Answered" : told.allowed ? "Allowed" : "Denied");
  } catch (error) {
    problem(error);
    for (const button of card.querySelectorAll("button")) button.disabled = false;
  }
  document.dispatchEvent(new CustomEvent("changed", { detail: request.name }));
}

const TITLE = {
  permission: (request) => `Allow ${request.tool || "this"}?`,
  question: () => "The agent asks",
  ask: () => "The agent asks",
  dialog: () => "A dialog is open in its terminal",
};

export function requestCard(request) {
  const place = request.answers.length;
  const question = request.questions[place];
  const card = h("article.request", { tabIndex: -1, "aria-label": `Request of ${request.name}` });
  const choices = [];
  if (!request.waits) {
    choices.push(h("span.soft", {}, "Nobody waits for the answer here any more: answer in its terminal."));
  } else if (question) {
    question.options.forEach((option, index) => choices.push(
      h("button.button", { type: "button", title: option.description, onclick: () => answer(request, { option: index, question: place }, card) }, option.label),
    ));
    if (request.kind !== "dialog") {
      const field = h("input", { type: "text", placeholder: "An answer in your own words", "aria-label": "Answer" });
      const send = () => field.value.trim() && answer(request, { answer: field.value, question: place }, card);
      field.addEventListener("keydown", (event) => event.key === "Enter" && !event.isComposing && send());
      choices.push(field, h("button.button", { type: "button", onclick: send }, "Answer"));
    }
  } else {
    choices.push(
      h("button.button.primary", { type: "button", onclick: () => answer(request, { allow: true }, card) }, "Allow"),
      request.rules.length ? h("button.button", { type: "button", title: "Until its program ends", onclick: () => answer(request, { allow: true, remember: true }, card) }, `Allow and remember ${request.rules.join(", ")}`) : null,
      h("button.button.danger", { type: "button", onclick: () => answer(request, { allow: false }, card) }, "Deny"),
    );
  }
  const several = request.questions.length > 1 ? ` (${place + 1} of ${request.questions.length})` : "";
  show(
    card,
    h("h3", {}, TITLE[request.kind](request), several, request.agent && request.agent !== "main" ? h("span.soft", {}, ` for ${request.agent}`) : null),
    request.unseen.map((line) => h("div.unseen-note", {}, markdown(line))),
    question ? h("div", {}, question.question) : null,
    request.detail ? h("pre", { tabIndex: 0 }, request.detail) : null,
    h("div.choices", {}, choices, h("span.soft.when", {}, `until ${moment(request.expiresAt)}`)),
  );
  return card;
}

// ---------------------------------------------------------------- the tabs

const LONG = 2000; // characters of a message that is folded
const WAITS = new Set(["pending", "queued"]);
const FAILS = new Set(["refused", "expired", "failed", "unknown"]);
const UNDER_WAY = new Set(["claimed", "pasted", "submitted"]);
const WORDS = { pending: "on its way", claimed: "being typed", pasted: "being typed", submitted: "typed", accepted: "taken in", queued: "waits", unknown: "perhaps delivered" };

class Talk {
  constructor(name) {
    this.name = name;
    this.list = h("div.talk", { role: "log", "aria-label": "Conversation" });
    this.blank = h("div.empty", { hidden: true });
    this.scroll = h("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Conversation" }, this.list, this.blank);
    this.low = true; // the end is in sight, and stays so
    this.scroll.addEventListener("scroll", () => { this.low = this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < 60; });
    this.observer = new ResizeObserver(() => this.low && this.sink());
    this.requests = h("div.requests");
    this.input = h("textarea", { id: "say", rows: 1, placeholder: `Message ${name}`, "aria-label": `Message ${name}`, value: drafts.get(name) ?? "" });
    this.send = h("button.button.primary", { type: "submit" }, "Send");
    this.form = h("form.composer", { onsubmit: (event) => { event.preventDefault(); this.say(); } }, this.input, this.send);
    this.node = h("div.panel", {}, this.scroll, this.requests, this.form);
    this.input.addEventListener("input", () => { drafts.set(name, this.input.value); this.grow(); });
    this.input.addEventListener("keydown", (event) => {
      const enters = event.key === "Enter" && !event.shiftKey && !event.isComposing;
      if (enters && (!matchMedia("(pointer: coarse)").matches || event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.say();
      }
    });
    this.asked = null;
  }

  start() {
    this.grow();
    this.observer.observe(this.scroll);
    this.observer.observe(this.list);
    this.load();
  }

  stop() {
    clearTimeout(this.soon);
    this.observer.disconnect();
  }

  sink() {
    this.scroll.scrollTop = this.scroll.scrollHeight;
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
  }

  update() {
    keep(this.requests, requestsOf(this.name), (request) => request.id, requestCard);
  }

  event(event) {
    if (event.name !== this.name) return;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.load(), 200);
  }

  async load() {
    if (this.asked) return void (this.again = true);
    this.asked = get("/standing-sessions/conversation", { name: this.name, last: 120 });
    try {
      const { entries, thread } = await this.asked;
      this.entries = entries;
      threads.set(this.name, thread);
      document.dispatchEvent(new CustomEvent("threaded"));
      keep(this.list, this.entries, (entry) => entry.id, entryNode);
      this.blank.hidden = this.entries.length > 0;
      if (!this.entries.length) show(this.blank, h("h2", {}, "Nothing was said yet"), h("p", {}, "What you write below is typed into the agent's terminal, with your name on it."));
    } catch (error) {
      if (error.told) show(this.blank, h("h2", {}, "The conversation cannot be shown"), h("p", {}, error.told));
      this.blank.hidden = this.list.children.length > 0;
    } finally {
      this.asked = null;
      if (this.again) {
        this.again = false;
        this.load();
      }
    }
  }

  async say() {
    const text = this.input.value;
    if (!text.trim() || this.send.disabled) return;
    this.send.disabled = true;
    try {
      const said = await post("/standing-sessions/say", { name: this.name, text, wait: 0 });
      for (const line of said.messages.slice(1)) toast(line);
      drafts.delete(this.name);
      this.input.value = "";
      this.grow();
      this.low = true;
      this.load();
    } catch (error) {
      problem(error);
    } finally {
      this.send.disabled = false;
    }
  }

  focus() {
    this.input.focus();
  }
}

function entryNode(entry) {
  const quiet = !entry.to && ["note", "boot", "closing"].includes(entry.kind);
  const state = entry.to && entry.state !== "confirmed" ? WORDS[entry.state] ?? entry.state : "";
  const kind = FAILS.has(entry.state) ? "span.entry-state.is-bad" : WAITS.has(entry.state) ? "span.entry-state.is-waiting" : "span.entry-state";
  const via = entry.to && entry.actor.includes(":") ? entry.actor.split(":")[0] : "";
  const whole = entry.to ? h("p", {}, entry.text) : markdown(entry.text);
  const folds = entry.to && (entry.kind === "boot" || entry.text.length > LONG);
  const first = entry.kind === "boot" ? "What it was told at its start" : `${entry.text.slice(0, 160).trim()}…`;
  const body = folds ? h("details", {}, h("summary", {}, first), whole) : whole;
  return h(
    `article.entry${entry.to ? ".to" : quiet ? ".note" : ""}`,
    {},
    quiet ? null : h(
      "div.entry-head",
      {},
      h("span.entry-who", {}, entry.who),
      h("span.entry-when", {}, via && `${via} · `, time(entry.at)),
      state && h(kind, { title: entry.detail }, state, entry.detail && !UNDER_WAY.has(entry.state) ? `: ${entry.detail}` : ""),
    ),
    h("div.entry-body", {}, body, entry.file && h("p.soft", {}, `File: ${entry.file}`)),
  );
}

class Listed {
  constructor(name) {
    this.name = name;
    this.list = h("ol.cards");
    this.blank = h("div.empty", { hidden: true });
    this.node = h("div.panel", {}, h("div.scroll", { tabIndex: 0 }, this.list, this.blank));
  }
  start() { this.load(); }
  stop() { clearTimeout(this.soon); }
  update() {}
  event(event) {
    if (event.name !== this.name) return;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.load(), 300);
  }
  async load() {
    try {
      const items = await this.fetch();
      keep(this.list, items, (item) => item.id, (item) => this.card(item));
      show(this.blank, this.nothing());
      this.blank.hidden = items.length > 0;
    } catch (error) {
      show(this.blank, h("h2", {}, "This cannot be shown"), h("p", {}, error.told ?? String(error)));
      this.blank.hidden = false;
    }
  }
  async does(path, body) {
    try {
      await post(path, body);
    } catch (error) {
      problem(error);
    }
    this.load();
    document.dispatchEvent(new CustomEvent("changed", { detail: this.name }));
  }
}

class Queue extends Listed {
  async fetch() { return (await get("/standing-sessions/queue", { name: this.name, text: true })).messages; }
  nothing() { return [h("h2", {}, "No message waits"), h("p", {}, "Messages that the agent has not taken yet are listed here, in their order.")]; }
  card(item) {
    const confirms = item.reason.startsWith("confirm") && item.reason !== "confirmed-by";
    return h(
      "li.card",
      {},
      h("div.card-head", {}, h("b", {}, item.actor), time(item.createdAt), h("span.chip", {}, WORDS[item.state] ?? item.state), h(
        "span.actions",
        {},
        confirms && h("button.button", { type: "button", onclick: () => this.does("/standing-sessions/confirm", { id: item.id }) }, "Send it"),
        WAITS.has(item.state) && h("button.button.danger", { type: "button", onclick: () => this.does("/standing-sessions/cancel", { id: item.id }) }, "Cancel"),
      )),
      h("p.card-text", {}, item.text ?? `${number(item.length)} characters`),
      item.detail && h("p.card-foot", {}, item.detail),
    );
  }
}

class Loops extends Listed {
  constructor(name) {
    super(name);
    const add = h("button.button", { type: "button", onclick: () => this.create() }, "New loop");
    this.node.prepend(h("div.tools", {}, h("span.soft", {}, "Instructions that it gets again and again"), h("span.actions", {}, add)));
  }
  async fetch() { return (await get("/loops", { name: this.name })).loops; }
  nothing() { return [h("h2", {}, "It has no loops"), h("p", {}, "A loop gives the session an instruction again and again: each hour, by a cron expression, or when its agent says.")]; }
  card(loop) {
    const open = ["active", "paused"].includes(loop.status);
    const pace = loop.cron ? `${loop.cron} (${loop.timeZone ?? "UTC"})` : loop.interval ? `every ${loop.interval}` : "when its agent says";
    const on = (verb, label) => h("button.button", { type: "button", onclick: () => this.does(`/loops/${verb}`, { id: loop.id }) }, label);
    return h(
      "li.card",
      {},
      h("div.card-head", {}, h("b", {}, pace), h(loop.held ? "span.chip.is-asks" : "span.chip", {}, loop.held ? `held: ${loop.held}` : loop.status), open && h(
        "span.actions",
        {},
        on("run", "Run now"),
        loop.status === "paused" || loop.held ? on("resume", "Resume") : on("pause", "Pause"),
        h("button.button.danger", { type: "button", onclick: async () => (await ask({ title: "End this loop?", text: loop.instruction.slice(0, 300), yes: "End it", danger: true })) && this.does("/loops/stop", { id: loop.id }) }, "End"),
      )),
      h("p.card-text", {}, loop.instruction),
      h("p.card-foot", {}, [
        loop.nextRunAt && `next ${moment(loop.nextRunAt)}`,
        `${loop.runCount} ${loop.runCount === 1 ? "run" : "runs"}${loop.maxRuns ? ` of ${loop.maxRuns}` : ""}`,
        loop.lastRunAt && `last ${ago(loop.lastRunAt)}${loop.lastResult ? ` (${loop.lastResult})` : ""}`,
        loop.lastError, `by ${loop.createdBy}`,
      ].filter(Boolean).join(" · ")),
    );
  }
  async create() {
    const form = await ask({
      title: `A loop of ${this.name}`,
      yes: "Create",
      fields: [
        h("label.field", {}, "Instruction", h("textarea", { name: "instruction", rows: 3, required: true })),
        h("label.field", {}, "Time between runs", h("small", {}, "30s, 1.5h, 5 minutes. Empty, and no cron: its agent names each next run."), h("input", { name: "interval" })),
        h("label.field", {}, "Or a cron expression", h("input", { name: "cron", className: "mono", placeholder: "0 9 * * 1-5" })),
      ],
    });
    if (!form) return;
    const given = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ""));
    await this.does("/loops/create", { name: this.name, ...given });
  }
}

class Details {
  constructor(name) {
    this.name = name;
    this.facts = h("div.facts");
    this.node = h("div.panel", {}, h("div.scroll", { tabIndex: 0 }, this.facts));
  }
  start() { this.update(); }
  stop() {}
  event() {}
  update() {
    const row = store.sessions.get(this.name);
    if (!row || JSON.stringify(row) === this.told) return;
    this.told = JSON.stringify(row);
    const threads = Object.entries(row.chat ?? {});
    show(
      this.facts,
      working(row),
      section("The session", pairs([
        ["Status", stateOf(row)[1]], ["Detail", row.detail], ["Description", row.description],
        ["Held", row.hold && `${row.hold.kind} by ${row.hold.by}, ${moment(row.hold.at)}${row.hold.reason ? `: ${row.hold.reason}` : ""}`],
        ["Folder", row.cwd], ["Program", [row.harness, row.harnessVersion].filter(Boolean).join(" ")],
        ["Permission mode", row.permissionMode], ["Started", row.startedAt && moment(row.startedAt)],
        ["Last message", row.lastMessageAt && moment(row.lastMessageAt)],
        ["Background tasks", row.pendingTasks.join(", ")], ["Changed since its start", row.drift.join(", ")],
        ["Conversation", row.harnessSessionId], ["Declared", row.declared ? "in the configuration" : "no, it was created"],
        ["Starts by itself", row.autoStart ? "yes" : "no"],
        ...threads.map(([kind, place]) => [`Thread (${kind})`, `${place.channel} / ${place.thread}`]),
      ])),
      section("Its terminal", pairs([["Attach, read-only", h("code", {}, row.attach)], ["tmux", row.tmuxTarget]])),
      row.capabilities && section("What its program proves", pairs(Object.entries(row.capabilities))),
      !row.declared && h("section", {}, h("button.button.danger", { type: "button", onclick: () => order("delete", this.name) }, "Delete this session")),
    );
  }
}

const section = (title, ...children) => h("section", {}, h("h2", {}, title), children);
const pairs = (given) => h("dl.pairs", {}, given.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

// Plan and use: beside the conversation where there is room, and in the details.
function working(row) {
  const known = row.working;
  if (!known) return null;
  const used = context(known);
  const usage = known.usage?.session, turn = known.usage?.turn;
  const bar = used?.share !== null && used?.share !== undefined && h("span");
  if (bar) bar.style.width = `${Math.min(100, Math.round(100 * used.share))}%`;
  const money = (value) => value === null ? null : `$${value.toFixed(value < 1 ? 3 : 2)}`;
  return [
    known.limit && h("div.notice.is-bad", {}, known.limit.what, known.limit.until ? ` until ${moment(known.limit.until)}` : ""),
    known.plan?.length ? section(`Plan, ${known.plan.filter((item) => item.state === "done").length} of ${known.plan.length} done`, h("ol.plan", {}, known.plan.map((item) => h(item.state === "done" ? "li.done" : item.state === "in progress" ? "li.now" : "li", {}, item.text)))) : null,
    used && section("Context", bar && h("div.meter", { role: "img", "aria-label": `${Math.round(100 * used.share)} %` }, bar), h("p.soft", {}, used.size ? `${Math.round(100 * used.share)} % of ${number(used.size)} tokens` : `${number(used.used)} tokens`)),
    usage && section("Used", pairs([
      ["Model", known.model], ["Cost", money(cost(known))], ["This turn", turn && money(cost(known, "turn"))],
      ["Tokens in", number(usage.input)], ["Tokens out", number(usage.output)], ["From cache", number(usage.cached)],
    ])),
  ];
}

// ---------------------------------------------------------------- the whole

const PANELS = { talk: Talk, screen: Screen, queue: Queue, loops: Loops, details: Details };

export class Session {
  constructor(name) {
    this.name = name;
    this.head = h("header.head");
    this.body = h("div.body");
    this.aside = h("aside.aside", { "aria-label": "Plan and use", hidden: true });
    this.node = [this.head, this.body];
    this.panel = null;
  }

  open(tab) {
    this.panel?.stop();
    this.tab = tab;
    this.panel = tab === "events" ? new Events(this.name) : new PANELS[tab](this.name);
    show(this.body, this.panel.node, this.aside);
    this.told = "";
    this.update();
    this.panel.start();
  }

  close() { this.panel?.stop(); }
  event(event) { this.panel?.event?.(event); }

  update() {
    const row = store.sessions.get(this.name);
    const thread = threads.get(this.name);
    const told = JSON.stringify([row, requestsOf(this.name).length, this.tab, thread]);
    this.panel?.update?.();
    if (told === this.told) return;
    this.told = told;
    if (!row) return void show(this.head, h("div.head-line", {}, back(), h("h1", {}, this.name)), h("p.notice", {}, store.sessions.size ? "There is no session of this name." : "Loading…"));
    const [kind, word] = stateOf(row);
    const live = row.running === true;
    const button = (verb, label, key, more = "") => h(`button.button${more}`, { type: "button", title: `${label} (${key})`, "data-verb": verb, onclick: () => order(verb, this.name) }, label);
    const counts = { queue: row.queued, loops: row.loops, talk: requestsOf(this.name).length };
    const plan = row.working?.plan?.length || row.working?.usage?.session || row.working?.context?.used;
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.verb ?? document.activeElement.dataset.tab : null;
    show(
      this.head,
      h(
        "div.head-line",
        {},
        back(),
        h("h1", { title: row.description }, row.name),
        h(`span.chip.is-${kind}`, {}, h(`span.dot.${kind}`), word),
        h(
          "div.actions",
          {},
          live && button("interrupt", "Interrupt", "i"),
          live && button("pause", row.hold?.kind === "paused" ? "Resume" : "Pause", "p"),
          live && button("restart", "Restart", "r"),
          live ? button("stop", "Stop", "x", ".danger") : button("stop", "Start", "x", ".primary"),
        ),
      ),
      h(
        "div.about",
        {},
        h("span", {}, [row.harness, row.harnessVersion].filter(Boolean).join(" ")),
        row.working?.model && row.working.model !== row.harness && h("span", {}, row.working.model),
        row.permissionMode && h("span", {}, `permissions: ${row.permissionMode}`),
        h("span.wide.mono", { title: row.cwd }, row.cwd),
        thread?.url && /^https?:/.test(thread.url) && h("a", { href: thread.url, target: "_blank", rel: "noopener noreferrer" }, `Thread in ${thread.kind} ↗`),
        row.description && h("span.wide", { title: row.description }, row.description),
      ),
      row.hold && h("p.notice", {}, `${row.hold.kind[0].toUpperCase()}${row.hold.kind.slice(1)} by ${row.hold.by}, ${moment(row.hold.at)}${row.hold.reason ? `: ${row.hold.reason}` : ""}`),
      row.detail && kind !== "asks" && row.detail !== row.hold?.reason && h(kind === "bad" ? "p.notice.is-bad" : "p.notice", {}, row.detail),
      h("div.tabs", { role: "tablist" }, TABS.map(([tab, label], index) => h(
        "a.tab",
        { href: url(this.name, tab), role: "tab", "aria-selected": String(tab === this.tab), title: `${label} (${index + 1})`, "data-tab": tab },
        label, counts[tab] ? [" ", h("span.count", {}, counts[tab])] : null,
      ))),
    );
    this.head.querySelector('[aria-selected="true"]').scrollIntoView({ block: "nearest", inline: "nearest" });
    if (focused) this.head.querySelector(`[data-verb="${focused}"], [data-tab="${focused}"]`)?.focus();
    this.aside.hidden = !plan || this.tab !== "talk";
    if (!this.aside.hidden) show(this.aside, working(row));
  }
}

const back = () => h("a.back", { href: "#/", "aria-label": "All sessions" }, "‹");

export async function create() {
  const kinds = [...new Set((store.status?.services ?? []).map((row) => row.name))].filter((name) => !["service", "http"].includes(name));
  const harnesses = [...new Set([...(store.status?.harnesses ?? []).map((row) => row.name), ...[...store.sessions.values()].map((row) => row.harness)])].filter(Boolean);
  const form = await ask({
    title: "New session",
    yes: "Create",
    fields: [
      h("label.field", {}, "Name", h("input", { name: "name", required: true, autocomplete: "off", pattern: "[a-z0-9][a-z0-9-]*", title: "lower-case letters, digits and dashes" })),
      h("label.field", {}, "Task", h("small", {}, "The agent reads it at its start."), h("textarea", { name: "prompt", rows: 3 })),
      h("label.field", {}, "Folder", h("small", {}, "Empty: the configured one."), h("input", { name: "cwd", className: "mono", autocomplete: "off" })),
      h("label.field", {}, "Program", h("select", { name: "harness" }, h("option", { value: "" }, "The default"), harnesses.map((name) => h("option", {}, name)))),
      h("label.field", {}, "What it is for", h("input", { name: "description", autocomplete: "off" })),
      kinds.map((kind) => h("label.field.check", {}, h("input", { type: "checkbox", name: `chat ${kind}`, checked: true }), `A thread in ${kind}`)),
    ],
  });
  if (!form) return;
  const given = Object.fromEntries([...new FormData(form)].filter(([key, value]) => value !== "" && !key.startsWith("chat ")));
  for (const kind of kinds) given[kind] = { enabled: form.elements[`chat ${kind}`].checked };
  const { name, ...rest } = given;
  await act("create", name, rest);
  location.hash = url(name, "talk");
}

export const firstRequest = () => $("main").querySelector(".request .button");
