// Draws messages: who, when, what, and what can be done with them. `act` holds what clicks do.

import { blocks, el, emoji, icon, mrkdwn, typed } from "/render.js";
import { clock, dayOf, hue, moment, names, page, view } from "/shared.js";

export function items(where, messages, act) {
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
      && message.ts - previous.ts < 300 && dayOf(previous.ts) === day && !alone(message) && !alone(previous);
    found.push(drawMessage(where, message, follows, act));
    previous = message;
  });
  return found;
}

const alone = (message) => quiet(message) || message.is_ephemeral;
const quiet = (message) => ["channel_join", "channel_leave", "tombstone"].includes(message.subtype);

function drawMessage(where, message, follows, act) {
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
    message.subtype === "thread_broadcast" && where === "channel" && repliedTo(message, act),
    ...(page.editing === `${where}/${message.ts}` ? [editor(message, act)] : content(message, act)),
    message.streaming === "open" && el("p", { class: "note writing" }, "is being written…"),
    message.streaming === "cut" && el("p", { class: "note cut" }, "Something went wrong: this message was never finished"),
    message.edited && el("span", { class: "edited" }, "(edited)"),
    reactions(message, act),
    where === "channel" && message.reply_count ? threadLink(message, act) : null);
  const avatar = follows
    ? el("time", { class: "gutter", "aria-hidden": "true" }, clock(message.ts))
    : el("span", { class: `avatar hue-${hue(who.key)}`, "aria-hidden": "true" }, who.name.slice(0, 1).toUpperCase());
  const kind = `message${follows ? " follows" : ""}${message.is_ephemeral ? " ephemeral" : ""}${
    message.ts === view.thread && where === "channel" ? " opened" : ""}`;
  return el("li", { class: kind, "data-ts": message.ts }, avatar, body, message.is_ephemeral ? null : tools(where, message, act));
}

function author(message) {
  const person = page.state.people[message.user];
  if (message.username) return { key: message.username, name: message.username, bot: true };
  if (message.user === "USLACKBOT") return { key: "slackbot", name: "Slackbot", bot: true };
  if (!person) return { key: message.bot_id ?? message.user ?? "?", name: message.bot_id ?? "Somebody", bot: Boolean(message.bot_id) };
  return { key: message.user, name: person.name, bot: person.bot, outside: person.outside };
}

function content(message, act) {
  const shown = (message.blocks ?? []).filter((block) => block.type !== "rich_text" || message.bot_id);
  const parts = shown.length
    ? [el("div", { class: "blocks" }, ...blocks(shown, names, (part, button) => act.press(message, part, button)))]
    : message.text ? [mrkdwn(message.subtype === "me_message" ? `_${message.text}_` : message.text, names)] : [];
  for (const file of message.files ?? []) parts.push(attached(file));
  for (const entry of message.attachments ?? []) {
    parts.push(el("blockquote", { class: "attachment" }, entry.title ?? entry.fallback ?? entry.text ?? ""));
  }
  return parts;
}

function attached(file) {
  const href = `/page/file/${encodeURIComponent(file.id)}`;
  const link = { href, target: "_blank", rel: "noopener", title: `Open ${file.name}` };
  const named = el("a", { class: "file", "data-focus": file.id, ...link }, icon("file"), el("span", {}, file.name), el("span", { class: "size" }, size(file.size)));
  if (!/^image\/(png|jpeg|gif|webp)$/.test(file.mimetype ?? "")) return named;
  return el("div", { class: "attached" }, named, el("a", link, el("img", { src: href, alt: file.title ?? file.name, loading: "lazy" })));
}

const size = (bytes) => bytes < 1000 ? `${bytes} bytes` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

function editor(message, act) {
  const box = el("textarea", { rows: 3, "aria-label": "Edit message", "data-focus": "editor" }, typed(message.text ?? "", names));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); act.edit(""); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); act.save(message, box.value); }
  });
  return el("div", { class: "editor" }, box, el("div", { class: "editor-foot" },
    el("button", { type: "button", class: "button", on: { click: () => act.edit("") } }, "Cancel"),
    el("button", { type: "button", class: "button primary", on: { click: () => act.save(message, box.value) } }, "Save")));
}

function reactions(message, act) {
  const given = message.reactions ?? [];
  if (!given.length) return null;
  return el("div", { class: "reactions" }, ...given.map((entry) => {
    const mine = entry.users.includes(page.state.viewer);
    const people = entry.users.map((id) => names.user(id) ?? id).join(", ");
    return el("button", {
      type: "button", class: "reaction", "aria-pressed": String(mine), title: `${people} reacted with :${entry.name}:`,
      "aria-label": `${entry.name}, ${entry.count}, by ${people}`, "data-focus": `reaction/${entry.name}`,
      on: { click: () => act.react(message, entry.name) },
    }, el("span", { class: "emoji", "aria-hidden": "true" }, emoji(entry.name)), ` ${entry.count}`);
  }));
}

function threadLink(message, act) {
  const count = message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`;
  const faces = (message.reply_users ?? []).slice(0, 4).map((id) =>
    el("span", { class: `avatar small hue-${hue(id)}`, "aria-hidden": "true" }, (names.user(id) ?? "?").slice(0, 1).toUpperCase()));
  return el("button", {
    type: "button", class: "thread-link", "data-focus": "thread", on: { click: () => act.go(page.state.channel, message.ts) },
  }, ...faces, el("strong", {}, count), el("span", { class: "since" }, `last ${moment(message.latest_reply)}`));
}

const repliedTo = (message, act) => el("p", { class: "note" }, "replied in a ", el("button", {
  type: "button", class: "inline", "data-focus": "root", on: { click: () => act.go(page.state.channel, message.thread_ts) },
}, "thread"));

function tools(where, message, act) {
  const tool = (label, sign, click, key) => el("button", {
    type: "button", "aria-label": label, title: label, "data-focus": key, on: { click },
  }, sign);
  const own = message.user === page.state.viewer && !message.bot_id;
  return el("div", { class: "tools", role: "group", "aria-label": "Message tools" },
    ...["eyes", "white_check_mark", "+1"].map((name) => tool(`React with ${name}`, emoji(name), () => act.react(message, name), `tool/${name}`)),
    where === "channel" && tool("Reply in thread", icon("reply"), () => act.go(page.state.channel, message.thread_ts ?? message.ts), "tool/reply"),
    own && tool("Edit message", icon("pencil"), () => act.edit(`${where}/${message.ts}`), "tool/edit"),
    own && tool("Delete message", icon("bin"), () => act.remove(message), "tool/delete"));
}
