// The dashboard: what the address says is what is shown. The server tells every change (server-sent events).

const $ = (selector, within = document) => within.querySelector(selector);
const STATES = ["running", "publishing", "queued", "blocked", "paused", "failed", "canceled", "succeeded"];
const PATIENCE = 4000;

let stream, tasks = null, hasMore = false, heardAt = 0, detail = null, detailRead = 0;

// MARK: The address

const view = () => new URLSearchParams(location.search);

function go(changes) {
  const next = view();
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  const text = next.toString();
  history.pushState(null, "", text ? `?${text}` : location.pathname);
  follow();
}

function query() {
  const wanted = new URLSearchParams();
  for (const name of ["state", "queue", "limit"]) if (view().get(name)) wanted.set(name, view().get(name));
  if (!wanted.get("limit")) wanted.set("limit", "100");
  return wanted;
}

// MARK: What the server tells

let streamQuery = null;
function follow() {
  const wanted = query().toString();
  $("#queue").value = view().get("queue") ?? "";
  $("#limit").value = query().get("limit");
  if (wanted !== streamQuery) {
    streamQuery = wanted;
    tasks = null;
    $("#tasks tbody").replaceChildren();
    listen();
  }
  drawStates();
  drawTasks();
  readDetail();
}

function listen() {
  stream?.close();
  stream = new EventSource(`v1/stream?${streamQuery}`);
  stream.addEventListener("overview", heard(drawOverview));
  stream.addEventListener("tasks", heard((page) => { tasks = page.tasks; hasMore = page.hasMore; drawTasks(); }));
  stream.addEventListener("ping", () => { heardAt = Date.now(); say("live"); });
  stream.addEventListener("trouble", () => trouble({ store: "The fleet's state cannot be read now. What is shown is old." }));
  stream.onopen = () => { heardAt = Date.now(); say("live"); };
  // After a connection that was cut the browser tries again; after an answer that is no stream it does not.
  stream.onerror = () => say("cut off, trying again", true);
}

function heard(draw) {
  return (event) => {
    heardAt = Date.now();
    trouble({ store: null });
    say("live");
    draw(JSON.parse(event.data));
    const open = tasks?.find((task) => task.id === view().get("task"));
    // The list says when the open task has changed; it has not all of it.
    if (open && open.sequence !== detail?.sequence || open && Date.now() - detailRead > 900 && open.state === "running") readDetail();
  };
}

function say(text, isCut = false) {
  set($("#live"), text);
  $("#live").classList.toggle("cut", isCut);
}

const troubles = {};
function trouble(change) {
  Object.assign(troubles, change);
  const text = Object.values(troubles).filter(Boolean).join(" ");
  $("#trouble").hidden = !text;
  set($("#trouble"), text);
}

// MARK: Drawing

let overview = null;
function drawOverview(next) {
  overview = next;
  const workers = next.workers === 1 ? "1 worker" : `${next.workers} workers`;
  $("#moving").textContent = `${bytes(next.bytesPerSecond)}/s · ${next.running} running · ${workers}`;
  const reasons = [];
  if (next.workers === 0) reasons.push("No worker is live: start one with 'reelhaul worker'.");
  if (next.kindsWithoutWorker.length) reasons.push(`No live worker has a handler for ${next.kindsWithoutWorker.join(", ")}.`);
  if (next.eventsBehindSeconds > 60) reasons.push(`Events are ${next.eventsBehindSeconds} s behind.`);
  trouble({ fleet: reasons.join(" ") });
  drawStates();
}

function drawStates() {
  const chosen = view().get("state");
  const rows = [["", "all", overview && Object.values(overview.counts).reduce((a, b) => a + b, 0)]];
  for (const state of STATES) rows.push([state, state, overview?.counts[state]]);
  const nav = $("#states");
  if (nav.children.length !== rows.length) {
    nav.replaceChildren(...rows.map(([state, name]) => {
      const link = element("a", { href: state ? `?state=${state}` : "./" }, element("b", {}, "–"), name);
      link.addEventListener("click", (event) => { event.preventDefault(); go({ state }); });
      return link;
    }));
  }
  rows.forEach(([state, , count], index) => {
    const link = nav.children[index];
    link.firstChild.textContent = count?.toLocaleString("en") ?? "–";
    (chosen ?? "") === state ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
  });
}

