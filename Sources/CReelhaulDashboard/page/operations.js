// Operations on many tasks: what they were to do, and what became of them.
import { can, get, post } from "./api.js";
import { h, icon, show } from "./dom.js";
import { ago, duration, number, stringify } from "./format.js";
import { live } from "./live.js";
import { href, param, tasksHref } from "./route.js";
import { progress } from "./actions.js";
import { bar, confirm, empty, failure, head, loading, poll, table, toast, told } from "./ui.js";

const STATE = { running: "running", done: "succeeded", failed: "failed", canceled: "canceled" };

export function open(_, view) {
  let list = null, one = null, problem = null;
  const id = () => param("id");
  live.follow("state=running&limit=1");
  const draw = () => show(view.root, id() ? single() : all());
  const again = poll(view, 1, () => id() ? get(`v1/operations/${encodeURIComponent(id())}`) : get("v1/operations"), (value, error) => {
    // Of the operation that was open before.
    if (value?.id && value.id.toLowerCase() !== id().toLowerCase()) return;
    problem = error;
    if (value) value.operations ? list = value.operations : one = value;
    draw();
  });
  view.update = () => { one = problem = null; draw(); again({ anew: true }); };
  const onNews = () => again();
  live.addEventListener("operations", onNews);
  view.onGone(() => live.removeEventListener("operations", onNews));
  draw();

  function all() {
    return [head("Operations", "Commands for many tasks at once, the newest first."), problem && !list ? failure(problem, again) : !list ? loading() : list.length ? h("section", { class: "panel flush" }, table("Operations", [
      { name: "Operation", cell: (item) => h("div", { class: "two" }, h("a", { href: href({ view: "operations", id: item.id }) }, item.action), h("small", {}, filterWords(item))) },
      { name: "State", width: "7.2rem", cell: (item) => state(item) },
      { name: "Progress", width: "9rem", cell: (item) => bar(item.state === "done" ? 100 : item.matched ? 100 * ((item.applied ?? 0) + (item.refused ?? 0)) / item.matched : 0, { state: STATE[item.state] }) },
      { name: "Matched", width: "6rem", is: "num", cell: (item) => number(item.matched ?? 0) }, { name: "Applied", width: "6rem", is: "num", cell: (item) => number(item.applied ?? 0) }, { name: "Refused", width: "6rem", is: "num", cell: (item) => number(item.refused ?? 0) },
      { name: "By", width: "8rem", cell: (item) => item.actor ?? "–" }, { name: "When", width: "7.5rem", cell: (item) => ago(item.createdAt) },
    ], list, (item) => item.id)) : empty("There were no operations yet.", h("p", { class: "quiet" }, "Select tasks in ", h("a", { href: tasksHref() }, "the list"), ", or all that match, and choose what to do with them."))];
  }

  function state(item) {
    const its = item.waitsFor ? "queued" : STATE[item.state];
    return h("span", { class: `badge is-${its}` }, icon(its), h("span", {}, item.waitsFor ? "waiting" : item.state));
  }

  function filterWords(item) {
    const words = Object.entries(item.filter ?? {}).filter(([, value]) => value !== null && (!Array.isArray(value) || value.length)).map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(", ") : value}`);
    return words.length ? words.join("; ") : item.filter ? "all tasks" : "tasks named one by one";
  }

  function single() {
    const back = h("p", { class: "crumbs", "data-key": "crumbs" }, h("a", { href: href({ view: "operations" }) }, "Operations"), icon("next"), h("span", {}, id().slice(-12)));
    if (!one) return [back, h("h1", { class: "sr", tabindex: "-1" }, "Operation"), problem ? problem.status === 404 ? empty("There is no such operation.") : failure(problem, again) : loading()];
    const link = one.filter ? tasksHref(Object.fromEntries(Object.entries(one.filter).map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : value]))) : null;
    return [back, head(`${one.action[0].toUpperCase()}${one.action.slice(1)}: ${filterWords(one)}`, null, link ? h("a", { class: "button", href: link }, "Tasks that match now") : null, can("write") && one.state === "running" ? h("button", { type: "button", class: "bad-line", onclick: stop }, "Stop it") : null),
      h("section", { class: "panel" }, h("div", { class: "line" }, state(one), h("span", { class: "quiet" }, `${one.actor ? `by ${one.actor}, ` : ""}begun ${ago(one.createdAt)}${one.finishedAt ? `, took ${duration((Date.parse(one.finishedAt) - Date.parse(one.createdAt)) / 1000)}` : ""}`)), progress(one)),
      one.filter ? h("section", { class: "panel" }, h("div", { class: "bar" }, h("h2", {}, "What it matched")), h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": "Filter" }, stringify(one.filter, "  ")))) : null];
  }

  async function stop() {
    // The page may show another one when somebody agrees.
    const its = id();
    if (!await confirm("Stop this operation?", h("p", {}, "Commands that were sent take effect. No more are sent."), "Stop it", { isBad: true })) return;
    try {
      await post(`v1/operations/${encodeURIComponent(its)}/cancel`);
      toast("The operation stops.");
      again();
    } catch (error) { told(error); }
  }
}
