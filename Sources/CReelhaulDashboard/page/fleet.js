// Workers, queues with their weights and limits, hosts, and storages.
import { can, get, post, put, seesAll } from "./api.js";
import { badge, h, icon, show } from "./dom.js";
import { age, ago, bytes, duration, number, plural, rate, short, until } from "./format.js";
import { live } from "./live.js";
import { param, tasksHref } from "./route.js";
import { ask, bar, confirm, empty, failure, head, loading, poll, table, toast, told } from "./ui.js";

export function open(name, view) {
  live.follow("state=running&limit=1");
  ({ workers, queues, hosts, storages })[name](view);
}

async function change(run, words, again) {
  try {
    await run();
    toast(words);
    again();
  } catch (problem) { told(problem); }
}

const rowsOf = (value, problem, again, draw) => problem && !value ? failure(problem, again) : value ? draw(value) : loading();

// MARK: Workers

function workers(view) {
  let list = null, problem = null;
  const draw = () => show(view.root, head("Workers", list && `${plural(list.filter((one) => one.state !== "expired").length, "worker")} live`), rowsOf(list, problem, again, (all) => all.length ? panelTable("Workers", [
    { name: "Worker", width: "10.9rem", cell: (one) => h("div", { class: "two" }, h("b", {}, `${one.host} ${one.pid}`), h("small", {}, h("code", { title: one.id }, one.id.slice(-12)))) },
    { name: "State", width: "7.2rem", cell: (one) => badge(one.state) },
    { name: "Load", width: "8rem", cell: (one) => h("span", { class: "load" }, one.concurrency ? bar(100 * one.running / one.concurrency, { label: "Load" }) : null, h("span", { class: "num" }, one.concurrency ? `${one.running} of ${one.concurrency}` : `${one.running} running`)) },
    { name: "Rate", width: "6.2rem", is: "num", cell: (one) => rate(one.bytesPerSecond) },
    { name: "Lease", width: "9rem", cell: (one) => one.state === "expired" ? `ended ${ago(one.leaseUntil)}` : `ends ${until(one.leaseUntil)}` },
    { name: "Up", width: "5rem", is: "num", cell: (one) => short(age(one.startedAt)) },
    { name: "Version", width: "5.3rem", cell: (one) => one.version ?? "–" },
    { name: "Kinds, storages", cell: (one) => h("div", { class: "two" }, h("span", {}, one.kinds?.join(", ")), h("small", {}, Object.keys(one.volumes ?? {}).join(", ") || "no storage")) },
    { name: "", label: "Actions", width: "7.2rem", is: "act", cell: (one) => can("admin") && one.state === "live" ? h("button", { type: "button", onclick: () => drain(one) }, icon("drain"), "Drain") : null },
  ], ordered(all), (one) => one.id, (one) => one.id === param("id")) : empty("No worker has signed on.", "'reelhaul worker' starts one; 'reelhaul up' starts a whole fleet.")));
  const again = poll(view, 2, () => get("v1/workers"), (value, error) => { [list, problem] = [value?.workers ?? list, error]; draw(); });
  view.update = draw;
  draw();

  async function drain(worker) {
    if (!await confirm(`Drain ${worker.host} ${worker.pid}?`, h("p", {}, worker.running ? `It takes no more work, hands its ${plural(worker.running, "task")} back with what they have fetched, and ends. Other workers go on with them.` : "It takes no more work and ends."), "Drain the worker")) return;
    change(() => post(`v1/workers/${encodeURIComponent(worker.id)}/actions/drain`), worker.version ? "The worker drains." : "The worker is of an earlier version and may not know the request: send SIGTERM to its process.", again);
  }
}

// Their order is not that of their load: rows do not jump.
const ordered = (list) => [...list].sort((a, b) => (a.state === "expired") - (b.state === "expired") || `${a.host} ${a.startedAt} ${a.id}`.localeCompare(`${b.host} ${b.startedAt} ${b.id}`));

function panelTable(label, columns, rows, keyOf, isMarked = () => false) {
  const node = table(label, columns, rows, keyOf);
  rows.forEach((row, index) => { if (isMarked(row)) node.querySelectorAll("tbody tr")[index].setAttribute("aria-current", "true"); });
  return h("section", { class: "panel flush", "data-key": label }, node);
}

// MARK: Queues and limits

