// The first screen: what moves, what is stuck and why, what failed, and who works.
import { can, get, post, key, seesAll } from "./api.js";
import { badge, h, icon, show } from "./dom.js";
import { ago, bytes, duration, now, number, percent, plural, rate, title, where } from "./format.js";
import { chart, spark } from "./charts.js";
import { live } from "./live.js";
import { go, href, param, change, taskHref, tasksHref } from "./route.js";
import { bar, empty, failure, panel, poll, toast, told } from "./ui.js";

const STATES = ["running", "publishing", "queued", "blocked", "paused", "failed", "canceled", "succeeded"];
const SPANS = { "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "14d": 1_209_600 };
const rates = [];

export function open(_, view) {
  let overview = live.overview, moving = null, workers = null, samples = null, samplesProblem = null, workersProblem = null, sent = {}, isBusy = false;
  const span = () => SPANS[param("range")] ? param("range") : "6h";
  const draw = () => show(view.root, page());

  const hear = (name, run) => {
    live.addEventListener(name, run);
    view.onGone(() => live.removeEventListener(name, run));
  };
  hear("overview", (event) => {
    overview = event.detail;
    if (overview.bytesPerSecond !== null) rates.push(overview.bytesPerSecond);
    if (rates.length > 120) rates.shift();
    draw();
  });
  hear("tasks", (event) => { moving = movers(event.detail.tasks); draw(); });
  live.follow("state=running&limit=40");
  if (seesAll()) poll(view, 5, () => get("v1/workers"), (value, problem) => { workers = value?.workers ?? workers; workersProblem = problem; draw(); });
  const readSamples = !seesAll() ? () => {} : poll(view, 30, () => {
    const seconds = SPANS[span()], step = Math.max(60, Math.ceil(seconds / 300 / 60) * 60);
    return get(`v1/samples${href({ from: new Date(now() - seconds * 1000).toISOString(), to: new Date(now()).toISOString(), step })}`);
  }, (value, problem) => { samples = value ?? samples; samplesProblem = problem; draw(); });
  view.update = () => { readSamples({ anew: true }); draw(); };
  const timer = setInterval(() => { if (!document.hidden) draw(); }, 5000);
  view.onGone(() => clearInterval(timer));
  draw();

  /// Up to eight tasks, of which those that move come first. One that is shown stays where it is while it moves.
  function movers(tasks) {
    const ids = new Set((moving ?? []).map((task) => task.id)), moves = (task) => Number(task.rate ?? 0) > 0;
    const all = new Map(tasks.map((task) => [task.id, task]));
    const kept = (moving ?? []).map((task) => all.get(task.id)).filter((task) => task && moves(task));
    const rest = tasks.filter((task) => !ids.has(task.id) || !moves(task)).sort((a, b) => Number(b.rate ?? 0) - Number(a.rate ?? 0));
    return [...kept, ...rest].slice(0, 8);
  }

  function page() {
    if (!overview) return [h("h1", { class: "sr", tabindex: "-1" }, "Overview"), h("p", { class: "loading" }, "Loading…")];
    const total = Object.values(overview.counts).reduce((a, b) => a + b, 0);
    return [
      h("h1", { class: "sr", tabindex: "-1", "data-key": "h1" }, "Overview"),
      total === 0 ? welcome() : null,
      figures(), states(total),
      h("div", { class: "columns", "data-key": "columns" }, stuck(), failures()),
      movement(), ...(seesAll() ? [charts(), workersPanel()] : []),
    ];
  }

  function figures() {
    const today = overview.bytesToday !== undefined;
    const figure = (name, target, value, note, more) => h("a", { class: "figure", href: target, "data-key": name }, h("span", { class: "name" }, name), h("b", {}, value), h("span", { class: "quiet" }, note), more);
    const finished = today ? plural(overview.succeededToday, "task") : "";
    return h("div", { class: "figures-row", "data-key": "figures" },
      figure("Moving now", tasksHref({ state: "running" }), overview.bytesPerSecond === null ? "–" : rate(overview.bytesPerSecond), `${number(overview.running)} running`, spark(rates)),
      figure("Moved today", tasksHref({ state: "succeeded", after: midnight() }), today ? bytes(overview.bytesToday) : "–", today ? `${finished} succeeded` : "not told by this server"),
      figure("Failed today", href({ view: "failures" }), today ? number(overview.failedToday) : number(overview.counts.failed), today ? `${number(overview.counts.failed)} failed in all` : "failed in all"),
      figure("Workers", seesAll() ? href({ view: "workers" }) : null, number(overview.workers), overview.workers === 0 ? "none is live" : overview.workers === 1 ? "is live" : "are live"));
  }

  function states(total) {
    return h("nav", { class: "states", "aria-label": "Tasks by state", "data-key": "states" },
      h("div", { class: "stack", "aria-hidden": "true" }, STATES.filter((state) => overview.counts[state] > 0).map((state) => h("i", { class: `is-${state}`, "data-key": state, css: { "flex-grow": String(Math.max(0.004, overview.counts[state] / total)) } }))),
      STATES.map((state) => h("a", { href: tasksHref({ state }), class: `is-${state}${overview.counts[state] ? "" : " is-none"}`, "data-key": state }, icon(state), h("b", {}, number(overview.counts[state] ?? 0)), h("span", {}, state))));
  }

  function stuck() {
    const reasons = [...(overview.stuck ?? [])];
    if (overview.workers === 0 && !reasons.some((one) => one.reason === "worker")) reasons.unshift({ reason: "worker", text: "No worker is live: start one with 'reelhaul worker'.", query: "state=queued" });
    const isOf = (one, kind) => one.reason === "worker" && new URLSearchParams(one.query).get("kind") === kind;
    for (const kind of overview.kindsWithoutWorker ?? []) if (!reasons.some((one) => isOf(one, kind))) reasons.push({ reason: "worker", text: `No live worker has a handler for ${kind}.`, query: `state=queued&kind=${encodeURIComponent(kind)}` });
    const words = (one) => one.count === undefined ? one.text : one.text.replace(/^(at least )?\d+ tasks? /, "");
    return panel("Stuck, and why", null, reasons.length
      ? h("ul", { class: "rows" }, reasons.map((one) => h("li", { "data-key": words(one) }, h("a", { href: `?view=tasks&${one.query ?? "state=queued"}` }, h("b", { class: "count" }, one.count === undefined ? "" : number(one.count, one.isAtLeast)), h("span", {}, words(one)), h("small", { class: `tag is-${one.reason}` }, one.reason), icon("next")))))
      : !seesAll() ? empty("What waits is not explained here to a token for some queues.", "A task's own page says what it waits for.")
      : empty(overview.counts.queued ? "Nothing is stuck." : "Nothing waits.", overview.counts.queued ? `${plural(overview.counts.queued, "task")} ${overview.counts.queued === 1 ? "waits for its" : "wait for their"} turn.` : "New tasks start at once."));
  }

  function failures() {
    const groups = overview.failures ?? [];
    return panel("Failed", groups.length ? h("a", { href: href({ view: "failures" }) }, "All failures") : null, groups.length
      ? h("ul", { class: "rows" }, groups.map((group) => h("li", { "data-key": `${group.code} ${group.host}` }, h("a", { href: tasksHref({ state: "failed", code: group.code, host: group.host }) }, h("b", { class: "count is-failed" }, number(group.count, group.isAtLeast)), h("span", {}, h("span", {}, h("code", {}, group.code), where(group)), group.advice ? h("small", { class: "quiet" }, group.advice) : h("small", { class: "quiet" }, group.message)), h("small", { class: "quiet when" }, ago(group.newestAt)), icon("next")))))
      : overview.counts.failed
        ? h("ul", { class: "rows" }, h("li", {}, h("a", { href: tasksHref({ state: "failed" }) }, h("b", { class: "count is-failed" }, number(overview.counts.failed)), h("span", {}, overview.counts.failed === 1 ? "task failed" : "tasks failed"), icon("next"))))
        : empty("Nothing failed."));
  }

  function movement() {
    if (!moving?.length) return null;
    return panel("Moving now", h("a", { href: tasksHref({ state: "running" }) }, `All ${number(overview.counts.running)} running`),
      h("ul", { class: "rows moving" }, moving.map((task) => h("li", { "data-key": task.id }, h("a", { href: taskHref(task.id) },
        h("span", { class: "name" }, title(task)), bar(percent(task), { label: `Progress of ${title(task)}` }),
        h("span", { class: "num" }, percent(task) === null ? bytes(task.bytesDone) : `${percent(task)} %`), h("span", { class: "num wide" }, task.rate === null ? "" : rate(task.rate)), h("span", { class: "num wide" }, task.eta === null || task.eta === undefined ? "" : duration(task.eta)))))));
  }

  function charts() {
    const chosen = span(), to = now(), from = to - SPANS[chosen] * 1000;
    const ranges = h("div", { class: "choices", role: "group", "aria-label": "Time" }, Object.keys(SPANS).map((name) => h("button", { type: "button", "aria-pressed": String(name === chosen), onclick: () => change({ range: name === "6h" ? "" : name }, { replace: true }) }, name)));
    const common = samples && { samples: samples.samples, step: Number(samples.step), from, to };
    return panel("Over time", ranges, samples ? h("div", { class: "columns charts" },
      chart({ ...common, title: "Throughput", format: rate, base: 1024, series: [{ name: "bytes", is: "running", value: (s) => s.bytesPerSecond }] }),
      chart({ ...common, title: "Waiting and running", format: compact, isStacked: true, series: ["running", "queued", "blocked", "paused"].map((state) => ({ name: state, is: state, value: (s) => s.counts?.[state] })) }),
      chart({ ...common, title: `Ended every ${duration(samples.step)}`, format: compact, isStacked: true, series: ["succeeded", "failed", "canceled"].map((name) => ({ name, is: name, value: (s) => s[name] })) }))
      : samplesProblem ? failure(samplesProblem, readSamples) : h("p", { class: "loading" }, "Loading…"));
  }

  function workersPanel() {
    const known = workers ?? [];
    return panel("Workers", h("a", { href: href({ view: "workers" }) }, "All workers"), workersProblem && !workers ? failure(workersProblem) : known.length
      ? h("ul", { class: "rows workers" }, known.slice(0, 8).map((worker) => h("li", { "data-key": worker.id }, h("a", { href: href({ view: "workers", id: worker.id }) }, badge(worker.state), h("span", { class: "name" }, `${worker.host} ${worker.pid}`), h("span", { class: "num wide" }, worker.concurrency ? `${worker.running} of ${worker.concurrency}` : `${worker.running} running`), h("span", { class: "num" }, rate(worker.bytesPerSecond))))))
      : workers ? empty("No worker has signed on.", "'reelhaul worker' starts one.") : h("p", { class: "loading" }, "Loading…"));
  }

  function welcome() {
    const input = h("input", { type: "url", required: true, placeholder: "https://example.org/film.mp4", "aria-label": "URL to download", autocomplete: "off" });
    return h("section", { class: "panel welcome", "data-key": "welcome" }, h("h2", {}, "This fleet is ready."), h("p", { class: "quiet" }, "Give it a URL, and watch it arrive."),
      can("write") ? h("form", { onsubmit: async (event) => {
        event.preventDefault();
        // Merging keeps the first field: this function may belong to a later one.
        const source = event.target.querySelector("input").value.trim();
        // What is sent again, because its answer was lost, is submitted once.
        if (sent.source !== source) sent = { source, key: key() };
        isBusy = true;
        draw();
        try {
          const made = await post("v1/tasks", { kind: "download", source }, { headers: { "Idempotency-Key": sent.key } });
          toast("Submitted.");
          go(taskHref(made.id));
        } catch (problem) { told(problem); }
        isBusy = false;
        draw();
      } }, input, h("button", { class: "main", disabled: isBusy }, "Download")) : null,
      h("p", { class: "quiet" }, "Or in a shell: ", h("code", {}, "reelhaul download URL --wait")));
  }
}

const midnight = () => { const day = new Date(now()); day.setUTCHours(0, 0, 0, 0); return day.toISOString(); };
const compact = (value) => value >= 1e6 ? `${(value / 1e6).toFixed(1)} M` : value >= 10_000 ? `${Math.round(value / 1000)} k` : number(Math.round(value * 10) / 10);

