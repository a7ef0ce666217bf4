// Small helpers. Everything that anybody wrote becomes a text node: no module of this page makes HTML of a string.

export const $ = (id) => document.getElementById(id);

// h("li.row.is-bad", { onclick, title }, child, "text", …): strings are text, null and false are left out.
export function h(name, given = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && !key.includes("-") && key !== "list") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  fill(node, children);
  return node;
}

function fill(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

export function show(node, ...children) {
  node.replaceChildren();
  fill(node, children);
}

// Brings a list to what it should hold: what did not change stays the same node, with its focus and selection.
export function keep(list, items, key, make) {
  const known = new Map([...list.children].map((node) => [node.dataset.key, node]));
  let place = list.firstElementChild;
  for (const item of items) {
    const id = key(item);
    const told = JSON.stringify(item);
    let node = known.get(id);
    if (!node || node.told !== told) {
      const fresh = make(item, node);
      if (fresh !== node) {
        fresh.dataset.key = id;
        if (node) {
          if (place === node) place = fresh;
          node.replaceWith(fresh);
        }
        node = fresh;
      }
      node.told = told;
    }
    known.delete(id);
    if (node === place) place = place.nextElementSibling;
    else list.insertBefore(node, place);
  }
  for (const node of known.values()) node.remove();
}

export function ago(at, now = Date.now()) {
  if (!at) return "";
  const seconds = Math.max(0, (now - Date.parse(at)) / 1000);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function moment(at) {
  const date = new Date(at);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}

export const time = (at) => h("time", { dateTime: at, title: new Date(at).toLocaleString() }, moment(at));

export function toast(text, bad = false) {
  const node = h(bad ? "div.toast.is-bad" : "div.toast", {}, text);
  $("toasts").append(node);
  setTimeout(() => node.remove(), bad ? 9000 : 4000);
}

// Asks a person; resolves to true, or to a form's values, and to null where they think better of it.
export function ask({ title, text = "", fields = [], yes, danger = false }) {
  const dialog = $("dialog");
  return new Promise((resolve) => {
    const form = h(
      "form",
      { method: "dialog", noValidate: false },
      h("h2", { id: "dialog-title" }, title),
      [text].flat().map((line) => line instanceof Node ? line : line && h("p", {}, line)),
      fields,
      h(
        "div.dialog-foot",
        {},
        yes && h("button.button", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
        h(danger ? "button.button.danger" : "button.button.primary", { type: "submit", value: "yes" }, yes ?? "Close"),
      ),
    );
    show(dialog, form);
    dialog.returnValue = "";
    dialog.addEventListener(
      "close",
      () => resolve(dialog.returnValue === "yes" ? (fields.length ? form : true) : null),
      { once: true },
    );
    dialog.showModal();
    (form.querySelector("input, textarea, select") ?? form.querySelector(".dialog-foot button:last-child")).focus();
  });
}