function queues(view) {
  let list = null, problem = null, limits = null, limitsProblem = null;
  const edit = (words, run) => can("admin") ? h("button", { type: "button", class: "plain edit", "aria-label": words, title: words, onclick: run }, "Edit") : null;
  const draw = () => show(view.root, head("Queues"), rowsOf(list, problem, readQueues, (all) => all.length ? panelTable("Queues", [
    { name: "Queue", width: "11rem", cell: (one) => h("a", { href: tasksHref({ queue: one.queue }) }, one.queue) },
    { name: "Waiting", width: "6rem", is: "num", cell: (one) => count({ state: "queued", queue: one.queue }, one.counts?.queued) },
    { name: "Running", width: "6rem", is: "num", cell: (one) => count({ state: "running", queue: one.queue }, one.running) },
    { name: "Paused", width: "6rem", is: "num", cell: (one) => count({ state: "paused", queue: one.queue }, one.counts?.paused) },
    { name: "Failed", width: "6rem", is: "num", cell: (one) => count({ state: "failed", queue: one.queue }, one.counts?.failed) },
    { name: "Succeeded", width: "6.5rem", is: "num", cell: (one) => count({ state: "succeeded", queue: one.queue }, one.counts?.succeeded) },
    { name: "Oldest", width: "6rem", is: "num", cell: (one) => one.oldestRunnableAgeSeconds === null || one.oldestRunnableAgeSeconds === undefined ? "–" : duration(one.oldestRunnableAgeSeconds) },
    { name: "Weight", width: "6rem", is: "num", cell: (one) => h("span", {}, number(one.weight ?? 1), edit(`Weight of ${one.queue}`, () => weight(one))) },
    { name: "Limit", width: "7rem", is: "num", cell: (one) => h("span", {}, one.limit === 0 ? "paused" : number(one.limit ?? null).replace("–", "none"), edit(`Limit of ${one.queue}`, () => limit("queue", one.queue, one.limit))) },
    { name: "", label: "Actions", width: "6.8rem", is: "act", cell: (one) => can("admin") ? h("button", { type: "button", onclick: () => hold(one) }, one.limit === 0 ? "Resume" : "Pause") : null },
  ], all, (one) => one.queue) : empty("There are no queues yet.", "The first task of a queue makes it.")),
  ...(seesAll() ? limitsTable() : []));
  const limitsTable = () => [
    h("h2", { class: "between", "data-key": "limits" }, "Limits"),
    rowsOf(limits, limitsProblem, readLimits, (all) => panelTable("Limits", [
      { name: "Scope", width: "7rem", cell: (one) => one.scope }, { name: "Name", width: "16rem", cell: (one) => one.name ? h("a", { href: tasksHref(tasksOf(one)) }, one.name) : "–" },
      { name: "Running", width: "11rem", cell: (one) => h("span", { class: "load" }, one.limit ? bar(100 * one.running / Number(one.limit), { label: "Used" }) : null, h("span", { class: "num" }, number(one.running))) },
      { name: "Limit", width: "9rem", is: "num", cell: (one) => h("span", {}, one.limit === null ? "none" : number(one.limit), edit(`Limit of ${one.scope} ${one.name}`, () => limit(one.scope, one.name, one.limit))) },
      { name: "Room", width: "6rem", is: "num", cell: (one) => one.room === null ? "–" : number(one.room) }, { name: "", label: "Remarks", cell: (one) => one.outage ? `${one.outage.server} out for ${short(age(one.outage.since))}: ${one.outage.code}` : one.declared ? `declared: ${number(one.declared)}` : one.learned ? `learned: ${number(one.learned)}` : "" },
    ], all, (one) => `${one.scope} ${one.name}`)),
    can("admin") ? h("p", { "data-key": "add" }, h("button", { type: "button", onclick: addLimit }, icon("plus"), "Set another limit")) : null,
  ];
  const readQueues = poll(view, 2, () => get("v1/queues"), (value, error) => { [list, problem] = [value?.queues ?? list, error]; draw(); });
  const readLimits = seesAll() ? poll(view, 3, () => get("v1/limits"), (value, error) => { [limits, limitsProblem] = [value?.limits ?? limits, error]; draw(); }) : () => {};
  const again = () => { readQueues(); readLimits(); };
  draw();

  async function weight(one) {
    const value = await ask(`Weight of ${one.queue}`, h("input", { type: "number", min: "0.001", step: "any", required: true, autofocus: true, value: one.weight ?? 1 }), "Set", "A queue of weight 2 gets twice the share of one of weight 1");
    if (value !== null) change(() => put(`v1/queues/${encodeURIComponent(one.queue)}`, { weight: Number(value) }), "The weight is set.", again);
  }

  async function limit(scope, name, now) {
    const value = await ask(`Limit of ${scope} ${name}`, h("input", { type: "number", min: "0", autofocus: true, placeholder: "none", value: now ?? "" }), "Set", "Running tasks at once; empty: no limit; 0: nothing starts");
    if (value !== null) change(() => put(`v1/limits/${scope}${name ? `/${encodeURIComponent(name)}` : ""}`, { limit: value === "" ? null : Number(value) }), "The limit is set.", again);
  }

  async function hold(one) {
    if (one.limit !== 0 && !await confirm(`Pause the queue ${one.queue}?`, h("p", {}, "No more of its tasks start. Those that run go on. Its limit is forgotten."), "Pause the queue")) return;
    change(() => put(`v1/queues/${encodeURIComponent(one.queue)}`, { limit: one.limit === 0 ? null : 0 }), one.limit === 0 ? "The queue goes on." : "The queue is paused.", again);
  }

  async function addLimit() {
    const what = await ask("Set another limit", h("input", { required: true, autofocus: true, placeholder: "host example.org", pattern: "total|(kind|queue|host|storage) +\\S+" }), "Next", "Scope and name: total, or one of kind, queue, host, storage and its name");
    if (!what) return;
    const [scope, name = ""] = what.trim().split(/ +/);
    limit(scope, name, limits?.find((one) => one.scope === scope && one.name === name)?.limit);
  }
}

