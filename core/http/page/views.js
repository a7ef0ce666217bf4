// The event log with search, and how the service stands.

import { get } from "./api.js";
import { h, keep, show } from "./dom.js";
import { store } from "./store.js";

const MOST = 2000;
const KNOWN = new Set(["id", "ts", "event", "level", "ref", "name"]);
const UNTOLD = new Set(["reason", "detail", "actor", "instance", "generation", "message", "channel", "thread"]); // found by a search
const FORM = { day: "2-digit", month: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
const stamp = (at) => new Date(at).toLocaleString([], FORM);

const plain = (value) => value?.length !== undefined && value.sha256 ? `of ${value.length} characters` : typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
const rest = (event) => {
  const { reason, detail, actor } = event;
  const others = Object.entries(event).filter(([key]) => !KNOWN.has(key) && !UNTOLD.has(key));
  return [actor && `by ${actor}`, reason, detail, ...others.map(([key, value]) => `${key} ${plain(value)}`)].filter(Boolean).map(plain).join(" · ");
};

export class Events {
  constructor(name = null) {
    this.name = name;
    this.events = [];
    this.search = h("input", { type: "search", placeholder: "Search in the events", "aria-label": "Search in the events", value: "", oninput: () => this.render() });
    this.found = h("span.soft", { role: "status" });
    this.list = h("ol.events", { "aria-label": "Events" });
    this.scroll = h("div.scroll", { tabIndex: 0 }, this.list);
    this.node = h("div.panel", {}, h("div.tools", {}, this.search, this.found), this.scroll);
  }

  async start() {
    try {
      const { events } = await get("/events", { last: 1000, name: this.name });
      const newest = new Set(events.map((event) => event.id));
      this.events = [...events, ...this.events.filter((event) => !newest.has(event.id))];
      this.render();
    } catch (error) {
      this.found.textContent = error.told ?? String(error);
    }
  }

  stop() { cancelAnimationFrame(this.frame); }
  update() {}

  event(event) {
    if (this.name !== null && event.name !== this.name) return;
    this.events.push(event);
    if (this.events.length > MOST) this.events.splice(0, this.events.length - MOST);
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.render());
  }

  render() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.events.filter((event) => {
      event.text_ ??= JSON.stringify(event).toLowerCase();
      return words.every((word) => event.text_.includes(word));
    });
    this.found.textContent = words.length ? `${found.length} of ${this.events.length}` : `${this.events.length} events`;
    keep(this.list, found.slice(-500).reverse(), (event) => event.id, (event) => this.row(event));
  }

  row(event) {
    const level = ["warning", "error"].includes(event.level) ? `.${event.level}` : "";
    const { text_, ...told } = event;
    return h(
      `li.event${level}`,
      { title: JSON.stringify(told, null, 1) },
      h("time", { dateTime: event.ts }, stamp(event.ts)),
      h("span.what", {}, event.event),
      h("span.rest", {}, event.name && this.name === null ? [h("a", { href: `#/s/${encodeURIComponent(event.name)}` }, event.name), " "] : null, rest(told)),
    );
  }

  focus() { this.search.focus(); }
}

export class Service {
  constructor() {
    this.facts = h("div.facts", {}, h("p.soft", {}, "Asking…"));
    this.node = h("div.panel", {}, h("div.scroll", { tabIndex: 0 }, this.facts));
  }

  async start() {
    try {
      store.status = await get("/status");
      this.render();
    } catch (error) {
      show(this.facts, h("p.notice.is-bad", {}, error.told ?? String(error)));
    }
  }

  stop() {}
  update() {}
  event() {}

  render() {
    const { services, harnesses, ok } = store.status;
    const row = (name, state, detail) => [h("dt.stands", {}, h(`span.dot.${state}`), name), h("dd", {}, detail)];
    show(
      this.facts,
      h("section", {}, h(ok ? "p.notice" : "p.notice.is-bad", {}, ok ? "Everything that should run does." : "Something is not as it should be.")),
      h("section", {}, h("h2", {}, "Connections"), h("dl.pairs", {}, services.map((one) => row(one.name, one.running ? "idle" : one.running === null ? "off" : "bad", one.detail || (one.running ? `up${one.pid ? `, process ${one.pid}` : ""}` : "down"))))),
      harnesses.length > 0 && h("section", {}, h("h2", {}, "Programs"), h("dl.pairs", {}, harnesses.map((one) => row(one.name, one.detail ? "paused" : "idle", [one.version, one.detail].filter(Boolean).join(" · ") || "—")))),
    );
  }
}
