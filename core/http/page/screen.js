// A session's terminal, live. It is watched only while this is on the screen of a person who looks at it.

import { lines, own } from "./api.js";
import { h, toast } from "./dom.js";

const FAMILY = 'ui-monospace, "SF Mono", "Cascadia Code", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const DARK = { background: "#14161a", foreground: "#d6d8dc", cursor: "#5ec4a6", cursorAccent: "#14161a", selectionBackground: "#3b4a54" };
const LIGHT = {
  background: "#fbfbf9", foreground: "#2b2d31", cursor: "#1f6f5c", cursorAccent: "#fbfbf9", selectionBackground: "#cfe4dc",
  black: "#2b2d31", red: "#b3261e", green: "#25733b", yellow: "#8a6100", blue: "#2457c5", magenta: "#8a3d9c", cyan: "#0f6f7c",
  white: "#6d7077", brightBlack: "#6d7077", brightRed: "#c9342b", brightGreen: "#2f8a48", brightYellow: "#9a6f00",
  brightBlue: "#3869d8", brightMagenta: "#9d4fb0", brightCyan: "#17818f", brightWhite: "#44474d",
};
const SMALLEST = 6, LARGEST = 14, LEGIBLE = 9; // pixels; what is chosen by hand may be as small as the first

let loading = null;

// xterm.js makes style elements and style attributes, which the policy of this page forbids to everybody. Both go
// through the CSSOM here, which it allows: an element of ours takes the place of a style element, and feeds a sheet.
function terminal() {
  loading ??= (async () => {
    const make = document.createElement.bind(document);
    document.createElement = (name, options) => {
      if (name === "style") return sheet(make("span"));
      const node = make(name, options);
      if (name === "span") {
        node.setAttribute = (key, value) => {
          if (key === "style") node.style.cssText = value;
          else Element.prototype.setAttribute.call(node, key, value);
        };
      }
      return node;
    };
    const link = h("link", { rel: "stylesheet", href: "/page/vendor/xterm.css" });
    const styled = new Promise((resolve) => { link.onload = link.onerror = resolve; });
    document.head.append(link);
    const [module] = await Promise.all([import("./vendor/xterm.mjs"), styled]);
    return module.Terminal;
  })();
  return loading;
}

function sheet(node) {
  const rules = new CSSStyleSheet();
  node.hidden = true;
  let text = "";
  Object.defineProperty(node, "textContent", {
    get: () => text,
    set: (css) => {
      text = css;
      rules.replaceSync(css);
      if (!document.adoptedStyleSheets.includes(rules)) document.adoptedStyleSheets = [...document.adoptedStyleSheets, rules];
    },
  });
  node.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== rules);
    Element.prototype.remove.call(node);
  };
  return node;
}

export class Screen {
  constructor(name) {
    this.name = name;
    this.words = h("span", { role: "status" }, "Looking…");
    this.toggle = h("button.button", { type: "button", hidden: true, onclick: () => this.type(!this.typing) }, "Type here");
    this.toggle.setAttribute("aria-pressed", "false");
    this.box = h("div.screen-box", { tabIndex: 0, role: "region", "aria-label": `Terminal of ${name}` });
    const size = (label, name, by) => h("button.button", { type: "button", "aria-label": name, title: name, onclick: () => this.resize(by) }, label);
    this.sizes = h("span.size", { hidden: true }, size("−", "Smaller", -1), size("Fit", "Fit to the width", 0), size("+", "Larger", 1));
    this.node = h("div.panel", {}, h("div.screen-bar", {}, this.words, this.sizes, this.toggle), this.box);
    this.chosen = Number(localStorage.getItem("screen-size")) || null; // pixels; null: as large as lets all be seen
    this.typing = false;
    this.instance = null;
    this.keys = "";
    this.sending = false;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.restyle = () => this.style();
    this.observer = new ResizeObserver(() => this.fit());
    this.aborting = null;
    this.visible = () => (document.hidden ? this.pause() : this.watch());
  }

  start() {
    this.dark.addEventListener("change", this.restyle);
    document.addEventListener("visibilitychange", this.visible);
    this.observer.observe(this.box);
    this.style();
    if (!document.hidden) this.watch();
  }

  stop() {
    this.type(false);
    this.pause();
    this.dark.removeEventListener("change", this.restyle);
    document.removeEventListener("visibilitychange", this.visible);
    this.observer.disconnect();
    this.term?.dispose();
    this.term = null;
  }

  pause() {
    this.aborting?.abort();
    this.aborting = null;
  }

