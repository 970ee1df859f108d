// The address is what is shown: every narrowing is a query, and "back" leads to what was there before.

let follow = () => {};
export const onRoute = (run) => { follow = run; };

export const query = () => new URLSearchParams(location.search);
export const param = (name) => query().get(name) ?? "";

/// The id of the task that the address names, or null.
export const taskId = () => param("id") || param("task") || null;

/// The view that the address names. Where it names no task, the list has all.
export function view() {
  const q = query();
  if (q.get("view") === "task" && !taskId()) return "tasks";
  return q.get("view") ?? (q.get("task") ? "task" : [...q.keys()].some((name) => FILTERS.includes(name)) ? "tasks" : "overview");
}

/// What narrows a list of tasks.
export const FILTERS = ["state", "queue", "kind", "host", "code", "label", "text", "after", "before"];

export function href(values) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== null && value !== "") q.set(name, value);
  const text = q.toString().replaceAll("%2C", ",");
  return text ? `?${text}` : "./";
}

export const tasksHref = (filter = {}) => href({ view: "tasks", ...filter });
export const taskHref = (id) => href({ view: "task", id });

/// The views that somebody keeps in this browser: `name`, and `query`, its address.
export function saved() {
  try { return JSON.parse(localStorage.getItem("reelhaul.views") ?? "[]"); } catch { return []; }
}

// How many addresses of this page are behind this one. The browser keeps it with the address.
let depth = history.state?.depth ?? 0;

/// Whether "back" stays in this page.
export const hasPast = () => depth > 0;

export function go(target, { replace = false } = {}) {
  if (!replace) depth += 1;
  const url = target === "./" ? location.pathname : target;
  if (replace) history.replaceState(history.state, "", url);
  else history.pushState({ depth }, "", url);
  follow({ isReplaced: replace });
}

/// Changes some of the query's fields; empty ones go.
export function change(values, options) {
  const q = Object.fromEntries(query());
  go(href({ ...q, ...values }), options);
}

addEventListener("popstate", () => { depth = history.state?.depth ?? 0; follow({ isBack: true }); });
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const target = link.getAttribute("href");
  if (!target.startsWith("?") && target !== "./") return;
  event.preventDefault();
  go(target);
});
