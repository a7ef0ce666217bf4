// Turns Slack's text and blocks into DOM nodes. Text is only ever inserted as text, never as HTML.

import { clock, shortDay } from "/shared.js";

const EMOJI = {
  "+1": "👍", "-1": "👎", bell: "🔔", eyes: "👀", fire: "🔥", heart: "❤️", hourglass: "⌛",
  hourglass_flowing_sand: "⏳", keyboard: "⌨️", large_green_circle: "🟢", no_entry: "⛔", no_entry_sign: "🚫", ok_hand: "👌",
  pray: "🙏", question: "❓", red_circle: "🔴", robot_face: "🤖", rocket: "🚀", speech_balloon: "💬",
  tada: "🎉", thinking_face: "🤔", thumbsup: "👍", warning: "⚠️", wave: "👋", white_circle: "⚪",
  white_check_mark: "✅", x: "❌", zap: "⚡", zzz: "💤",
};

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// A machine without an emoji font would show empty boxes: there the name is the better picture.
const pictures = (() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 16;
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  brush.font = "14px sans-serif";
  brush.fillText("✅", 0, 13);
  const { data } = brush.getImageData(0, 0, 16, 16);
  return data.some((value, index) => index % 4 === 1 && data[index + 2] > 0 && value > data[index - 1] + 20);
})();

const picture = (name) => (pictures ? EMOJI[name.split("::")[0]] : undefined);
export const emoji = (name) => picture(name) ?? (SHAPES[name] ? icon(name) : `:${name}:`);

const SHAPES = {
  eyes: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z M8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  white_check_mark: "M2.5 8.5l3.5 3.5 7.5-8",
  "+1": "M5 7.5v6H2.5v-6z M5 7.5l2.5-5.5c1.5 0 2 1 1.7 2.2L8.7 6h3.6c1 0 1.5.8 1.2 1.7l-1.4 4.6c-.2.7-.7 1.2-1.5 1.2H5",
  x: "M3.5 3.5l9 9 M12.5 3.5l-9 9",
  question: "M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8 M8 12.7v.1",
  keyboard: "M1.5 4h13v8h-13z M4 6.5h.1 M6.6 6.5h.1 M9.3 6.5h.1 M12 6.5h.1 M5 9.7h6",
  clip: "M12.5 7.5l-5 5a3 3 0 0 1-4.2-4.2l6-6a2 2 0 0 1 2.8 2.8l-5.6 5.6a1 1 0 0 1-1.4-1.4l4.6-4.6",
  pencil: "M3 13l.7-3L11 2.7l2.3 2.3L6 12.3z M9.5 4.2l2.3 2.3",
  bin: "M2.5 4.5h11 M6 4.5v-2h4v2 M4 4.5l.7 9h6.6l.7-9 M6.7 7v4 M9.3 7v4",
  reply: "M2 3.5h12v7.5H8l-3.5 3v-3H2z",
  file: "M4 1.5h5l3 3v10H4z M9 1.5v3h3",
};

export function icon(name) {
  const make = (tag, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const svg = make("svg", { viewBox: "0 0 16 16", width: 16, height: 16, class: "icon-shape", "aria-hidden": "true" });
  svg.append(make("path", { d: SHAPES[name] }));
  return svg;
}

const unescape = (text) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

// What somebody would have typed for a text of Slack's.
export const typed = (text, names) => unescape(text.replace(/<([^<>]+)>/g, (_, token) => {
  const [target, label] = token.split(/\|(.*)/s);
  if (target.startsWith("@")) return `@${names.user(target.slice(1)) ?? target.slice(1)}`;
  if (target.startsWith("#")) return `#${names.channel(target.slice(1)) ?? target.slice(1)}`;
  return target.startsWith("!") ? `@${label || target.slice(1)}` : label ?? target;
}));

function link(url, label) {
  if (!/^(https?:\/\/|mailto:)/i.test(url)) return document.createTextNode(label);
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, label);
}

// --- mrkdwn, Slack's own markup

export function mrkdwn(text, names) {
  const root = el("div", { class: "text" });
  text.split("```").forEach((part, index, parts) => {
    if (index % 2 === 1 && index < parts.length - 1) root.append(fence(unescapeTokens(part.replace(/^\n|\n$/g, ""))));
    else if (part) root.append(...quotes(index % 2 === 1 ? `\`\`\`${part}` : part.replace(/^\n|\n$/g, ""), names));
  });
  return root;
}

