// What can be done with tasks: one by its route, many by an operation, which says before how many it will touch.
import { can, get, key, post } from "./api.js";
import { h, show } from "./dom.js";
import { number, plural, title } from "./format.js";
import { ask, bar, confirm, dialog, toast, told } from "./ui.js";

/// The states that allow each command, as the fleet has them.
export const ACTIONS = {
  pause: { words: "Pause", done: "paused", states: ["blocked", "queued", "running"] },
  resume: { words: "Resume", done: "resumed", states: ["paused"] },
  retry: { words: "Retry", done: "retried", states: ["failed", "canceled"] },
  prioritize: { words: "Prioritize…", done: "prioritized", states: ["blocked", "queued", "running", "paused"] },
  cancel: { words: "Cancel", done: "canceled", isBad: true, states: ["blocked", "queued", "running", "paused"] },
  remove: { words: "Remove…", done: "removed", isBad: true, states: ["succeeded", "failed", "canceled", "paused", "queued", "blocked"] },
};

/// Its word where no question follows.
export const verb = (name) => ACTIONS[name].words.replace("…", "");

export const allowed = (task) => can("write") ? Object.keys(ACTIONS).filter((name) => ACTIONS[name].states.includes(task.state)) : [];

const filesChoice = () => h("label", { class: "check" }, h("input", { type: "checkbox", name: "files" }), h("span", {}, "also delete the files that they made in storages"));

async function details(name, what) {
  if (name === "prioritize") {
    const value = await ask(`Priority of ${what}`, h("input", { type: "number", min: "-1000", max: "1000", value: "0", required: true, autofocus: true }), "Set", "From −1000 to 1000; higher runs first");
    return value === null ? null : { priority: Number(value) };
  }
  return {};
}

/// One task. Returns whether the command was sent.
export async function act(task, name) {
  const body = await details(name, title(task));
  if (!body) return false;
  if (ACTIONS[name].isBad) {
    const files = name === "remove" && task.state === "succeeded" ? filesChoice() : null;
    const words = name === "cancel" ? "It stops, and what it has fetched is deleted. It can be retried from the start." : "Its record and its history go. This cannot be undone.";
    if (!await confirm(`${verb(name)} ${title(task)}?`, h("div", {}, h("p", {}, words), files), name === "cancel" ? "Cancel the task" : "Remove the task", { isBad: true })) return false;
    if (files?.querySelector("input").checked) body.files = true;
  }
  try {
    const told = await command(task.id, name, body);
    toast(`${title(task)}: ${told.outcome === "applied" ? ACTIONS[name].done : `${name} was sent, and is applied once a worker has read it`}.`);
    return true;
  } catch (problem) {
    told(problem);
    return false;
  }
}

async function command(id, name, body) {
  const path = `v1/tasks/${encodeURIComponent(id)}/actions/${name}?wait=applied&timeout=5`;
  const headers = { "Idempotency-Key": key() };
  return post(path, body, { headers });
}

