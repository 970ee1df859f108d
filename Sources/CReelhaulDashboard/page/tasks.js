// The list of tasks: filters that are the address, rows that do not jump, and actions on one, some or all that match.
import { can, taskNamed } from "./api.js";
import { badge, h, icon, show } from "./dom.js";
import { attempts, bytes, duration, host, local, number, percent, plural, rate, short, age, time, title, until } from "./format.js";
import { live } from "./live.js";
import { areKeysOn } from "./palette.js";
import { FILTERS, change, go, href, query, saved, taskHref } from "./route.js";
import { FIELDS, MOST, Rows } from "./rows.js";
import { ACTIONS, act, actOnMany } from "./actions.js";
import { ask, bar, dialog, empty, failure, option, toast } from "./ui.js";

const STATES = ["running", "publishing", "queued", "scheduled", "retrying", "blocked", "paused", "failed", "canceled", "succeeded"];
// How many pages without a match are read before somebody is asked whether to go on: some 1,200,000 tasks, in seconds.
const BARREN = 400;
// How many pages are read again at a time, if the rows that are seen are on so many.
const PAGES_AT_ONCE = 10;
const KINDS = ["download", "upload", "copy", "delete"];

/// Each has a fixed width: nothing moves while numbers change.
const COLUMNS = {
  state: { words: "State", width: "7.6rem", cell: (task) => badge(task.status ?? task.state) },
  name: { words: "Task", width: "minmax(14rem, 1fr)", cell: name },
  kind: { words: "Kind", width: "5.5rem", cell: (task) => task.kind },
  queue: { words: "Queue", width: "7rem", cell: (task) => task.queue },
  priority: { words: "Priority", width: "4.5rem", is: "num", cell: (task) => number(task.priority) },
  progress: { words: "Progress", width: "10.5rem", cell: progress },
  size: { words: "Size", width: "5.5rem", is: "num", cell: (task) => task.bytesTotal === null ? "" : bytes(task.bytesTotal) },
  rate: { words: "Rate", width: "6.2rem", is: "num", cell: (task) => task.state === "running" && task.rate !== null ? rate(task.rate) : "" },
  eta: { words: "ETA", width: "6rem", is: "num", cell: (task) => task.state === "running" && task.eta !== null && task.eta !== undefined ? duration(task.eta) : "" },
  host: { words: "Host", width: "9rem", cell: (task) => host(task.source) },
  attempt: { words: "Attempt", width: "5rem", is: "num", cell: attempts },
  worker: { words: "Worker", width: "6.5rem", cell: (task) => task.worker ? task.worker.slice(-8) : "" },
  labels: { words: "Labels", width: "9rem", cell: (task) => Object.entries(task.labels ?? {}).filter(([key]) => key !== "title").map(([key, value]) => `${key}=${value}`).join(" ") },
  created: { words: "Created", width: "5.2rem", is: "num", cell: (task) => h("time", { datetime: task.createdAt, title: time(task.createdAt, true) }, short(age(task.createdAt))) },
  finished: { words: "Finished", width: "5.2rem", is: "num", cell: (task) => task.finishedAt ? h("time", { datetime: task.finishedAt, title: time(task.finishedAt, true) }, short(age(task.finishedAt))) : "" },
};
const STANDARD = ["state", "name", "queue", "progress", "rate", "eta", "created"];

function name(task) {
  const more = task.waits ? `waits ${task.waits}` : task.error && task.state !== "succeeded" ? `${task.error.code}: ${task.error.message}`
    : task.status === "scheduled" || task.status === "retrying" ? until(task.runAt) : [host(task.source) || task.source, task.destination].filter(Boolean).join(" → ");
  return [h("a", { href: taskHref(task.id), class: "name" }, title(task)), h("small", { title: more }, more)];
}

function progress(task) {
  const share = percent(task);
  if (!task.bytesDone && !["running", "publishing"].includes(task.state)) return "";
  return h("span", { class: "progress" }, bar(share, { state: task.state, label: `Progress of ${title(task)}` }), h("span", { class: "num" }, share === null ? bytes(task.bytesDone) : `${share} %`));
}