function drawTasks() {
  const wanted = $("#find").value.toLowerCase();
  if (!tasks) return set($("#more"), "Loading…");
  const rows = tasks.filter((task) => !wanted || `${task.id} ${task.source} ${task.destination ?? ""}`.toLowerCase().includes(wanted));
  const body = $("#tasks tbody");
  const known = new Map([...body.rows].map((row) => [row.dataset.id, row]));
  const pointed = body.querySelector("tr:hover");
  const next = rows.map((task) => drawRow(known.get(task.id) ?? newRow(task.id), task));
  // Rows stay where they are while the pointer is on them; their cells change.
  if (!pointed || !rows.some((task) => task.id === pointed.dataset.id)) {
    if (next.length !== body.rows.length || next.some((row, index) => row !== body.rows[index])) body.replaceChildren(...next);
  }
  $("#more").textContent = tasks.length === 0 ? "No tasks match." : hasMore ? `The newest ${tasks.length} are shown; there are more.` : "";
}

function newRow(id) {
  const row = element("tr", { "data-id": id });
  const open = element("button", { type: "button" });
  open.addEventListener("click", () => go({ task: id }));
  row.append(element("td"), element("td", {}, open), element("td"), element("td"), element("td"), element("td", { class: "number" }), element("td", { class: "number" }));
  return row;
}

function drawRow(row, task) {
  const [state, name, kind, queue, progress, rate, eta] = row.cells;
  row.setAttribute("aria-selected", task.id === view().get("task"));
  set(state, task.status ?? task.state);
  state.className = `state-${task.status ?? task.state}`;
  set(name.firstChild, title(task));
  name.firstChild.title = task.source || task.id;
  set(kind, task.kind);
  set(queue, task.queue);
  set(progress, amount(task));
  const isMoving = task.state === "running";
  set(rate, isMoving && task.rate ? `${bytes(task.rate)}/s` : "");
  set(eta, isMoving && task.eta !== null ? clock(task.eta) : "");
  return row;
}

function amount(task) {
  if (!task.bytesTotal) return task.bytesDone ? bytes(task.bytesDone) : "";
  const share = Math.floor(100 * task.bytesDone / task.bytesTotal);
  return `${share} % of ${bytes(task.bytesTotal)}`;
}

function clock(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
}

// MARK: One task

async function readDetail() {
  const id = view().get("task");
  if (!id) { detail = null; $("#detail").hidden = true; return; }
  detailRead = Date.now();
  const answer = await fetch(`v1/tasks/${encodeURIComponent(id)}`).catch(() => null);
  if (!answer || id !== view().get("task")) return;
  // A proxy's own page is no JSON.
  const told = await answer.json().catch(() => ({ detail: `The answer was ${answer.status}.` }));
  if (id !== view().get("task")) return;
  detail = answer.ok ? told : { id, missing: told.detail };
  drawDetail();
}

const ACTIONS = {
  pause: ["blocked", "queued", "running"], resume: ["paused"], retry: ["failed", "canceled"],
  cancel: ["blocked", "queued", "running", "paused"], remove: ["succeeded", "failed", "canceled", "paused", "queued", "blocked"],
};

