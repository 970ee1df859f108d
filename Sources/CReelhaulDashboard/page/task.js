// The whole life of one task: how far it is, which bytes are there, what happened, and what can be done now.
import { can, get, seesAll } from "./api.js";
import { badge, h, icon, show, svg } from "./dom.js";
import { ago, attempts, bytes, duration, host, number, percent, plural, rate, stringify, time, title, until } from "./format.js";
import { live } from "./live.js";
import { commandLine, hidden, submission, unsaid } from "./command.js";
import { href, taskHref, taskId, tasksHref } from "./route.js";
import { ACTIONS, act, allowed } from "./actions.js";
import { bar, copy, empty, failure, loading, panel, poll } from "./ui.js";

const EVENT_ICONS = { submitted: "plus", started: "running", unblocked: "next", retrying: "queued", released: "drain", resumed: "running", prioritized: "up", removed: "close", lost: "failed" };

export function open(_, view) {
  let id = null, task = null, problem = null, history = null, historyProblem = null, cells = null, busy = null, readTask, readHistory, seen = null;
  const draw = () => {
    const isActing = view.root.querySelector(".head .tools")?.contains(document.activeElement);
    show(view.root, page());
    // Whoever acted by the keyboard goes on from the actions that are possible now.
    if (isActing && document.activeElement === document.body) (view.root.querySelector(".head .tools > *") ?? view.root.querySelector("h1")).focus({ preventScroll: true });
  };

  const start = () => {
    id = taskId();
    task = problem = history = cells = seen = null;
    draw();
  };
  start();
  live.follow("state=running&limit=1");
  readTask = poll(view, 1, () => get(`v1/tasks/${encodeURIComponent(id)}`), (value, error) => {
    if (value && value.id.toLowerCase() !== id?.toLowerCase()) return;
    [task, problem] = [value ?? task, error];
    if (error?.status === 404) task = null;
    const next = task && `${task.sequence} ${task.state} ${task.attempt}`;
    if (next !== seen) { seen = next; readHistory?.(); }
    document.title = task ? `${title(task)} · Reelhaul` : "Reelhaul";
    draw();
  });
  readHistory = poll(view, 10, async () => ({ of: id, ...await get(`v1/tasks/${encodeURIComponent(id)}/history`) }), (value, error) => {
    // Of the task that was open before.
    if (value && value.of !== id) return void setTimeout(readHistory);
    [history, historyProblem] = [value?.history ?? history, error];
    draw();
  });
  view.update = () => { if (taskId() !== id) { start(); readTask({ anew: true }); readHistory({ anew: true }); } };
  // The map fits its cells to its width.
  const onResize = () => draw();
  addEventListener("resize", onResize);
  view.onGone(() => removeEventListener("resize", onResize));

  function page() {
    const back = h("p", { class: "crumbs", "data-key": "crumbs" }, h("a", { href: tasksHref() }, "Tasks"), icon("next"), h("span", {}, id?.slice(-12)));
    if (!task) return [back, h("h1", { tabindex: "-1", class: "sr" }, "Task"), problem ? problem.status === 404 ? empty("There is no such task.", `No task has the id ${id}. It may have been removed.`) : failure(problem, readTask) : loading()];
    const status = task.status ?? task.state;
    return [
      back,
      h("div", { class: "head", "data-key": "head" }, h("div", {}, h("h1", { tabindex: "-1" }, title(task)), h("p", { class: "quiet break" }, task.source, task.destination ? ` → ${task.destination}` : "")), h("div", { class: "tools" }, actions())),
      h("section", { class: `panel now is-${task.state}`, "aria-label": "Now", "data-key": "now" },
        h("div", { class: "line" }, badge(status), sentence(), h("span", { class: "grow" }), task.state === "running" ? [figure(task.rate === null ? "" : rate(task.rate), "rate"), figure(task.eta === null || task.eta === undefined ? "" : duration(task.eta), "left")] : null),
        h("div", { class: "amount" }, h("b", {}, percent(task) === null ? bytes(task.bytesDone) : `${percent(task)} %`), bar(percent(task), { state: task.state }), h("span", { class: "num" }, task.bytesTotal === null ? "size unknown" : `${bytes(task.bytesDone)} of ${bytes(task.bytesTotal)}`)),
        map(),
        task.waits ? h("p", { class: "reason" }, h("b", {}, "Waits "), task.waits) : null,
        task.error && task.state !== "succeeded" ? h("p", { class: `reason ${task.state === "failed" ? "is-failed" : ""}` }, h("b", {}, h("a", { href: href({ view: "failures" }) }, h("code", {}, task.error.code)), " "), task.error.message) : null,
        task.advice ? h("p", { class: "reason" }, h("b", {}, "What to do "), task.advice) : null),
      h("div", { class: "columns", "data-key": "columns" }, life(), facts()),
      again(),
      json("Output", task.output), json("Parameters", task.parameters),
    ];
  }

  function figure(value, name) { return h("span", { class: "big-num" }, h("b", {}, value || "\u2013"), h("small", {}, name)); }

  function sentence() {
    const status = task.status ?? task.state;
    if (task.state === "running") return h("span", { class: "quiet" }, `attempt ${attempts(task)}, since ${ago(task.startedAt).replace(" ago", "")}`);
    if (status === "scheduled" || status === "retrying") return h("span", { class: "quiet" }, `runs ${until(task.runAt)}`);
    if (task.finishedAt) return h("span", { class: "quiet" }, `${time(task.finishedAt)}, ${ago(task.finishedAt)}${task.startedAt ? `, took ${duration(Math.max(0, (Date.parse(task.finishedAt) - Date.parse(task.startedAt)) / 1000))}` : ""}`);
    return h("span", { class: "quiet" }, `created ${ago(task.createdAt)}`);
  }

  function actions() {
    const names = allowed(task);
    return [
      ...names.map((name, index) => h("button", { type: "button", "data-key": name, "data-action": name, class: ACTIONS[name].isBad ? "bad-line" : index === 0 ? "main" : null, "aria-disabled": busy === name ? "true" : null, onclick: async () => {
        // A button that is disabled loses the focus.
        if (busy === name) return;
        busy = name;
        draw();
        const isSent = await act(task, name);
        busy = null;
        if (isSent) readTask();
        draw();
      } }, ACTIONS[name].words)),
      can("write") ? h("a", { class: "button", "data-key": "again", href: href({ view: "submit", from: task.id }) }, icon("copy"), "Run a copy") : null,
    ];
  }

  // MARK: The map

  /// Cells of equal size; each is as full as its bytes are safely there.
  function map() {
    const parts = task.parts, whole = task.bytesTotal;
    if (!whole) return null;
    const isDone = task.state === "succeeded";
    const ranges = isDone ? [[0, whole]] : task.ranges ?? [[0, task.bytesDone]];
    const width = Math.max(240, (view.root.querySelector(".map")?.clientWidth || view.root.clientWidth || 800)), across = Math.floor(width / 14);
    const most = across * 6, count = parts ? Math.min(parts.count, most) : Math.max(1, Math.min(most, Math.ceil(whole / (256 * 1024))));
    const shares = new Float64Array(count);
    // A cell is a part, or as many as fit.
    const size = parts?.count === count ? parts.size : whole / count;
    for (const [from, to] of ranges) for (let cell = Math.floor(from / size); cell < Math.min(count, Math.ceil(to / size)); cell += 1) shares[cell] += Math.max(0, Math.min(to, (cell + 1) * size) - Math.max(from, cell * size)) / Math.min(size, whole - cell * size);
    const lines = Math.ceil(count / across), side = width / across;
    const fresh = cells?.length === count ? cells : shares;
    const drawn = svg("svg", { class: "map", width: "100%", height: lines * side, viewBox: `0 0 ${width} ${lines * side}`, role: "img", "aria-label": words(ranges, parts) },
      Array.from(shares, (share, cell) => {
        const box = { x: (cell % across * side + 1).toFixed(2), y: (Math.floor(cell / across) * side + 1).toFixed(2), width: (side - 2).toFixed(2), height: (side - 2).toFixed(2), rx: 2 };
        return svg("g", { class: share > fresh[cell] + 0.01 ? "is-new" : null }, svg("rect", { ...box, class: "ground" }), share > 0 ? svg("rect", { ...box, class: "full", "fill-opacity": share >= 0.999 ? 1 : (0.2 + 0.6 * share).toFixed(2) }) : null);
      }));
    cells = shares;
    return h("figure", { class: "map-place" }, drawn, h("figcaption", { class: "quiet" }, words(ranges, parts), parts ? "" : count > 1 ? `; a cell is ${bytes(whole / count)}` : ""));
  }

  function words(ranges, parts) {
    if (task.state === "succeeded") return "All bytes are there and verified";
    if (parts) return `${number(parts.done)} of ${plural(parts.count, "part")} of ${bytes(parts.size)} are at the destination`;
    const sum = ranges.reduce((total, [from, to]) => total + to - from, 0);
    if (!sum) return "Nothing is on disk yet";
    return `${bytes(sum)} ${task.ranges ? "are safely on disk" : "were moved"} in ${plural(ranges.length, "range")}`;
  }

  // MARK: The life

  function life() {
    const events = history ?? plain();
    return panel("Life", null,
      historyProblem && !historyProblem.isMissing && !history ? failure(historyProblem, readHistory) : null,
      h("ol", { class: "life" }, events.map((event, index) => {
        const before = events[index - 1], gap = before ? Math.max(0, (Date.parse(event.at) - Date.parse(before.at)) / 1000) : null;
        return h("li", { class: `is-${event.type}`, "data-key": `${event.sequence ?? ""} ${event.type} ${event.at}` }, icon(EVENT_ICONS[event.type] ?? event.type),
          h("div", {}, h("p", {}, h("b", {}, event.type), event.attempt ? h("span", { class: "quiet" }, ` attempt ${event.attempt}`) : null, event.worker ? [" on ", h("a", { href: workerHref(event.worker) }, h("code", {}, event.worker.slice(-8)))] : null, event.actor ? h("span", { class: "quiet" }, ` by ${event.actor}`) : null),
            event.code || event.message ? h("p", { class: "break" }, event.code ? h("code", {}, event.code) : null, event.code && event.message ? " " : null, event.message) : null,
            event.advice ? h("p", { class: "quiet" }, event.advice) : null),
          h("time", { datetime: event.at, title: time(event.at, true) }, time(event.at), gap !== null ? h("small", { class: "quiet" }, `+${gap < 1 ? "0 s" : duration(gap)}`) : null));
      }), ["blocked", "queued", "running", "publishing", "paused"].includes(task.state) ? h("li", { class: `is-now is-${task.state}`, "data-key": "now" }, icon(task.status ?? task.state), h("div", {}, h("p", {}, h("b", {}, task.status ?? task.state), h("span", { class: "quiet" }, " now"))), h("time", {}, "")) : null));
  }

  // What the document itself tells, where the server keeps no history.
  function plain() {
    return [
      { at: task.createdAt, type: "submitted" }, task.startedAt && { at: task.startedAt, type: "started", attempt: task.attempt, worker: task.worker },
      task.finishedAt && { at: task.finishedAt, type: task.state, code: task.error?.code, message: task.error?.message },
    ].filter(Boolean);
  }

  // MARK: Facts

  // A token for some queues does not show the workers.
  function workerHref(worker) { return seesAll() ? href({ view: "workers", id: worker }) : null; }

  // A comma separates labels, so a filter cannot have one.
  function labelHref(name, value) {
    return name.includes(",") ? null : tasksHref({ label: value.includes(",") ? name : `${name}=${value}` });
  }

  function facts() {
    const spec = task.spec ?? {};
    const rows = [
      ["Id", h("span", { class: "with-copy" }, h("code", {}, task.id), h("button", { type: "button", class: "plain", "aria-label": "Copy the id", onclick: () => copy(task.id) }, icon("copy")))],
      ["Kind", h("a", { href: tasksHref({ kind: task.kind }) }, task.kind)],
      ["Queue", h("a", { href: tasksHref({ queue: task.queue }) }, task.queue)], ["Priority", number(task.priority)],
      ["Host", host(task.source) && h("a", { href: tasksHref({ host: host(task.source) }) }, host(task.source))],
      ["Attempts", attempts(task)],
      ["Worker", task.worker && h("a", { href: workerHref(task.worker) }, h("code", {}, task.worker))],
      ["Epoch", task.epoch && `${number(task.epoch)}${task.generation ? `, generation ${task.generation}` : ""}`],
      ["Checkpoint", task.parts ? `${number(task.parts.done)} of ${plural(task.parts.count, "part")}, each of ${bytes(task.parts.size)}` : task.ranges?.length && `${plural(task.ranges.length, "range")}, ${bytes(task.ranges.reduce((sum, [from, to]) => sum + to - from, 0))} recorded`],
      ...Object.entries(task.digest ?? {}).map(([name, value]) => [name.toUpperCase().replace("SHA", "SHA-"), h("code", { class: "break" }, value)]),
      ...Object.entries(spec.expect ?? {}).filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => [`Expected ${name}`, h("code", { class: "break" }, String(value))]),
      ["If it exists", spec.ifExists !== "fail" && spec.ifExists], ["Credential", spec.credential], ["Rate limit", spec.rate && rate(spec.rate)], ["Connections", spec.connections && `at most ${spec.connections}`],
      ["Headers", spec.headers?.length && spec.headers.join(", ")], ["Not before", spec.notBefore && time(spec.notBefore, true)], ["Web hook", spec.notify],
      ["After", task.after?.length && h("span", {}, task.after.map((one, index) => [index ? ", " : "", h("a", { href: taskHref(one) }, h("code", {}, one.slice(-8)))]))],
      ["Labels", Object.keys(task.labels ?? {}).length > 0 && h("span", { class: "labels" }, Object.entries(task.labels).map(([name, value]) => h("a", { class: "tag", href: labelHref(name, value) }, `${name}=${value}`)))],
      ["Created", h("time", { datetime: task.createdAt }, `${time(task.createdAt, true)} (${ago(task.createdAt)})`)], ["Started", task.startedAt && time(task.startedAt, true)], ["Finished", task.finishedAt && time(task.finishedAt, true)],
      ["Last event", `number ${number(task.sequence)}`],
    ].filter(([, value]) => value);
    return panel("Facts", null, h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", { "data-key": name }, h("dt", {}, name), h("dd", {}, value)))));
  }

  function again() {
    const line = commandLine(submission(task)), lost = hidden(task), left = unsaid(task);
    return panel("Submit it again", null, h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": "Command line" }, line), h("button", { type: "button", "aria-label": "Copy the command line", onclick: () => copy(line) }, icon("copy"), "Copy")),
      lost.length ? h("p", { class: "quiet" }, `Put back what is hidden here because it may be a secret: ${lost.join("; ")}.`) : null,
      left.length ? h("p", { class: "quiet" }, `Without ${plural(left.length, "label")} that no option can give, because a name has a "=": ${left.join(", ")}.`) : null);
  }

  function json(name, value) {
    if (value === null || value === undefined) return null;
    return panel(name, null, h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": name }, stringify(value, "  ")), h("button", { type: "button", "aria-label": `Copy the ${name.toLowerCase()}`, onclick: () => copy(stringify(value, "  ")) }, icon("copy"), "Copy")));
  }
}

