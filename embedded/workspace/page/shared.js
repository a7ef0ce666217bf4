// What the modules of the page share: the server's last state, what is being looked at, and small helpers.

export const $ = (id) => document.getElementById(id);
export const page = { state: null, editing: "" };
export const view = { as: sessionStorage.getItem("as") ?? "", channel: "", thread: "", tab: "" };

export const names = {
  user: (id) => page.state.people[id]?.name,
  channel: (id) => page.state.channels.find((channel) => channel.id === id)?.name,
};

const at = (ts) => new Date(Number(ts) * 1000);
export const clock = (ts, more = {}) => at(ts).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...more });

function near(ts, otherwise) {
  const day = at(ts).toDateString();
  const days = { today: 0, yesterday: -1, tomorrow: 1 };
  const name = Object.keys(days).find((key) => new Date(Date.now() + days[key] * 86400000).toDateString() === day);
  return name ?? at(ts).toLocaleDateString([], otherwise);
}

const long = (ts) => near(ts, { weekday: "long", day: "numeric", month: "long" });
export const dayOf = (ts) => long(ts).replace(/^./, (first) => first.toUpperCase());
export const shortDay = (ts) => near(ts, { day: "numeric", month: "short", year: "numeric" });
export const moment = (ts) => `${long(ts)} at ${clock(ts)}`;

export function hue(key) {
  const place = Object.keys(page.state.people).indexOf(key);
  return place >= 0 ? place % 8 : [...key].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 997, 7) % 8;
}

// Puts new items in place of the old, but leaves those that did not change (and so selection and focus) alone.
export function keep(list, fresh) {
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