function drawDetail() {
  const task = detail, panel = $("#detail"), focused = document.activeElement?.dataset?.action;
  panel.hidden = false;
  const close = element("button", { type: "button", "aria-label": "Close" }, "×");
  close.addEventListener("click", () => go({ task: "" }));
  if (task.missing) return panel.replaceChildren(close, element("p", {}, task.missing));
  const actions = Object.keys(ACTIONS).filter((name) => ACTIONS[name].includes(task.state)).map((name) => {
    const button = element("button", { type: "button", "data-action": name }, name);
    button.addEventListener("click", () => act(task, name));
    return button;
  });
  const rows = [
    ["state", `${task.status}${task.attempt ? `, attempt ${task.attempt}` : ""}`], ["waits", task.waits], ["error", task.error && `${task.error.code}: ${task.error.message}`],
    ["what to do", task.advice], ["kind", task.kind], ["source", task.source], ["destination", task.destination], ["queue", `${task.queue}, priority ${task.priority}`],
    ["done", `${bytes(task.bytesDone ?? 0)}${task.bytesTotal ? ` of ${bytes(task.bytesTotal)}` : ""}`],
    ["parts", task.parts && `${task.parts.done} of ${task.parts.count}, of ${bytes(task.parts.size)}`], ["worker", task.worker], ["digest", task.digest && JSON.stringify(task.digest)],
    ["created", task.createdAt], ["started", task.startedAt], ["finished", task.finishedAt], ["id", task.id],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  const list = element("dl");
  for (const [name, value] of rows) list.append(element("dt", {}, name), element("dd", {}, String(value)));
  const parts = [element("div", { class: "bar" }, element("h2", {}, title(task)), close), map(task), element("div", { class: "actions" }, ...actions), element("p", { id: "answer", role: "status", class: "quiet" }), list];
  const given = task.output ?? task.parameters;
  if (given) parts.push(element("h3", {}, task.output ? "Output" : "Parameters"), element("pre", {}, JSON.stringify(given, null, 2)));
  panel.replaceChildren(...parts.filter(Boolean));
  if (focused) panel.querySelector(`[data-action="${focused}"]`)?.focus();
}

// Which bytes are safely there.
function map(task) {
  const ranges = task.ranges ?? (task.bytesTotal && task.bytesDone ? [[0, task.bytesDone]] : []);
  if (!task.bytesTotal || !ranges.length) return null;
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("class", "map");
  picture.setAttribute("viewBox", "0 0 1000 10");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${amount(task)} done`);
  for (const range of ranges) {
    const [start, end] = Array.isArray(range) ? range : [range.start, range.end];
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    part.setAttribute("x", 1000 * start / task.bytesTotal);
    part.setAttribute("width", 1000 * (end - start) / task.bytesTotal);
    part.setAttribute("height", 10);
    picture.append(part);
  }
  return picture;
}

async function act(task, action) {
  if (["cancel", "remove"].includes(action) && !confirm(`Really ${action} ${title(task)}?`)) return;
  const answer = await post(`v1/tasks/${task.id}/actions/${action}`, "application/json", "{}");
  const text = $("#answer");
  if (text) text.textContent = answer.ok ? `${action}: sent` : answer.problem;
}

async function post(path, type, body, more = {}) {
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": type, ...more }, body });
    const json = await answer.json();
    return { ok: answer.ok, json, problem: json.detail };
  } catch {
    return { ok: false, problem: "The server cannot be reached; nothing is known to be sent." };
  }
}

// MARK: Submitting

let submission = {};
$("#open-submit").addEventListener("click", () => { $("#submit-answer").textContent = ""; $("#submit").showModal(); });
$("#submit form").addEventListener("submit", async (event) => {
  if (event.submitter?.value !== "send") return;
  event.preventDefault();
  const form = new FormData(event.target);
  const sources = form.get("sources").split("\n").map((line) => line.trim()).filter(Boolean);
  const lines = sources.map((source) => {
    const task = { kind: form.get("kind"), source };
    let destination = form.get("destination").trim();
    if (destination.endsWith("/")) destination += source.split(/[?#]/)[0].split("/").pop();
    if (destination) task.destination = destination;
    for (const name of ["queue", "credential"]) if (form.get(name).trim()) task[name] = form.get(name).trim();
    return JSON.stringify(task);
  });
  const text = lines.join("\n");
  // What is sent again without a change is the same submission, for its answer may have been lost.
  if (text !== submission.text) submission = { text, key: [...crypto.getRandomValues(new Uint32Array(4))].join("-") };
  const answer = await post("v1/tasks", "application/x-ndjson", text, { "Idempotency-Key": submission.key });
  const wrong = answer.json?.results?.filter((result) => result.error) ?? [];
  $("#submit-answer").textContent = wrong.length ? wrong.map((result) => `line ${result.line}: ${result.error}`).join("; ") : answer.ok ? `${lines.length} submitted` : answer.problem;
  // Only the wrong ones stay, so that the right ones are not submitted twice.
  if (answer.ok) {
    event.target.sources.value = wrong.map((result) => sources[result.line - 1]).join("\n");
    submission = {};
  }
});

// MARK: The fleet

function table(selector, path, name, columns) {
  const box = $(selector);
  const read = async () => {
    if (!box.open) return;
    const answer = await fetch(path).catch(() => null);
    if (!answer?.ok) return;
    const rows = (await answer.json())[name];
    const head = element("tr", {}, ...columns.map(([title]) => element("th", { scope: "col" }, title)));
    const body = rows.map((row) => element("tr", {}, ...columns.map(([, value]) => element("td", {}, String(value(row) ?? "")))));
    $(".scroll", box).replaceChildren(rows.length ? element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)) : element("p", { class: "quiet" }, "There are none."));
  };
  box.addEventListener("toggle", read);
  setInterval(() => { if (!document.hidden) read(); }, 2000);
}

table("#workers", "v1/workers", "workers", [
  ["Worker", (w) => w.id.slice(-12)], ["State", (w) => w.state], ["Host", (w) => `${w.host} ${w.pid}`], ["Running", (w) => w.running],
  ["Rate", (w) => `${bytes(w.bytesPerSecond)}/s`], ["Kinds", (w) => w.kinds.join(", ")], ["Storages", (w) => Object.keys(w.volumes).join(", ")],
]);
table("#limits", "v1/limits", "limits", [
  ["Of", (l) => `${l.scope} ${l.name}`], ["Running", (l) => l.running], ["Limit", (l) => l.limit ?? "none"], ["Room", (l) => l.room ?? ""], ["Weight", (l) => l.weight ?? ""],
]);

// MARK: Small things

function title(task) {
  const place = task.destination || task.source || task.id;
  return decodeURIComponentSafely(place.split(/[?#]/)[0].split("/").filter(Boolean).pop() ?? place);
}

function decodeURIComponentSafely(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${unit && count < 10 ? count.toFixed(1) : Math.round(count)} ${units[unit]}`;
}

function set(node, text) { if (node.textContent !== text) node.textContent = text; }

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

$("#queue").addEventListener("change", (event) => go({ queue: event.target.value.trim() }));
$("#limit").addEventListener("change", (event) => go({ limit: event.target.value }));
$("#find").addEventListener("input", drawTasks);
for (const link of document.querySelectorAll("[data-link]")) link.addEventListener("click", (event) => { event.preventDefault(); history.pushState(null, "", location.pathname); follow(); });
addEventListener("popstate", follow);
addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey || $("#submit").open) return;
  if (event.key === "/") { event.preventDefault(); $("#find").focus(); }
  if (event.key === "Escape") go({ task: "" });
  if (event.key === "j" || event.key === "k") {
    const rows = [...$("#tasks tbody").rows];
    const at = rows.findIndex((row) => row.dataset.id === view().get("task"));
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))];
    if (next) { go({ task: next.dataset.id }); next.scrollIntoView({ block: "nearest" }); }
  }
});
// A stream that says nothing, not even that it is there, is behind.
setInterval(() => {
  if (stream?.readyState === EventSource.OPEN && Date.now() - heardAt > 20000 + PATIENCE) say("no news", true);
  if (stream?.readyState === EventSource.CLOSED) listen();
  // A task that is not among the rows is not told of.
  const open = view().get("task");
  if (open && !document.hidden && Date.now() - detailRead > 1900 && !tasks?.some((task) => task.id === open)) readDetail();
}, 2000);
follow();
