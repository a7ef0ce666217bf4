// Draws what an app shows outside messages: its modals, which are filled in and sent, and its Home tab.

import { blocks, el } from "/render.js";
import { $, keep, names, page } from "/shared.js";

let drawn = "";

// What is half filled in stays: a modal is drawn again only when the app has changed it.
export function drawModal(act) {
  const view = page.state.modal;
  const dialog = $("modal");
  if (!view) {
    drawn = "";
    if (dialog.open) dialog.close();
    return;
  }
  const key = `${view.id}/${view.hash}`;
  if (key === drawn && dialog.open) return;
  drawn = key;
  $("modal-title").textContent = view.title.text;
  $("modal-no").textContent = view.close?.text ?? "Close";
  $("modal-yes").hidden = !view.submit;
  $("modal-yes").textContent = view.submit?.text ?? "";
  $("modal-trouble").hidden = true;
  $("modal-fields").replaceChildren(...view.blocks.map((block) =>
    block.type === "input" ? field(block) : blocks([block], names, (part) => act.pressView(view, part))[0]));
  $("modal-form").onsubmit = (event) => { event.preventDefault(); send(view, act); };
  $("modal-no").onclick = () => act.closeModal(view);
  dialog.oncancel = (event) => { event.preventDefault(); act.closeModal(view); };
  if (!dialog.open) dialog.showModal();
  const first = view.blocks.find((block) => block.element?.focus_on_load) ?? view.blocks.find((block) => block.type === "input");
  if (first) document.getElementById(`field-${first.block_id}`)?.focus();
}

export function drawHome(act) {
  const view = page.state.home;
  $("home-empty").hidden = Boolean(view);
  keep($("home-blocks"), view ? blocks(view.blocks, names, (part) => act.pressView(view, part)) : []);
}

async function send(view, act) {
  const values = {};
  for (const block of view.blocks.filter((one) => one.type === "input")) {
    const input = document.getElementById(`field-${block.block_id}`);
    values[block.block_id] = input.multiple ? [...input.selectedOptions].map((one) => one.value) : input.value;
  }
  $("modal-yes").disabled = true;
  try {
    const { errors, trouble } = await act.submit(view, values);
    for (const note of $("modal-fields").querySelectorAll(".field-error")) note.hidden = true;
    for (const [block, text] of Object.entries(errors)) {
      const note = document.getElementById(`error-${block}`);
      note.hidden = false;
      note.textContent = text;
      document.getElementById(`field-${block}`).setAttribute("aria-invalid", "true");
    }
    const wrong = Object.keys(errors)[0];
    if (wrong) document.getElementById(`field-${wrong}`).focus();
    $("modal-trouble").hidden = !trouble;
    $("modal-trouble").textContent = trouble;
  } catch (error) {
    $("modal-trouble").hidden = false;
    $("modal-trouble").textContent = error.message;
  } finally {
    $("modal-yes").disabled = false;
  }
}

function field(block) {
  const id = `field-${block.block_id}`;
  const note = block.optional ? el("span", { class: "soft" }, " (optional)") : null;
  const input = control(block.element, { id, "aria-describedby": `error-${block.block_id}`, required: !block.optional });
  input.addEventListener("input", () => input.removeAttribute("aria-invalid"));
  return el("div", { class: "form-field" },
    el("label", { for: id }, block.label.text, note), input,
    block.hint && el("p", { class: "soft" }, block.hint.text),
    el("p", { class: "field-error", id: `error-${block.block_id}`, role: "alert", hidden: true }));
}

function control(element, attributes) {
  const placeholder = element.placeholder?.text;
  if (element.type === "plain_text_input") {
    const given = { ...attributes, placeholder, maxlength: element.max_length ?? 3000 };
    const input = element.multiline ? el("textarea", { ...given, rows: 4 }) : el("input", { ...given, type: "text" });
    input.value = element.initial_value ?? "";
    return input;
  }
  const people = Object.entries(page.state.people).filter(([, one]) => !one.bot && !one.deleted);
  const choices = {
    static_select: () => element.options.map((one) => [one.value, one.text.text]),
    conversations_select: () => page.state.channels.map((one) => [one.id, `#${one.name}`]),
    multi_users_select: () => people.map(([key, one]) => [key, one.name]),
  };
  const options = choices[element.type]?.() ?? [];
  const multiple = element.type === "multi_users_select";
  const chosen = [element.initial_option?.value, element.initial_conversation, ...(element.initial_users ?? [])];
  return el("select", { ...attributes, multiple, size: multiple ? Math.min(4, options.length) : null },
    ...options.map(([value, text]) => el("option", { value, selected: chosen.includes(value) }, text)));
}