/// The filter of the tasks that a limit holds for.
const tasksOf = ({ scope, name }) => scope === "storage" ? { text: `storage://${name}/` } : { [scope]: name };

const count = (filter, value) => value ? h("a", { href: tasksHref(filter) }, number(value)) : "–";

// MARK: Hosts

function hosts(view) {
  let list = null, problem = null;
  const draw = () => show(view.root, head("Hosts", "Where tasks read from, and what waits for each."), rowsOf(list, problem, again, (all) => all.length ? panelTable("Hosts", [
    { name: "Host", width: "18rem", cell: (one) => h("a", { href: tasksHref({ host: one.host }) }, one.host) },
    { name: "Waiting", width: "7rem", is: "num", cell: (one) => count({ state: "queued", host: one.host }, one.waiting) },
    { name: "Running", width: "11rem", cell: (one) => h("a", { class: "load", href: tasksHref({ state: "running", host: one.host }) }, one.limit ? bar(100 * one.running / one.limit, { label: "Used" }) : null, h("span", { class: "num" }, number(one.running))) },
    { name: "Limit", width: "8rem", is: "num", cell: (one) => h("span", {}, one.limit === null || one.limit === undefined ? "none" : number(one.limit), can("admin") ? h("button", { type: "button", class: "plain edit", "aria-label": `Limit of ${one.host}`, onclick: () => limit(one) }, "Edit") : null) },
    { name: "Failed", width: "7rem", is: "num", cell: (one) => count({ state: "failed", host: one.host }, one.failed) },
    { name: "Rate", width: "8rem", is: "num", cell: (one) => rate(one.bytesPerSecond ?? 0) },
  ], all, (one) => one.host) : empty("No host has tasks that wait, run or failed.")));
  const again = poll(view, 2, () => get("v1/hosts"), (value, error) => { [list, problem] = [value?.hosts ?? list, error]; draw(); });
  draw();

  async function limit(one) {
    const value = await ask(`Limit of host ${one.host}`, h("input", { type: "number", min: "0", autofocus: true, placeholder: "none", value: one.limit ?? "" }), "Set", "Running tasks at once; empty: no limit; 0: nothing starts");
    if (value !== null) change(() => put(`v1/limits/host/${encodeURIComponent(one.host)}`, { limit: value === "" ? null : Number(value) }), "The limit is set.", again);
  }
}

// MARK: Storages

function storages(view) {
  let list = null, problem = null;
  const draw = () => show(view.root, head("Storage"), rowsOf(list, problem, again, (all) => all.length ? h("div", { class: "cards" }, all.map((one) => {
    const known = one.totalBytes > 0, used = known ? Math.max(0, one.totalBytes - one.freeBytes) : 0, promised = Math.min(one.promisedBytes ?? 0, one.freeBytes ?? 0);
    const isShort = one.freeBytes !== null && one.promisedBytes > one.freeBytes;
    return h("section", { class: "panel storage", "data-key": one.storage, "aria-label": one.storage }, h("div", { class: "bar" }, h("h2", {}, one.storage), h("span", { class: "quiet" }, typeof one.workers === "number" ? plural(one.workers, "worker") : plural(one.workers?.length ?? 0, "worker"))),
      known ? h("div", { class: "disk", role: "img", "aria-label": `${bytes(used)} used, ${bytes(one.promisedBytes)} promised, ${bytes(one.freeBytes)} free` }, h("i", { class: "is-used", css: { "flex-grow": String(used / one.totalBytes) } }), h("i", { class: "is-promised", css: { "flex-grow": String(promised / one.totalBytes) } }), h("i", { class: "is-free", css: { "flex-grow": String(Math.max(0, one.freeBytes - promised) / one.totalBytes) } })) : null,
      h("dl", { class: "figures" }, [["free", one.freeBytes], ["promised", one.promisedBytes], ["total", one.totalBytes]].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, bytes(value))))),
      isShort ? h("p", { class: "is-error" }, "More is promised to running tasks than is free.") : null,
      h("p", {}, h("a", { href: tasksHref({ text: `storage://${one.storage}/` }) }, "Its tasks")));
  })) : empty("No worker has a storage.", "REELHAUL_STORAGE names them: default=/path")));
  const again = poll(view, 5, () => get("v1/storages"), (value, error) => { [list, problem] = [value?.storages ?? list, error]; draw(); });
  draw();
}