  async watch() {
    if (this.aborting) return;
    const aborting = this.aborting = new AbortController();
    while (!aborting.signal.aborted) {
      try {
        for await (const line of lines(`/page/screen?name=${encodeURIComponent(this.name)}`, {}, aborting.signal)) {
          if (line) await this.take(JSON.parse(line));
        }
      } catch (error) {
        if (aborting.signal.aborted) return;
        this.words.textContent = `${error.told ?? error.message}. Trying again…`;
        if (error.status === 401 || error.status === 404) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }

  async take(told) {
    if (told.text === undefined) {
      this.words.textContent = told.error?.message ?? "There is nothing to see";
      return;
    }
    if (told.ended) {
      this.type(false);
      this.toggle.hidden = this.sizes.hidden = true;
      this.term?.dispose();
      this.term = null;
      this.words.textContent = "Its terminal has ended. This was its last output.";
      this.box.replaceChildren(h("pre.screen-text", {}, told.text));
      return;
    }
    if (!this.term) await this.open(told);
    if (!this.term) return;
    if (this.instance !== told.instance) this.type(false);
    this.instance = told.instance;
    this.columns = told.columns;
    if (this.term.cols !== told.columns || this.term.rows !== told.rows) {
      this.term.resize(told.columns, told.rows); // of this picture alone: the agent's pane stays as it is
      this.fit();
    }
    const rows = told.text.split("\n").slice(0, told.rows).join("\r\n");
    const [column, row] = told.cursor;
    const cursor = `\x1b[${row + 1};${column + 1}H${told.cursorShown ? "\x1b[?25h" : ""}`;
    this.term.write(`\x1b[?25l\x1b[?7l\x1b)0\x0f\x1b[0m\x1b[2J\x1b[H${rows}\x0f\x1b[0m${cursor}`);
    this.say();
  }

  async open(told) {
    const Terminal = await terminal();
    if (!this.aborting) return;
    this.box.replaceChildren();
    this.toggle.hidden = this.sizes.hidden = false;
    this.term = new Terminal({
      cols: told.columns, rows: told.rows, disableStdin: true, scrollback: 0, fontFamily: FAMILY, fontSize: 12,
      cursorBlink: false, cursorInactiveStyle: "outline", theme: this.dark.matches ? DARK : LIGHT, minimumContrastRatio: 4.5,
      linkHandler: { activate() {} },
    });
    this.term.open(this.box);
    this.term.onData((data) => this.send(data));
    this.term.attachCustomKeyEventHandler((event) => {
      if (event.key === "Escape" && event.shiftKey) {
        if (event.type === "keydown") this.type(false);
        return false;
      }
      return this.typing;
    });
    this.fit();
  }

  say() {
    const size = `${this.term.cols} × ${this.term.rows}`;
    this.words.textContent = this.typing
      ? `${size} · What you type goes to the agent's terminal. Shift+Esc ends that.`
      : `${size} · Live, read-only`;
  }

  style() {
    this.box.classList.toggle("light", !this.dark.matches);
    if (this.term) this.term.options.theme = this.dark.matches ? DARK : LIGHT;
  }

  // The font is as large as lets all columns be seen, within bounds: of a wide terminal one scrolls to the rest.
  fit() {
    if (!this.term) return;
    const cell = this.term.options.fontSize && this.box.querySelector(".xterm-screen");
    if (!cell || !cell.clientWidth) return;
    const width = this.box.clientWidth - 36;
    const each = cell.clientWidth / this.term.cols / this.term.options.fontSize;
    const size = Math.floor((width / this.term.cols / each) * 2) / 2;
    const bound = this.chosen ?? Math.max(LEGIBLE, Math.min(LARGEST, size));
    if (this.term.options.fontSize !== bound) this.term.options.fontSize = bound;
  }

  resize(by) {
    this.chosen = by ? Math.max(SMALLEST, Math.min(2 * LARGEST, this.term.options.fontSize + by)) : null;
    if (this.chosen) localStorage.setItem("screen-size", this.chosen);
    else localStorage.removeItem("screen-size");
    this.fit();
  }

  type(on) {
    if (on === this.typing || (on && !this.term)) return;
    this.typing = on;
    this.toggle.setAttribute("aria-pressed", String(on));
    this.toggle.textContent = on ? "Stop typing" : "Type here";
    this.box.classList.toggle("typing", on);
    if (this.term) {
      this.term.options.disableStdin = !on;
      this.say();
      if (on) this.term.focus();
      else this.term.blur();
    }
  }

  // Keys go one request after another, so that they arrive in their order; what is typed meanwhile goes together.
  async send(data) {
    if (!this.typing) return;
    this.keys += data;
    if (this.sending) return;
    this.sending = true;
    try {
      while (this.keys && this.typing) {
        const data = this.keys.slice(0, 4000);
        this.keys = this.keys.slice(data.length);
        await own("/page/keys", { name: this.name, instance: this.instance, data });
      }
    } catch (error) {
      this.type(false);
      toast(error.told ?? error.message, true);
    } finally {
      this.keys = "";
      this.sending = false;
    }
  }
}
