// What failed, grouped by code and host; and commands that could not be applied.
import { can, get, post } from "./api.js";
import { h, icon, show } from "./dom.js";
import { ago, number, plural, time, where } from "./format.js";
import { live } from "./live.js";
import { change as changeRoute, href, param, taskHref, tasksHref } from "./route.js";
import { actOnMany } from "./actions.js";
import { confirm, copy, dialog, empty, failure, field, head, loading, poll, toast, told } from "./ui.js";

export function open(name, view) {
  live.follow("state=running&limit=1");
  name === "failures" ? failures(view) : deadLetters(view);
}

function failures(view) {
  let groups = null, problem = null;
  const queue = () => param("queue");
  const draw = () => show(view.root,
    head("Failures", "Failed tasks by error, the newest first.", h("input", { name: "queue", placeholder: "Queue", "aria-label": "Queue", value: queue(), onchange: (event) => changeRoute({ view: "failures", queue: event.target.value.trim() }) })),
    problem && !groups ? failure(problem, again) : !groups ? loading() : groups.length ? h("ul", { class: "groups" }, groups.map((group) => {
      const filter = { state: "failed", code: group.code, host: group.host, queue: queue() };
      return h("li", { class: "panel", "data-key": group.code },
        h("div", { class: "bar" }, h("h2", {}, h("b", { class: "count is-failed" }, number(group.count, group.isAtLeast)), " ", h("code", {}, group.code), h("span", { class: "quiet" }, where(group))), h("span", { class: "quiet" }, ago(group.newestAt))),
        h("p", { class: "break" }, group.message), group.advice ? h("p", { class: "reason" }, h("b", {}, "What to do "), group.advice) : null,
        group.hostCount > 1 ? h("details", { class: "hosts" }, h("summary", {}, plural(group.hostCount, "host")), h("ul", {}, group.hosts.map((one) => h("li", {}, h("a", { href: tasksHref({ ...filter, host: one.host }) }, one.host), " ", h("b", { class: "num" }, number(one.count))))), group.hostCount > group.hosts.length ? h("p", { class: "quiet" }, `The ${number(group.hosts.length)} with the most of these tasks are shown.`) : null) : null,
        h("p", { class: "tools" }, h("a", { class: "button", href: tasksHref(filter) }, "These tasks"), group.taskId ? h("a", { class: "button", href: taskHref(group.taskId) }, "The newest") : null,
          can("write") ? h("button", { type: "button", onclick: async () => { if (await actOnMany("retry", { filter: { state: ["failed"], code: [group.code], ...(group.host ? { host: [group.host] } : {}), ...(queue() ? { queue: [queue()] } : {}) } }, `all tasks that failed with ${group.code}${group.host ? where(group) : ""}`)) again(); } }, "Retry them…") : null));
    })) : empty("Nothing failed."));
  const again = poll(view, 5, () => get(`v1/failures${href({ by: "code", queue: queue() })}`), (value, error) => { [groups, problem] = [value?.failures ?? groups, error]; draw(); });
  view.update = () => { groups = null; draw(); again({ anew: true }); };
  draw();
}

