// Elements, and how new ones are merged into those that are shown: what has focus, a selection or the pointer stays.

const SVG = "http://www.w3.org/2000/svg";

// What the page gives a field, and somebody may change: attributes tell only how it began.
const GIVEN = ["value", "checked", "indeterminate"];

/// `h("a", {class: "x", onclick: f, href: "…"}, children…)`. False and absent attributes are left out.
export function h(name, attributes, ...children) {
  const node = document.createElement(name);
  return build(node, attributes, children);
}

export function svg(name, attributes, ...children) {
  return build(document.createElementNS(SVG, name), attributes, children);
}

function build(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null) continue;
    // That a box is not checked must be told as well.
    if (GIVEN.includes(key) && key in node) { node[key] = value; node[`$${key}`] = value; }
    else if (value === false) continue;
    else if (key.startsWith("on")) listen(node, key.slice(2), value);
    else if (key === "css") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else node.setAttribute(key, value === true ? "" : value);
    if (key === "open") node.$open = true;
  }
  append(node, children);
  if (node.nodeName === "SELECT") node.$value = node.value;
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    Array.isArray(child) ? append(node, child) : node.append(child);
  }
}

// One listener for each type of event looks up the present function, so that merging can replace it.
function listen(node, type, run) {
  node.$on ??= {};
  if (!(type in node.$on)) node.addEventListener(type, (event) => node.$on[type]?.(event));
  node.$on[type] = run;
}

export function text(node, value) {
  const next = String(value ?? "");
  if (node.textContent !== next) node.textContent = next;
}

/// Shows `children` in `parent`, and keeps the nodes that are alike. Nodes with `data-key` are found again when they move.
export function show(parent, ...children) {
  const fragment = document.createDocumentFragment(), focused = document.activeElement;
  append(fragment, children);
  mergeChildren(parent, fragment);
  // A node that moves loses the focus.
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

function mergeChildren(old, next) {
  const keyed = new Map();
  for (const node of old.childNodes) if (node.dataset?.key) keyed.set(node.dataset.key, node);
  let at = old.firstChild;
  for (const node of [...next.childNodes]) {
    const known = node.dataset?.key ? keyed.get(node.dataset.key) : at && !at.dataset?.key ? at : null;
    if (known && isAlike(known, node)) {
      // Of two with one key, each has a node of its own.
      keyed.delete(node.dataset?.key);
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      merge(known, node);
    } else {
      old.insertBefore(node, at);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function isAlike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && a.type === b.type && (a.dataset?.key ?? "") === (b.dataset?.key ?? "");
}

function merge(old, next) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  // What the pointer has made of it stays.
  if (old.dataset?.own !== undefined) return;
  // Whether it is open is the reader's choice, but the page may open it.
  const isOwn = (name) => name === "open" || name === "style";
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && !isOwn(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) {
    if (!isOwn(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style && old.style.cssText !== next.style.cssText) old.style.cssText = next.style.cssText;
  for (const [type, run] of Object.entries(next.$on ?? {})) listen(old, type, run);
  for (const type of Object.keys(old.$on ?? {})) if (!next.$on?.[type]) old.$on[type] = null;
  if (next.$open && !old.$open) old.open = true;
  old.$open = next.$open;
  // A select has its value only once it has its options.
  if (old.nodeName !== "TEXTAREA") mergeChildren(old, next);
  // What somebody types or chooses stays until the page gives something else. A box is as the page gives it.
  for (const name of GIVEN) {
    const given = next[`$${name}`];
    if (given === undefined || given === (name === "value" ? old.$value : old[name])) continue;
    old[name] = given;
    old[`$${name}`] = given;
  }
}

// MARK: Icons, on a grid of 16 by 16

const PATHS = {
  running: "M5 3.5v9l7.5-4.5z", publishing: "M8 12.5v-9M4.5 7 8 3.5 11.5 7M3.5 13.5h9", queued: "M8 4.5V8l2.3 1.6M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z",
  blocked: "M6.5 9.5 9.5 6.5M7 5l1.5-1.5a2.5 2.5 0 0 1 3.6 3.6L10.8 8.6M9 11l-1.5 1.5a2.5 2.5 0 0 1-3.6-3.6L5.2 7.4", paused: "M5.5 4v8M10.5 4v8",
  failed: "M8 4.8v4M8 11.2v.1M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z", canceled: "M3.8 3.8l8.4 8.4M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z", succeeded: "M3.5 8.5 6.5 11.5 12.5 5",
  overview: "M2.5 9.5h3l2-6 2.5 9 1.5-3h2", tasks: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.1M2.5 8h.1M2.5 12h.1", workers: "M3 3h10v4H3zM3 9h10v4H3zM5.5 5h.1M5.5 11h.1",
  queues: "M3 4.5h10M3 8h7M3 11.5h4", hosts: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM2 8h12M8 2c2 1.8 2.6 3.8 2.6 6S10 12.2 8 14c-2-1.8-2.6-3.8-2.6-6S6 3.8 8 2z",
  storages: "M13 4c0 1.1-2.2 2-5 2S3 5.1 3 4s2.2-2 5-2 5 .9 5 2zM3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  "dead-letters": "M2.5 4h11v8h-11zM2.5 4.5 8 8.5l5.5-4", operations: "M2.5 5.5 4 7l2.5-3M2.5 11.5 4 13l2.5-3M9 5.5h4.5M9 11.5h4.5",
  search: "M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.3 10.3 14 14", plus: "M8 3v10M3 8h10", close: "M4 4l8 8M12 4l-8 8", menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  dark: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z", light: "M10.8 8a2.8 2.8 0 1 1-5.6 0 2.8 2.8 0 0 1 5.6 0zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  auto: "M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0zM8 2v12", next: "M6 3.5 10.5 8 6 12.5", up: "M8 13V3M3.5 7.5 8 3l4.5 4.5", copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1", columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  star: "M8 2.3l1.8 3.6 4 .6-2.9 2.8.7 4L8 11.4l-3.6 1.9.7-4L2.2 6.5l4-.6z", out: "M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6", drain: "M8 2v7M4.5 6 8 9.5 11.5 6M3 13h10",
};
const STATUS_ICONS = { scheduled: "queued", retrying: "queued", live: "running", draining: "drain", expired: "canceled" };

export function icon(name) {
  const path = PATHS[STATUS_ICONS[name] ?? name] ?? PATHS.queued;
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: path }));
}

/// A state as a sign and a word, because colour alone tells nothing to some.
export function badge(state) {
  return h("span", { class: `badge is-${state}` }, icon(state), h("span", {}, state));
}
