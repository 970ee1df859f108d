// What several views share: heads, empty and error states, tables, dialogs, notes.
import { h, icon } from "./dom.js";

export function head(title, note, ...tools) {
  return h("div", { class: "head", "data-key": "head" }, h("div", {}, h("h1", { tabindex: "-1" }, title), note && h("p", { class: "quiet" }, note)), h("div", { class: "tools" }, tools));
}

export function panel(title, more, ...children) {
  const name = typeof title === "string" ? title : null;
  return h("section", { class: "panel", "aria-label": name, "data-key": name && `panel ${name}` }, h("div", { class: "bar" }, h("h2", {}, title), more), children);
}

export const empty = (title, ...more) => h("div", { class: "empty" }, h("p", { class: "strong" }, title), more.map((line) => typeof line === "string" ? h("p", { class: "quiet" }, line) : line));

export function failure(problem, retry) {
  const [title, words] = problem.isMissing ? ["This server does not offer that.", "A newer version of reelhaul serve does."]
    : problem.status === 403 ? ["Your token does not allow that.", problem.message]
    : ["That could not be read.", problem.message];
  return h("div", { class: problem.isMissing ? "empty" : "empty is-error" }, h("p", { class: "strong" }, title), h("p", { class: "quiet" }, words), retry && h("p", {}, h("button", { type: "button", onclick: retry }, "Try again")));
}

export const loading = () => h("p", { class: "loading" }, "Loading…");

/// Rows in a table whose columns keep their widths: `columns` are `{name, width, is, cell}`. The one without a width takes the rest, at
/// least 9rem. Where that is too wide, the table scrolls, and its buttons stay in sight.
export function table(label, columns, rows, keyOf) {
  const wide = columns.reduce((sum, column) => sum + parseFloat(column.width ?? "9rem"), 0);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", { css: { "--wide": `${wide}rem` } },
      h("colgroup", {}, columns.map((column) => h("col", { css: column.width && { width: column.width } }))),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.is }, column.name || h("span", { class: "sr" }, column.label))))),
      h("tbody", {}, rows.map((row) => h("tr", { "data-key": keyOf(row) }, columns.map((column) => h("td", { class: column.is, "data-name": column.name || null }, column.cell(row))))))));
}

export function bar(share, { state = "running", label } = {}) {
  const known = share !== null && share !== undefined;
  return h("span", { class: `bar-track is-${state}${known ? "" : " is-unknown"}`, role: "progressbar", "aria-label": label ?? "Progress", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": known ? Math.round(share) : null },
    h("i", { css: { transform: `scaleX(${known ? share / 100 : state === "running" ? 1 : 0})` } }));
}

/// `fault` says what is wrong with what the field has.
export function field(label, input, help, fault) {
  if (fault) input.setAttribute("aria-invalid", "true");
  return h("label", { class: "field" }, h("span", {}, label), input, help && h("small", {}, help), fault && h("small", { class: "is-error" }, fault));
}

export function option(value, chosen, words = value) { return h("option", { value, selected: value === chosen }, words); }

// MARK: Notes

export function toast(words, { isBad = false, link } = {}) {
  const box = document.getElementById("toasts");
  const node = h("div", { class: `toast${isBad ? " is-bad" : ""}` }, h("span", {}, words), link && h("a", { href: link.href }, link.words),
    h("button", { type: "button", class: "plain", "aria-label": "Close", onclick: () => node.remove() }, icon("close")));
  box.append(node);
  while (box.children.length > 4) box.firstChild.remove();
  // What went wrong stays until somebody has read it.
  if (!isBad) setTimeout(() => { if (!node.matches(":hover, :focus-within")) node.remove(); else setTimeout(() => node.remove(), 8000); }, 6000);
  return node;
}

export const told = (problem) => toast(problem.message, { isBad: true });

export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    toast("Copied.");
  } catch {
    toast("The browser does not allow copying here. Select the text instead.", { isBad: true });
  }
}

// MARK: Dialogs

/// A dialog that is there until it is closed; focus returns to what had it.
export function dialog(title, body, { wide = false, onclose } = {}) {
  // Who selects text and lets go beside the dialog does not close it.
  let pressed = null;
  const node = h("dialog", { onpointerdown: (event) => { pressed = event.target; }, class: wide ? "wide" : null, "aria-label": title, onclose: () => { node.remove(); onclose?.(node.returnValue); }, onclick: (event) => { if (event.target === node && pressed === node) node.close(); } });
  node.append(h("div", { class: "inner" }, body(node)));
  document.body.append(node);
  node.showModal();
  return node;
}

/// Resolves to true if somebody agrees. `body` says what will happen. Before something bad, the way back has the focus.
export function confirm(title, body, yes, { isBad = false } = {}) {
  return new Promise((resolve) => dialog(title, (node) => [
    h("h2", {}, title), body,
    h("menu", {}, h("button", { type: "button", autofocus: isBad, onclick: () => node.close() }, "Back"), h("button", { type: "button", class: isBad ? "bad" : "main", autofocus: !isBad, onclick: () => node.close("yes") }, yes)),
  ], { onclose: (value) => resolve(value === "yes") }));
}

/// Asks for one value in a dialog; null if nobody gave one.
export function ask(title, input, yes, help) {
  let value = null;
  return new Promise((resolve) => dialog(title, (node) => h("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); value = input.value; node.close("yes"); } },
    h("h2", {}, title), field(help ?? title, input), h("menu", {}, h("button", { type: "button", onclick: () => node.close() }, "Back"), h("button", { class: "main" }, yes))), { onclose: (answer) => resolve(answer === "yes" ? value : null) }));
}

// MARK: Reading again and again

/// Reads now and every `seconds` while the view is there and the page is seen. `draw` gets the value, or a problem. Returns
/// what reads once more; with `{ anew: true }` for something else, so that an answer that is under way is not drawn.
export function poll(view, seconds, read, draw) {
  let timer = null, reads = 0, isReading = false, isWanted = false, isGone = false, known = false;
  const run = async ({ anew = false } = {}) => {
    clearTimeout(timer);
    if (isGone) return;
    if (isReading && !anew) { isWanted = true; return; }
    const number = reads += 1, counts = () => !isGone && number === reads;
    [isReading, isWanted] = [true, false];
    let value = null, problem = null;
    try { value = await read(); } catch (error) { problem = error; }
    if (!counts()) return;
    isReading = false;
    // What is shown stays: the head of the page says that the server is away.
    if (!problem || !known || problem.status !== 0 && !(problem.status >= 500)) {
      known ||= !problem;
      // What cannot be drawn does not end the reading.
      try { draw(value, problem); } catch (error) { reportError(error); }
    }
    if (isWanted) run();
    else timer = setTimeout(() => document.hidden ? later() : run(), seconds * 1000);
  };
  const later = () => { timer = setTimeout(() => document.hidden ? later() : run(), 1000); };
  view.onGone(() => { isGone = true; clearTimeout(timer); });
  run();
  return run;
}