function deadLetters(view) {
  let letters = null, next = null, problem = null, isLonger = false, isReading = false, isGone = false;
  view.onGone(() => { isGone = true; });
  const merge = (page) => {
    const known = new Map((letters ?? []).map((one) => [one.id, one]));
    // After more pages were read, only the first is read again.
    const first = new Set(page.deadLetters.map((one) => one.id)), last = page.deadLetters.at(-1);
    // More came than a page has: what lies between was not read, so the older ones are read anew.
    if (last && !page.deadLetters.some((one) => known.get(one.id)?.at === one.at)) isLonger = false;
    const rest = isLonger && page.hasMore ? (letters ?? []).filter((one) => !first.has(one.id) && (!last || one.at <= last.at)) : [];
    // A topic that was made anew has other letters in the same places.
    letters = [...page.deadLetters.map((one) => known.get(one.id)?.at === one.at ? known.get(one.id) : one), ...rest];
    if (!isLonger || !page.hasMore) next = page.next;
  };
  const draw = () => show(view.root, head("Dead letters", "Commands that could not be understood or applied, as they came."),
    problem && !letters ? failure(problem, again) : !letters ? loading() : letters.length || next ? [
      h("ul", { class: "groups" }, letters.map((one) => h("li", { class: "panel", "data-key": one.id },
        h("div", { class: "bar" }, h("h2", {}, h("code", {}, one.code)), h("span", { class: "quiet" }, `${one.topic} ${one.partition}:${one.offset}, ${time(one.at, true)}`)),
        h("p", { class: "break" }, one.reason),
        h("details", {}, h("summary", {}, "The record"), h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": "The record" }, one.text ?? ""), h("button", { type: "button", onclick: () => copy(one.text ?? "") }, icon("copy"), "Copy")), one.isCut ? h("p", { class: "quiet" }, "Only its beginning is shown.") : null),
        h("p", { class: "tools" }, one.taskId ? h("a", { class: "button", href: taskHref(one.taskId) }, "Its task") : null, can("admin") ? [h("button", { type: "button", onclick: () => replay(one) }, "Replay…"), h("button", { type: "button", class: "bad-line", onclick: () => drop(one) }, "Drop")] : null)))),
      next ? h("p", {}, letters.length ? null : h("span", { class: "quiet" }, "The newest ones were all replayed or dropped. "), h("button", { type: "button", disabled: isReading, onclick: more }, isReading ? "Reading…" : "Read older ones")) : h("p", { class: "quiet" }, plural(letters.length, "dead letter")),
    ] : empty("There are no dead letters.", "Commands that cannot be understood or applied would be here."));
  const again = poll(view, 5, () => get("v1/dead-letters?limit=50"), (value, error) => { if (value) merge(value); problem = error; draw(); });
  draw();

  async function more() {
    isReading = true;
    draw();
    try {
      // The server looks at a bounded number of records for each page: where nearly all were dropped, it may have none.
      for (let isFound = false; !isFound && next && !isGone;) {
        const page = await get(`v1/dead-letters?limit=50&cursor=${encodeURIComponent(next)}`);
        isLonger = true;
        isFound = page.deadLetters.length > 0;
        letters.push(...page.deadLetters.filter((one) => !letters.some((other) => other.id === one.id)));
        next = page.next;
      }
    } catch (error) { told(error); }
    isReading = false;
    draw();
  }

  async function replay(one) {
    // A list has only the beginning of long ones.
    if (one.isCut) {
      try { one = await get(`v1/dead-letters/${encodeURIComponent(one.id)}`); } catch (error) { told(error); return; }
    }
    const area = h("textarea", { rows: "10", spellcheck: "false", value: one.isCut ? "" : one.text ?? "" });
    const words = h("p", { class: "is-error", role: "alert" });
    dialog("Replay a dead letter", (node) => [
      h("h2", {}, "Replay this command"), h("p", { class: "quiet" }, "It is sent again as a command. Correct it first if it was wrong."),
      field("The command", area, one.isCut ? "The topic has only its beginning: give the whole command." : null), words,
      h("menu", {}, h("button", { type: "button", onclick: () => node.close() }, "Back"), h("button", { type: "button", class: "main", onclick: async () => {
        if (one.isCut && !area.value.trim()) { words.textContent = "Give the whole command."; return; }
        try {
          const isSame = area.value === (one.text ?? "") || !area.value.trim();
          await post(`v1/dead-letters/${encodeURIComponent(one.id)}/actions/replay`, isSame ? "{}" : area.value);
          toast("Replayed.");
          gone(one);
          node.close();
        } catch (error) { words.textContent = error.message; }
      } }, "Replay")),
    ], { wide: true });
  }

  function gone(one) {
    letters = letters.filter((other) => other.id !== one.id);
    draw();
    again({ anew: true });
  }

  async function drop(one) {
    if (!await confirm("Drop this dead letter?", h("p", {}, "It is no longer listed. The record stays in its topic for as long as Kafka keeps it."), "Drop it", { isBad: true })) return;
    try {
      await post(`v1/dead-letters/${encodeURIComponent(one.id)}/actions/drop`);
      gone(one);
      toast("Dropped.");
    } catch (error) { told(error); }
  }
}