function columns() {
  try {
    const chosen = JSON.parse(localStorage.getItem("reelhaul.columns") ?? "null")?.filter((one) => COLUMNS[one]);
    return chosen?.length ? chosen : STANDARD;
  } catch { return STANDARD; }
}

const keep = (name, value) => { try { localStorage.setItem(name, JSON.stringify(value)); } catch { toast("This browser keeps nothing for this page.", { isBad: true }); } };

// The lists that "back" leads to.
const known = new Map();

export function open(_, view) {
  let filter, rows, named = null, selected = new Set(), isAll = false, focused = null, overHead = 0, timer = null, isCut = false, isGone = false;
  const acting = new Set();
  const body = h("div", { class: "body", role: "rowgroup" });
  const top = h("div", { class: "heads", role: "rowgroup" });
  const sideways = h("div", { class: "sideways" }, body);
  const list = h("div", { class: "list", role: "table", "aria-label": "Tasks" }, top, sideways);
  const parts = { head: h("div", {}), tools: h("div", {}), choice: h("div", { class: "choice", role: "region", "aria-label": "Selection" }), pill: h("div", { class: "pill-place" }), end: h("div", { class: "end", "aria-live": "polite" }) };
  view.root.append(parts.head, parts.tools, parts.choice, h("div", { class: "list-place" }, parts.pill, list), parts.end);

  // MARK: What is shown

  function read({ isBack = false } = {}) {
    const q = query(), next = {};
    for (const one of FILTERS) if (q.get(one)) next[one] = q.get(one);
    if (q.get("sort") === "createdAt") next.sort = "createdAt";
    const key = JSON.stringify(next);
    if (key === JSON.stringify(filter)) return drawAll();
    remember();
    filter = next;
    selected = new Set();
    isAll = false;
    focused = null;
    named = null;
    if (filter.text) findNamed(filter.text);
    rows = isBack && known.get(key) || new Rows(filter);
    isCut = false;
    live.follow(href({ ...filter, fields: FIELDS, limit: 100 }).slice(1));
    body.replaceChildren();
    drawAll();
    if (rows.isRead) { scrollTo(0, rows.scrollTop); refresh(); }
    else rows.more().then(drawAll);
  }

  /// The task with this id is known at once, whatever else has the id in its source or destination.
  async function findNamed(text) {
    const task = await taskNamed(text);
    if (!task || filter.text !== text) return;
    named = task;
    drawHead();
  }

  function remember() {
    if (!rows?.isRead) return;
    rows.scrollTop = scrollY;
    known.delete(JSON.stringify(filter));
    known.set(JSON.stringify(filter), rows);
    if (known.size > 4) known.delete(known.keys().next().value);
  }

  function drawAll() {
    drawHead();
    drawTools();
    drawTop();
    drawRows();
    drawChoice();
  }

  /// How many match, if the counts that are kept tell it.
  function total() {
    const counts = live.overview?.counts, given = Object.keys(filter).filter((one) => one !== "sort");
    if (rows.isWhole) return rows.rows.length;
    if (!counts || given.some((one) => one !== "state")) return null;
    const states = filter.state?.split(",") ?? Object.keys(counts);
    return states.every((state) => state in counts) ? states.reduce((sum, state) => sum + counts[state], 0) : null;
  }

  function drawHead() {
    const count = total();
    show(parts.head, h("div", { class: "head" }, h("div", {}, h("h1", { tabindex: "-1" }, "Tasks"), h("p", { class: "quiet" }, count !== null ? plural(count, "task") : rows.isRead ? `${number(rows.rows.length)} of more` : "\u00a0")),
      h("div", { class: "tools" }, savedNow()
        ? h("button", { type: "button", onclick: () => { keep("reelhaul.views", saved().filter((one) => one.query !== location.search)); dispatchEvent(new Event("reelhaul-saved")); drawHead(); } }, icon("star"), "Forget this view")
        : Object.keys(filter).length ? h("button", { type: "button", onclick: saveView }, icon("star"), "Save this view") : null,
      h("button", { type: "button", onclick: chooseColumns }, icon("columns"), "Columns"))),
    named ? h("p", { class: "named" }, "This is the id of ", h("a", { href: taskHref(named.id) }, title(named)), ".") : null);
  }

  const savedNow = () => saved().find((one) => one.query === location.search);

  async function saveView() {
    const words = await ask("Save this view", h("input", { required: true, maxlength: "60", autofocus: true, value: Object.values(filter).join(", ") }), "Save", "Name, kept in this browser");
    if (!words?.trim()) return;
    keep("reelhaul.views", [...saved().filter((one) => one.name !== words.trim()), { name: words.trim(), query: location.search }]);
    dispatchEvent(new Event("reelhaul-saved"));
    drawHead();
  }

  function chooseColumns() {
    let chosen = [...columns()];
    const box = h("ul", { class: "order" });
    const save = (next) => { chosen = next; keep("reelhaul.columns", chosen); drawTop(); body.replaceChildren(); drawRows(); draw(); };
    const move = (one, by) => { const next = chosen.filter((other) => other !== one); next.splice(Math.max(0, chosen.indexOf(one) + by), 0, one); save(next); };
    const draw = () => show(box, [...chosen, ...Object.keys(COLUMNS).filter((one) => !chosen.includes(one))].map((one) => h("li", { "data-key": one },
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: chosen.includes(one), disabled: one === "name", onchange: (event) => save(event.target.checked ? [...chosen, one] : chosen.filter((other) => other !== one)) }), h("span", {}, COLUMNS[one].words)),
      chosen.includes(one) ? h("span", {}, h("button", { type: "button", class: "plain", "aria-label": `Move ${COLUMNS[one].words} left`, onclick: () => move(one, -1) }, "↑"), h("button", { type: "button", class: "plain", "aria-label": `Move ${COLUMNS[one].words} right`, onclick: () => move(one, 1) }, "↓")) : null)));
    draw();
    dialog("Columns", (node) => [h("h2", {}, "Columns"), box, h("menu", {}, h("button", { type: "button", onclick: () => save(STANDARD) }, "As at first"), h("button", { type: "button", class: "main", onclick: () => node.close() }, "Done"))]);
  }

  function drawTools() {
    const states = filter.state?.split(",") ?? [];
    const toggle = (state) => change({ view: "tasks", state: states.includes(state) ? states.filter((one) => one !== state).join(",") : [...states, state].join(",") });
    const typed = (name, label, more = {}) => h("input", { name, "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false", value: filter[name] ?? "", onchange: (event) => change({ view: "tasks", [name]: event.target.value.trim() }), ...more });
    const moment = (name, label) => h("label", { class: "moment" }, h("span", {}, label), h("input", { type: "datetime-local", name, value: local(filter[name]).slice(0, 16), onchange: (event) => change({ view: "tasks", [name]: event.target.value ? new Date(event.target.value).toISOString() : "" }) }));
    const extra = ["code", "label", "after", "before", "sort"].some((one) => filter[one]);
    show(parts.tools, h("div", { class: "filters", role: "search", "aria-label": "Filter tasks" },
      h("div", { class: "line" },
        h("input", { type: "search", name: "text", "aria-label": "Search id, source and destination", placeholder: "Search id, source, destination", autocomplete: "off", spellcheck: "false", value: filter.text ?? "", oninput: (event) => search(event.target.value), onchange: (event) => search(event.target.value, 0) }),
        typed("queue", "Queue"), typed("host", "Host"),
        h("select", { name: "kind", "aria-label": "Kind", onchange: (event) => change({ view: "tasks", kind: event.target.value }) }, option("", filter.kind ?? "", "All kinds"), [...new Set([...KINDS, ...(filter.kind ? [filter.kind] : [])])].map((kind) => option(kind, filter.kind))),
        Object.keys(filter).length ? h("a", { class: "button plain", href: "?view=tasks", onclick: () => { for (const input of parts.tools.querySelectorAll("input")) input.value = ""; } }, "Clear") : null,
        h("details", { open: extra, class: "more" }, h("summary", {}, "More"), h("div", { class: "line" }, typed("code", "Error code"), typed("label", "Label: K=V or K", { placeholder: "Label: K=V" }), moment("after", "Created after"), moment("before", "before"),
          h("select", { name: "sort", "aria-label": "Order", onchange: (event) => change({ view: "tasks", sort: event.target.value }) }, option("", filter.sort ?? "", "Newest first"), option("createdAt", filter.sort, "Oldest first"))))),
      h("div", { class: "chips", role: "group", "aria-label": "States" }, STATES.map((state) => h("button", { type: "button", class: `chip is-${state}`, "aria-pressed": String(states.includes(state)), "data-key": state, onclick: () => toggle(state) }, icon(state), state)))));
  }

  let searching;
  function search(words, delay = 250) {
    clearTimeout(searching);
    searching = setTimeout(() => { if (words.trim() !== (filter.text ?? "")) change({ view: "tasks", text: words.trim() }, { replace: Boolean(filter.text) }); }, delay);
  }

  // MARK: Rows

  const template = () => [...(can("write") ? ["2.2rem"] : []), ...columns().map((one) => COLUMNS[one].width)];
  const rowHeight = () => matchMedia("(max-width: 48rem)").matches ? 68 : 48;

  function drawTop() {
    const widths = template();
    list.style.setProperty("--columns", widths.join(" "));
    // What the columns need together, with the gaps between them.
    list.style.setProperty("--wide", `calc(${widths.map((one) => /[\d.]+rem/.exec(one)[0]).join(" + ")} + ${widths.length - 1} * var(--gap))`);
    show(top, h("div", { class: "row top", role: "row" },
      can("write") ? h("span", { role: "columnheader", class: "pick" }, h("input", { type: "checkbox", "aria-label": "Select all rows that were read", checked: selected.size > 0 && selected.size >= rows.rows.length, indeterminate: selected.size > 0 && selected.size < rows.rows.length, onchange: (event) => { selected = new Set(event.target.checked ? rows.rows.map((row) => row.id) : []); isAll = false; drawTop(); drawRows(); drawChoice(); } })) : null,
      columns().map((one) => h("span", { role: "columnheader", class: COLUMNS[one].is }, COLUMNS[one].words))));
  }

  function range() {
    const height = rowHeight(), at = list.getBoundingClientRect().top + scrollY + top.offsetHeight;
    const from = Math.max(0, Math.floor((scrollY - at) / height)), seen = Math.ceil(innerHeight / height) + 1;
    return { from, to: Math.min(rows.rows.length, from + seen) };
  }

  function drawRows() {
    // An answer that comes late would go on with the search of a view that nobody sees.
    if (isGone) return;
    const height = rowHeight(), { from, to } = range();
    body.style.height = `${rows.rows.length * height}px`;
    list.setAttribute("aria-rowcount", total() ?? -1);
    const wanted = new Map();
    for (let index = Math.max(0, from - 6); index < Math.min(rows.rows.length, to + 6); index += 1) wanted.set(rows.rows[index].id, index);
    // The row with the focus stays in the page, or the keyboard would lose its place.
    const active = document.activeElement?.closest?.(".row[data-id]")?.dataset.id;
    if (active && !wanted.has(active)) { const index = rows.rows.findIndex((row) => row.id === active); if (index >= 0) wanted.set(active, index); }
    const shown = new Map();
    for (const node of [...body.children]) wanted.has(node.dataset.id) ? shown.set(node.dataset.id, node) : node.remove();
    let isMissing = false, last = null;
    // Keys and screen readers go from row to row in the order of the page.
    for (const [id, index] of [...wanted].sort((a, b) => a[1] - b[1])) {
      const row = rows.rows[index];
      let node = shown.get(id);
      if (!node) {
        node = h("div", { class: "row", role: "row", "data-id": id });
        last ? last.after(node) : body.prepend(node);
      }
      last = node;
      node.style.transform = `translateY(${index * height}px)`;
      if (!row.task) { isMissing = true; if (!node.firstChild) show(node, h("span", { role: "cell", class: "quiet" }, "…")); continue; }
      drawRow(node, row, index);
    }
    rows.forget(from, to);
    if (isMissing) refreshSoon(0);
    if (to > rows.rows.length - 60 && rows.hasMore && rows.isRead && !rows.problem && rows.barren < BARREN) rows.more().then((isMore) => { if (isMore) { drawHead(); drawRows(); } else drawEnd(); });
    drawEnd();
  }

  function drawRow(node, row, index) {
    const task = row.task, isPicked = isAll || selected.has(row.id);
    const look = `row is-${task.state}${row.isGone ? " is-gone" : ""}${row.id === focused ? " is-at" : ""}`;
    if (node.className !== look) node.className = look;
    node.setAttribute("aria-rowindex", index + 2);
    if (can("write")) node.setAttribute("aria-selected", String(isPicked));
    // A row is drawn anew only if it has changed, or its ages or its countdown have.
    const times = [short(age(task.createdAt)), short(age(task.finishedAt)), task.status === "scheduled" || task.status === "retrying" ? until(task.runAt) : ""];
    const drawn = `${task.sequence} ${task.status} ${task.bytesDone} ${task.rate} ${task.eta} ${isPicked} ${times} ${task.waits} ${columns()}`;
    if (node.$drawn === drawn) return;
    node.$drawn = drawn;
    show(node,
      can("write") ? h("span", { role: "cell", class: "pick" }, h("input", { type: "checkbox", "aria-label": `Select ${title(task)}`, checked: isPicked, onclick: (event) => pick(row.id, event.target.checked, event.shiftKey) })) : null,
      columns().map((one) => h("span", { role: "cell", class: `cell of-${one} ${COLUMNS[one].is ?? ""}` }, COLUMNS[one].cell(task))));
  }

  function drawEnd() {
    const count = rows.rows.length;
    const more = (words) => h("button", { type: "button", onclick: () => { rows.problem = null; rows.barren = 0; rows.more().then(drawAll); drawEnd(); } }, words);
    show(parts.end,
      rows.problem ? failure(rows.problem, () => { rows.problem = null; rows.more().then(drawAll); drawEnd(); })
      : !rows.isRead ? h("p", { class: "loading" }, "Loading…")
      : rows.searchedTo && rows.hasMore && rows.barren >= BARREN ? h("p", { class: "quiet" }, `Searched back to ${time(rows.searchedTo, true)}. `, more("Search on"))
      : rows.searchedTo && rows.hasMore ? h("p", { class: "loading" }, `Searching, back to ${time(rows.searchedTo, true)}…`)
      : !count && !rows.hasMore ? empty(Object.keys(filter).length ? "No task matches." : "There are no tasks yet.", Object.keys(filter).length ? "Change a filter, or clear all." : can("write") ? h("a", { class: "button main", href: "?view=submit" }, "Submit the first one") : "")
      : count >= MOST ? h("p", { class: "quiet" }, `${number(MOST)} rows are read. Narrow the list by time to see older ones.`)
      : rows.isCut ? h("p", { class: "quiet" }, `The newest ${number(count)} are shown. This server gives no further pages.`)
      : rows.hasMore ? h("p", { class: "loading" }, "Reading more…") : h("p", { class: "quiet" }, rows.isWhole && count > 20 ? "That is all." : ""));
  }

  // MARK: What changes

  // A finger leaves no pointer behind.
  let isPointed = false;
  body.addEventListener("pointerover", (event) => { isPointed = event.pointerType === "mouse"; });
  const isTouched = () => isPointed && body.matches(":hover") || body.contains(document.activeElement) && document.activeElement.matches(":focus-visible");

  function settle() {
    // The rows of a view that is gone have no place on the page.
    if (isGone) return;
    const { from } = range(), isAtTop = scrollY <= 4 || from === 0;
    // The rows that are seen are not exchanged for others that were not asked for.
    if (isTouched() || rows.isTorn && (!isAtTop || selected.size)) { drawPill(); return drawRows(); }
    if (isAtTop && !selected.size && !isAll) rows.shorten();
    // Rows above those that are seen move nothing, neither new ones nor those that leave.
    const moved = rows.apply(from);
    if (moved && !isAtTop) scrollBy(0, moved * rowHeight());
    // Nobody acts on a task that is not in the list any more.
    if (selected.size) { const ids = new Set(rows.rows.map((row) => row.id)); selected = new Set([...selected].filter((id) => ids.has(id))); }
    drawPill();
    drawHead();
    drawTop();
    drawRows();
    drawChoice();
  }

  function drawPill() {
    show(parts.pill, rows.waiting ? h("button", { type: "button", class: "pill", onclick: () => { rows.apply(0); scrollTo(0, 0); drawAll(); drawPill(); } }, icon("up"), `${number(rows.waiting, rows.isTorn)} new`) : null);
  }

  async function refresh() {
    const { from, to } = range(), mine = rows;
    try {
      // Of a rare thing, the rows that are seen are on many pages.
      for (let at = Math.min(from, rows.rows.length - 1), reads = 0; reads < PAGES_AT_ONCE; reads += 1) {
        at = await mine.refresh(at);
        if (at >= Math.min(to, mine.rows.length)) break;
      }
      settle();
    } catch { /* The head of the page says that the server is away. */ }
  }

  let soon = null;
  function refreshSoon(delay) {
    if (soon) return;
    soon = setTimeout(async () => { await refresh(); soon = null; }, delay);
  }

  const onTasks = (event) => {
    if (!rows.isRead || rows.isUp) return;
    isCut = Boolean(event.detail.searchedTo);
    rows.merge(event.detail);
    settle();
  };
  const onOverview = () => drawHead();
  live.addEventListener("tasks", onTasks);
  live.addEventListener("overview", onOverview);
  const onBack = () => { if (rows.problem) { rows.problem = null; rows.more().then(drawAll); } else refreshSoon(0); };
  live.addEventListener("back", onBack);
  const onScroll = () => { if (!overHead) overHead = requestAnimationFrame(() => { overHead = 0; drawRows(); }); };
  addEventListener("scroll", onScroll, { passive: true });
  addEventListener("resize", onScroll);
  body.addEventListener("pointerleave", () => { isPointed = false; settle(); });
  // The stream tells the first hundred, and not all of those if it searched for them; others that are seen are asked for.
  timer = setInterval(() => { if (!document.hidden && rows.isRead && (rows.isUp || isCut || range().to > 100)) refreshSoon(0); else if (!document.hidden) drawRows(); }, 2000);
  view.onGone(() => {
    isGone = true;
    remember();
    clearInterval(timer);
    clearTimeout(searching);
    for (const [type, run] of [["tasks", onTasks], ["overview", onOverview], ["back", onBack]]) live.removeEventListener(type, run);
    removeEventListener("scroll", onScroll);
    removeEventListener("resize", onScroll);
  });

  // The heads stay in sight while the page scrolls, so they and the rows scroll sideways each by themselves, to the same place.
  let place = 0;
  const follow = (one, other) => one.addEventListener("scroll", () => {
    // What only follows does not lead back: that would end a smooth scroll.
    if (Math.abs(one.scrollLeft - place) < 1) return;
    place = other.scrollLeft = one.scrollLeft;
  }, { passive: true });
  follow(top, sideways);
  follow(sideways, top);

  // MARK: Selection

  let lastPicked = null;
  function pick(id, isOn, isRange) {
    isAll = false;
    const ids = rows.rows.map((row) => row.id), [a, b] = [ids.indexOf(lastPicked), ids.indexOf(id)];
    for (const one of isRange && a >= 0 ? ids.slice(Math.min(a, b), Math.max(a, b) + 1) : [id]) isOn ? selected.add(one) : selected.delete(one);
    lastPicked = id;
    drawTop();
    drawRows();
    drawChoice();
  }

  function drawChoice() {
    const count = isAll ? total() : selected.size;
    parts.choice.classList.toggle("is-on", isAll || selected.size > 0);
    if (!isAll && !selected.size) return show(parts.choice);
    const picked = rows.rows.filter((row) => selected.has(row.id) && row.task).map((row) => row.task);
    const names = Object.keys(ACTIONS).filter((name) => isAll || selected.size > picked.length || picked.some((task) => ACTIONS[name].states.includes(task.state)));
    // From the oldest on: in this order they get their places in their queues.
    const inOrder = () => {
      const shown = rows.rows.map((row) => row.id).filter((id) => selected.has(id));
      return [...new Set([...(filter.sort === "createdAt" ? shown : shown.reverse()), ...selected])];
    };
    const drop = () => { selected = new Set(); isAll = false; drawTop(); drawRows(); drawChoice(); };
    show(parts.choice,
      h("p", {}, h("b", {}, isAll ? count === null ? "All that match" : `All ${number(count)} that match` : `${number(selected.size)} selected`)),
      !isAll && (rows.hasMore || rows.rows.length > selected.size) ? h("button", { type: "button", class: "link", onclick: () => { isAll = true; drawRows(); drawChoice(); } }, total() === null ? "Select all that match" : `Select all ${number(total())} that match`) : null,
      h("span", { class: "tools" }, names.map((name) => h("button", { type: "button", class: ACTIONS[name].isBad ? "bad-line" : null, "data-action": name, onclick: async () => {
        if (!isAll && picked.length === 1 && selected.size === 1) {
          const { id } = picked[0];
          if (acting.has(id)) return;
          acting.add(id);
          if (await act(picked[0], name)) { selected.delete(id); drawAll(); }
          acting.delete(id);
          return;
        }
        if (!isAll && selected.size > 10_000) { toast("At most 10,000 rows can be named one by one. Narrow the list, and select all that match.", { isBad: true }); return; }
        const words = isAll ? "all that match" : plural(selected.size, "task");
        if (await actOnMany(name, isAll ? { filter: operationFilter() } : { ids: inOrder() }, words)) { drop(); refreshSoon(300); }
      } }, ACTIONS[name].words))),
      h("button", { type: "button", class: "plain", "aria-label": "Clear the selection", onclick: drop }, icon("close")));
  }

  function operationFilter() {
    const wanted = {};
    for (const one of FILTERS) if (filter[one]) wanted[one] = ["state", "queue", "kind", "host", "code", "label"].includes(one) ? filter[one].split(",") : filter[one];
    return wanted;
  }

  // MARK: Keys

  view.keys = (event) => {
    if (!areKeys(event)) return false;
    const at = rows.rows.findIndex((row) => row.id === focused);
    if (event.key === "j" || event.key === "k" || event.key === "ArrowDown" || event.key === "ArrowUp") {
      const { from } = range(), by = event.key === "j" || event.key === "ArrowDown" ? 1 : -1;
      const next = Math.max(0, Math.min(rows.rows.length - 1, at < 0 ? from : at + by));
      if (!rows.rows[next]) return true;
      focused = rows.rows[next].id;
      const height = rowHeight(), y = list.getBoundingClientRect().top + scrollY + top.offsetHeight + next * height;
      const edge = document.getElementById("top").offsetHeight + top.offsetHeight;
      if (y < scrollY + edge) scrollTo(0, y - edge);
      if (y + 2 * height > scrollY + innerHeight) scrollTo(0, y + 2 * height - innerHeight);
      drawRows();
      body.querySelector(`[data-id="${focused}"] a.name`)?.focus({ preventScroll: true });
      return true;
    }
    if (event.key === "x" && at >= 0 && can("write")) { pick(focused, !selected.has(focused), false); return true; }
    if (event.key === "Enter" && at >= 0 && !event.target.closest?.("a, button, summary")) { go(taskHref(focused)); return true; }
    if (event.key === "Escape" && (selected.size || isAll)) { selected = new Set(); isAll = false; drawAll(); return true; }
    return false;
  };
  const areKeys = (event) => event.key.length > 1 ? event.key === "Enter" || event.key === "Escape" || body.contains(document.activeElement) : areKeysOn();
  body.addEventListener("focusin", (event) => { const id = event.target.closest(".row")?.dataset.id; if (id) focused = id; });
  // A click anywhere in a row opens it, but not the end of selecting text.
  body.addEventListener("click", (event) => {
    const id = event.target.closest(".row")?.dataset.id;
    if (id && !event.target.closest("a, input, button") && !String(getSelection())) go(taskHref(id));
  });

  view.update = read;
  read({ isBack: true });
}
