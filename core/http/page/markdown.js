// Agents' Markdown as nodes: paragraphs, code, lists, headings, quotes, tables, links. What it does not know stays text.

import { h } from "./dom.js";

const INLINE = /(`+)(.+?)\1|\*\*(.+?)\*\*|(?<![\w*])\*([^*\s](?:.*?[^*\s])?)\*(?![\w*])|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>)\]]+)/g;

function inline(text) {
  const nodes = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) nodes.push(text.slice(at, found.index));
    const [whole, , code, strong, soft, label, target, bare] = found;
    if (code !== undefined) nodes.push(h("code", {}, code));
    else if (strong !== undefined) nodes.push(h("strong", {}, inline(strong)));
    else if (soft !== undefined) nodes.push(h("em", {}, inline(soft)));
    else nodes.push(link(target ?? bare, label ?? bare));
    at = found.index + whole.length;
  }
  if (at < text.length) nodes.push(text.slice(at));
  return nodes;
}

function link(target, label) {
  const shown = label === target ? label : `${label} `;
  const rest = label === target ? null : h("span.soft", {}, `(${new URL(target).host})`); // a label may lie about it
  return [h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, shown), rest];
}

const BULLET = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

export function markdown(text) {
  const lines = text.replaceAll("\r", "").split("\n");
  const nodes = [];
  let at = 0;
  const take = (test) => {
    const begin = at;
    while (at < lines.length && test(lines[at], at - begin)) at += 1;
    return lines.slice(begin, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^\s*(```+|~~~+)/.exec(line);
    if (fence) {
      at += 1;
      const code = take((one) => !one.trim().startsWith(fence[1]));
      at += 1;
      nodes.push(h("pre", { tabIndex: 0 }, h("code", {}, code.join("\n"))));
    } else if (!line.trim()) {
      at += 1;
    } else if (/^#{1,6}\s/.test(line)) {
      nodes.push(h(line.startsWith("# ") ? "h3" : "h4", {}, inline(line.replace(/^#+\s+/, ""))));
      at += 1;
    } else if (/^>/.test(line)) {
      nodes.push(h("blockquote", {}, markdown(take((one) => /^>/.test(one)).map((one) => one.replace(/^>\s?/, "")).join("\n"))));
    } else if (BULLET.test(line)) {
      const found = take((one, place) => BULLET.test(one) || (place > 0 && /^\s+\S/.test(one)));
      const items = [];
      for (const one of found) {
        const bullet = BULLET.exec(one);
        if (bullet) items.push([bullet[3]]);
        else items.at(-1).push(one.trim());
      }
      nodes.push(h(BULLET.exec(line)[2] ? "ol" : "ul", {}, items.map((item) => h("li", {}, inline(item.join(" "))))));
    } else if (line.includes("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) {
      const [head, , ...rest] = take((one) => one.includes("|"));
      const row = (one, kind) => h("tr", {}, cells(one).map((cell) => h(kind, {}, inline(cell))));
      nodes.push(h("table", {}, h("tbody", {}, row(head, "th"), rest.map((one) => row(one, "td")))));
    } else {
      const part = take((one, place) => one.trim() && (place === 0 || !/^\s*(```|~~~)|^#{1,6}\s|^>/.test(one)) && (place === 0 || !BULLET.test(one)));
      nodes.push(h("p", {}, inline(part.join("\n"))));
    }
  }
  return nodes;
}