const fence = (code) => el("pre", { tabindex: "0" }, el("code", {}, code));

const unescapeTokens = (text) => unescape(text.replace(/<([^<>]*)>/g, (_, token) => token.split("|").pop()));

function quotes(text, names) {
  const found = [];
  let quoted = null;
  for (const line of text.split("\n")) {
    const quote = /^(?:&gt;|>) ?(.*)$/.exec(line);
    if (Boolean(quote) !== quoted || !found.length) found.push({ quoted: Boolean(quote), lines: [] });
    quoted = Boolean(quote);
    found.at(-1).lines.push(quote ? quote[1] : line);
  }
  return found.map(({ quoted, lines }) =>
    el(quoted ? "blockquote" : "p", {}, ...inline(lines.join("\n"), names)));
}

const INLINE = /<([^<>]+)>|`([^`\n]+)`|(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])|(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?![\w_])|(?<![\w~])~(\S(?:[^~\n]*\S)?)~(?![\w~])|:([a-z0-9_+-]+(?:::skin-tone-\d)?):/g;

function inline(text, names) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    nodes.push(unescape(text.slice(end, match.index)));
    const [whole, token, code, bold, italic, strike, name] = match;
    if (token !== undefined) nodes.push(mention(token, names));
    else if (code !== undefined) nodes.push(el("code", {}, unescapeTokens(code)));
    else if (bold !== undefined) nodes.push(el("strong", {}, ...inline(bold, names)));
    else if (italic !== undefined) nodes.push(el("em", {}, ...inline(italic, names)));
    else if (strike !== undefined) nodes.push(el("s", {}, ...inline(strike, names)));
    else nodes.push(picture(name) ?? whole);
    end = match.index + whole.length;
  }
  nodes.push(unescape(text.slice(end)));
  return nodes;
}

function mention(token, names) {
  const [target, label] = token.split(/\|(.*)/s);
  if (target.startsWith("@")) return el("span", { class: "mention" }, `@${names.user(target.slice(1)) ?? label ?? target.slice(1)}`);
  if (target.startsWith("#")) return el("span", { class: "mention" }, `#${names.channel(target.slice(1)) ?? label ?? target.slice(1)}`);
  if (target.startsWith("!date^")) return date(target, unescape(label ?? ""));
  if (target.startsWith("!")) return el("span", { class: "mention loud" }, `@${label ?? target.slice(1)}`);
  return link(unescape(target), unescape(label ?? target));
}

// A date as each reader has it, by its tokens; the fallback where one of them is not known here.
function date(target, fallback) {
  const [, stamp, format] = target.split("^");
  const at = new Date(Number(stamp) * 1000);
  const known = { time: () => clock(stamp), time_secs: () => clock(stamp, { second: "2-digit" }), date_short_pretty: () => shortDay(stamp) };
  const tokens = [...(format ?? "").matchAll(/\{(\w+)\}/g)];
  if (Number.isNaN(at.getTime()) || !tokens.length || tokens.some(([, name]) => !known[name])) return document.createTextNode(fallback);
  const shown = unescape(format).replace(/\{(\w+)\}/g, (_, name) => known[name]());
  return el("time", { datetime: at.toISOString(), title: fallback }, shown);
}

// --- Markdown, as the markdown block has it