/// Many tasks: `target` is `{filter}` or `{ids}`, `words` says which they are. Returns the operation's id, or null.
export async function actOnMany(name, target, words) {
  const body = await details(name, words);
  if (!body) return null;
  const wanted = { action: name, ...target, ...body };
  return new Promise((resolve) => {
    let id = null, sent = null;
    const box = h("div", {}, h("p", { class: "quiet" }, "Looking which tasks match…"));
    const files = name === "remove" ? filesChoice() : null;
    const node = dialog(`${ACTIONS[name].words} many tasks`, () => [h("h2", {}, `${verb(name)} ${words}?`), box], { onclose: async () => { await sent; resolve(id); } });
    const draw = (content, yes) => show(box, content, h("menu", {}, h("button", { type: "button", onclick: () => node.close() }, yes ? "Back" : "Close"), yes));
    const send = async (found) => {
      if (files?.querySelector("input").checked) wanted.files = true;
      // Tasks that came while the dialog was open were not told of.
      if (wanted.filter && found.at && !(Date.parse(wanted.filter.before) < Date.parse(found.at))) wanted.filter = { ...wanted.filter, before: found.at };
      draw(h("p", { class: "quiet" }, "Sending…"));
      // Who closes the dialog meanwhile takes nothing back, and is told what became of it.
      try {
        id = (await post("v1/operations", wanted, { headers: { "Idempotency-Key": key() } })).id;
        if (node.isConnected) follow(id, box, node);
        else toast(`${verb(name)} ${words}: the operation has begun.`, { link: { href: `?view=operations&id=${encodeURIComponent(id)}`, words: "Details" } });
      } catch (problem) {
        if (node.isConnected) draw(h("p", { class: "is-error" }, problem.message));
        else told(problem);
      }
    };
    post("v1/operations?dry_run=true", wanted).then((found) => {
      const count = plural(found.count, "task") + (found.isAtLeast ? " or more" : "");
      const start = h("button", {
        type: "button", class: ACTIONS[name].isBad ? "bad" : "main", autofocus: true, disabled: found.count === 0, onclick: () => { sent ??= send(found); },
      }, `${verb(name)} ${count}`);
      draw([
        h("p", {}, found.count ? `This touches ${count} that ${found.count === 1 ? "is" : "are"} there now. Tasks that are submitted later are not touched.` : "No task matches any more."),
        found.impossible ? h("p", { class: "quiet" }, `${plural(found.impossible, "other")} also match, but their state does not allow it.`) : null,
        found.examples?.length ? [h("p", { class: "quiet" }, found.count > found.examples.length ? "For example:" : "These are:"), h("ul", { class: "plain-list" }, found.examples.slice(0, 6).map((task) => h("li", {}, h("span", {}, title(task)), h("span", { class: "quiet" }, task.status ?? task.state))))] : null,
        ACTIONS[name].isBad && found.count ? h("p", { class: "is-warning" }, name === "cancel" ? "What they have fetched is deleted. They can be retried from the start." : "Their records and histories go. This cannot be undone.") : null,
        found.count ? files : null,
      ], start);
    }).catch((problem) => draw(h("p", { class: "is-error" }, problem.isMissing ? "This server has no operations on many tasks." : problem.message)));
  });
}

/// Shows what becomes of an operation, until it has ended or the dialog is closed.
async function follow(id, box, node) {
  let problems = 0;
  while (node.isConnected) {
    try {
      const operation = await get(`v1/operations/${encodeURIComponent(id)}`);
      problems = 0;
      const isEnd = operation.state !== "running";
      show(box, progress(operation), h("menu", {}, h("a", { class: "button", href: `?view=operations&id=${encodeURIComponent(id)}`, onclick: () => node.close() }, "Details"), h("button", { type: "button", class: "main", onclick: () => node.close() }, isEnd ? "Done" : "Go on in the background")));
      if (isEnd) return;
    } catch {
      if ((problems += 1) > 20) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

export function progress(operation) {
  const done = (operation.applied ?? 0) + (operation.refused ?? 0);
  const share = operation.state === "done" ? 100 : operation.matched ? Math.min(100, 100 * done / operation.matched) : 0;
  const refusals = Object.entries(operation.refusals ?? {});
  return h("div", { class: "operation" },
    bar(share, { state: operation.state === "done" ? "succeeded" : operation.state === "running" ? "running" : "canceled", label: "Progress of the operation" }),
    h("dl", { class: "figures" }, [["matched", operation.matched], ["sent", operation.sent], ["applied", operation.applied], ["refused", operation.refused]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, number(value ?? 0))))),
    operation.waitsFor ? h("p", { class: "quiet" }, "It begins once an older operation has ended, which may touch the same tasks: ", h("a", { href: `?view=operations&id=${encodeURIComponent(operation.waitsFor.id)}` }, `${operation.waitsFor.action} ${operation.waitsFor.id.slice(-12)}`), ".") : null,
    refusals.length ? h("p", { class: "quiet" }, `Refused: ${refusals.map(([code, count]) => `${number(count)} ${code}`).join(", ")}. Their state does not allow the command.`) : null,
    operation.error ? h("p", { class: "is-error" }, operation.error) : null);
}