export function markdown(source) {
  const root = el("div", { class: "text markdown" });
  const lines = source.split("\n");
  let at = 0;
  const take = (test) => {
    const taken = [];
    while (at < lines.length && test(lines[at])) taken.push(lines[at++]);
    return taken;
  };
  while (at < lines.length) {
    const line = lines[at];
    const open = /^\s*(```+|~~~+)/.exec(line);
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (open) {
      at += 1;
      const code = take((next) => !next.trim().startsWith(open[1]));
      at += 1;
      root.append(fence(code.join("\n")));
    } else if (heading) {
      root.append(el("p", { class: "heading", role: "heading", "aria-level": "3" }, ...span(heading[2])));
      at += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      root.append(el("hr"));
      at += 1;
    } else if (/^\s*>/.test(line)) {
      const inner = take((next) => /^\s*>/.test(next)).map((next) => next.replace(/^\s*> ?/, ""));
      root.append(el("blockquote", {}, ...markdown(inner.join("\n")).childNodes));
    } else if (isItem(line)) {
      root.append(list(take((next) => isItem(next) || /^\s{2,}\S/.test(next))));
    } else if (line.includes("|") && /^\s*\|?[\s:|-]+\|[\s:|-]*$/.test(lines[at + 1] ?? "")) {
      root.append(table(take((next) => next.includes("|"))));
    } else if (!line.trim()) {
      at += 1;
    } else {
      const text = [lines[at++], ...take((next) => next.trim() && !startsBlock(next))];
      root.append(el("p", {}, ...span(text.join("\n"))));
    }
  }
  return root;
}

const isItem = (line) => /^\s*([-*+]|\d+[.)])\s+/.test(line);
const startsBlock = (line) => isItem(line) || /^\s*(```|~~~|>|#{1,6}\s)/.test(line);

function list(lines) {
  const depth = (line) => /^\s*/.exec(line)[0].length;
  const base = depth(lines[0]);
  const root = el(/^\s*\d/.test(lines[0]) ? "ol" : "ul");
  let nested = [];
  const flush = () => {
    if (!nested.length) return;
    const inner = isItem(nested[0]) ? list(nested) : el("p", {}, ...span(nested.map((line) => line.trim()).join("\n")));
    (root.lastChild ?? root).append(inner);
    nested = [];
  };
  for (const line of lines) {
    if (depth(line) > base || !isItem(line)) { nested.push(line); continue; }
    flush();
    const task = /^\s*\S+\s+\[([ xX])\]\s+(.*)$/.exec(line);
    const text = task ? task[2] : line.replace(/^\s*\S+\s+/, "");
    root.append(el("li", task ? { class: "task" } : {}, task ? (task[1] === " " ? "☐ " : "☑ ") : null, ...span(text)));
  }
  flush();
  return root;
}

function table(lines) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const row = (tag, line) => el("tr", {}, ...cells(line).map((cell) => el(tag, {}, ...span(cell))));
  const [head, , ...body] = lines;
  const rows = body.map((line) => row("td", line));
  return el("div", { class: "table", tabindex: "0" },
    el("table", {}, el("thead", {}, row("th", head)), el("tbody", {}, ...rows)));
}

const SPAN = /`([^`]+)`|\*\*(\S(?:.*?\S)?)\*\*|__(\S(?:.*?\S)?)__|(?<![\w*])\*(\S(?:[^*]*?\S)?)\*(?![\w*])|(?<![\w_])_(\S(?:[^_]*?\S)?)_(?![\w_])|~~(\S(?:.*?\S)?)~~|\[([^\]]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]])/g;

function span(text) {
  const nodes = [];
  let end = 0;
  for (const match of text.matchAll(SPAN)) {
    nodes.push(text.slice(end, match.index));
    const [whole, code, bold, bold2, italic, italic2, strike, label, url, bare] = match;
    if (code !== undefined) nodes.push(el("code", {}, code));
    else if (bold ?? bold2) nodes.push(el("strong", {}, ...span(bold ?? bold2)));
    else if (italic ?? italic2) nodes.push(el("em", {}, ...span(italic ?? italic2)));
    else if (strike !== undefined) nodes.push(el("s", {}, ...span(strike)));
    else if (label !== undefined) nodes.push(link(url, label));
    else nodes.push(link(bare, bare));
    end = match.index + whole.length;
  }
  nodes.push(text.slice(end));
  return nodes;
}

// --- blocks

export function blocks(list, names, press) {
  return list.map((block) => renderBlock(block, names, press)).filter(Boolean);
}

function renderBlock(block, names, press) {
  switch (block.type) {
    case "section": {
      const fields = (block.fields ?? []).map((field) => el("div", { class: "field" }, textObject(field, names)));
      const body = el("div", { class: "section-body" }, block.text ? textObject(block.text, names) : null,
        fields.length ? el("div", { class: "fields" }, ...fields) : null);
      return el("div", { class: "block section" }, body, block.accessory ? element(block.accessory, press) : null);
    }
    case "header":
      return el("div", { class: "block header", role: "heading", "aria-level": "3" }, block.text.text);
    case "context":
      return el("div", { class: "block context" }, ...block.elements.map((part) =>
        part.type === "image" ? el("span", {}, part.alt_text) : textObject(part, names)));
    case "actions":
      return el("div", { class: "block actions", role: "group", "aria-label": "Actions" },
        ...block.elements.map((part) => element(part, press)));
    case "divider":
      return el("hr", { class: "block" });
    case "markdown":
      return el("div", { class: "block" }, markdown(block.text));
    case "plan":
      return el("section", { class: "block plan", "aria-label": block.title || "Plan" },
        block.title ? el("div", { class: "plan-title" }, block.title) : null,
        el("ul", { class: "steps" }, ...block.tasks.map((part) => el("li", {}, taskCard(part, names)))));
    case "task_card":
      return el("div", { class: "block" }, taskCard(block, names));
    case "rich_text":
      return el("div", { class: "block text" }, ...block.elements.map((part) => richText(part, names)));
    case "image":
      return block.slack_file?.id ? pictureOf(block) : el("div", { class: "block context" }, `Image: ${block.alt_text}`);
    default:
      return el("div", { class: "block context" }, `(a ${block.type} block is not shown here)`);
  }
}

function pictureOf(block) {
  const href = `/page/file/${encodeURIComponent(block.slack_file.id)}`;
  return el("a", { class: "block picture", href, target: "_blank", rel: "noopener noreferrer" },
    el("img", { src: href, alt: block.alt_text, loading: "lazy" }));
}

const STATES = { pending: "to do", in_progress: "at work", complete: "done", error: "failed" };

function taskCard(part, names) {
  const more = ["details", "output"].filter((key) => part[key]).map((key) =>
    el("div", { class: `step-${key}` }, ...part[key].elements.map((piece) => richText(piece, names))));
  return el("div", { class: `step ${part.status}` },
    el("span", { class: "step-sign", role: "img", "aria-label": STATES[part.status], title: STATES[part.status] }),
    el("div", { class: "step-body" }, el("div", { class: "step-title" }, part.title), ...more));
}

function richText(part, names) {
  const pieces = (part.elements ?? []).map((piece) => richPiece(piece, names));
  if (part.type === "rich_text_preformatted") return el("pre", { tabindex: "0" }, el("code", {}, ...pieces));
  if (part.type === "rich_text_quote") return el("blockquote", {}, ...pieces);
  if (part.type === "rich_text_list") {
    const items = part.elements.map((item) => el("li", {}, richText(item, names)));
    return el(part.style === "ordered" ? "ol" : "ul", {}, ...items);
  }
  return el("p", {}, ...pieces);
}

function richPiece(piece, names) {
  const style = piece.style ?? {};
  if (piece.type === "user") return mention(`@${piece.user_id}`, names);
  if (piece.type === "channel") return mention(`#${piece.channel_id}`, names);
  if (piece.type === "broadcast") return mention(`!${piece.range}`, names);
  if (piece.type === "emoji") return emoji(piece.name);
  if (piece.type === "link") return link(piece.url, piece.text ?? piece.url);
  let node = document.createTextNode(piece.text ?? "");
  for (const [key, tag] of [["code", "code"], ["bold", "strong"], ["italic", "em"], ["strike", "s"]]) {
    if (style[key]) node = el(tag, {}, node);
  }
  return node;
}

const textObject = (text, names) =>
  text.type === "mrkdwn" ? mrkdwn(text.text, names) : el("div", { class: "text" }, el("p", {}, text.text));

function element(part, press) {
  if (part.type === "static_select") return select(part, press);
  if (part.type !== "button") return el("span", { class: "context" }, `(${part.type} is not shown here)`);
  if (part.url) return link(part.url, part.text.text);
  const style = part.style ? ` ${part.style}` : "";
  const key = `${part.action_id}/${part.value ?? ""}`;
  // Everything a click sends or asks is in the attributes, so that a button that means something else is drawn anew.
  const attributes = { "data-focus": key, "data-confirm": part.confirm ? JSON.stringify(part.confirm) : null };
  const click = (event) => press(part, event.currentTarget);
  return el("button", { class: `button${style}`, type: "button", ...attributes, on: { click } }, part.text.text);
}

// A choice counts at once, once it is confirmed where the select asks; the select itself shows what it showed before.
function select(part, press) {
  const label = part.placeholder?.text ?? "Select an option";
  const change = async (event) => {
    const list = event.currentTarget;
    const value = list.value;
    list.value = part.initial_option?.value ?? "";
    if (value) await press({ ...part, value }, list);
  };
  const attributes = { "data-focus": `${part.action_id}/`, "data-confirm": part.confirm ? JSON.stringify(part.confirm) : null };
  const list = el("select", { class: "choice", "aria-label": label, ...attributes, on: { change } },
    el("option", { value: "" }, label),
    ...part.options.map((option) => el("option", { value: option.value }, option.text.text)));
  list.value = part.initial_option?.value ?? "";
  return list;
}
