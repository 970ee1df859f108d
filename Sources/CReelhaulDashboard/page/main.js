// The page around the views: navigation, what the stream says, keys, the theme, and who is signed in.
import { can, onSignInWanted, readSession, seesAll, session, signOut } from "./api.js";
import { h, icon, show, text } from "./dom.js";
import { number, short } from "./format.js";
import { live } from "./live.js";
import { go, hasPast, href, onRoute, saved, tasksHref, view } from "./route.js";
import { areKeysOn, help, palette } from "./palette.js";

const $ = (selector) => document.querySelector(selector);

const VIEWS = [
  ["overview", "Overview", "./"], ["tasks", "Tasks", tasksHref()], ["workers", "Workers"], ["queues", "Queues"], ["hosts", "Hosts"],
  ["storages", "Storage"], ["failures", "Failures"], ["dead-letters", "Dead letters"], ["operations", "Operations"],
].map(([name, words, target]) => ({ name, words, target: target ?? href({ view: name }) }));

/// The views that whoever is signed in may see. Some tell of all queues.
const views = () => VIEWS.filter(({ name }) => (name !== "dead-letters" || can("admin")) && (seesAll() || !["workers", "hosts", "storages", "dead-letters"].includes(name)));

const MODULES = {
  overview: "./overview.js", tasks: "./tasks.js", task: "./task.js", submit: "./submit.js", workers: "./fleet.js", queues: "./fleet.js", hosts: "./fleet.js",
  storages: "./fleet.js", failures: "./trouble.js", "dead-letters": "./trouble.js", operations: "./operations.js", "sign-in": "./signin.js",
};

// MARK: Views

let shown = { name: null, key: null, gone: [] };

async function follow({ isBack = false, isReplaced = false } = {}) {
  const name = needsSignIn ? "sign-in" : Object.hasOwn(MODULES, view()) ? view() : "overview";
  drawNav();
  // The same view with another narrowing goes on, and keeps its focus; it says false if it must begin anew.
  if (shown.name === name && shown.update && shown.update({ isBack, isReplaced }) !== false) return;
  for (const run of shown.gone) run();
  const mine = { name, gone: [], onGone(run) { this.gone.push(run); }, root: h("div", { class: `view view-${name}` }) };
  const isFirst = shown.name === null;
  shown = mine;
  document.body.classList.toggle("is-signed-out", name === "sign-in");
  closeMenu();
  let module;
  try {
    module = await import(MODULES[name]);
  } catch {
    if (shown !== mine) return;
    // The browser remembers a module that failed: only a new page asks again.
    mine.root.append(h("div", { class: "empty is-error" }, h("p", { class: "strong" }, "This view could not be loaded."), h("p", {}, h("button", { type: "button", onclick: () => location.reload() }, "Load the page again"))));
    $("#main").replaceChildren(mine.root);
    reloadOnceBack(mine, new URL(MODULES[name], import.meta.url));
    return;
  }
  if (shown !== mine) return;
  $("#main").replaceChildren(mine.root);
  module.open(name, mine);
  if (!isBack) scrollTo(0, 0);
  // Those who hear the page are told where they are.
  if (!isFirst && name !== "sign-in") mine.root.querySelector("h1")?.focus({ preventScroll: true });
  const heading = mine.root.querySelector("h1")?.textContent;
  if (heading) document.title = name === "overview" ? "Reelhaul" : `${heading} · Reelhaul`;
}

/// Loads the page again once the server gives `module`, if it was seen not to give it.
async function reloadOnceBack(mine, module) {
  let wasAway = false;
  while (shown === mine) {
    const isThere = await fetch(module).then((response) => response.ok, () => false);
    if (shown !== mine) return;
    if (isThere) return wasAway ? location.reload() : undefined;
    wasAway = true;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// MARK: Navigation

let overview = null;

function drawNav() {
  const at = view() === "task" ? "tasks" : view();
  const counts = overview?.counts;
  const failed = counts?.failed;
  const notes = {
    tasks: counts && number(Object.values(counts).reduce((a, b) => a + b, 0)), workers: overview && number(overview.workers),
    failures: failed ? number(failed) : null,
  };
  show($("#side nav"), views().map((item) => h("a", { href: item.target, "data-key": item.name, "aria-current": item.name === at ? "page" : null }, icon(item.name === "failures" ? "failed" : item.name), h("span", {}, item.words), notes[item.name] ? h("small", { class: item.name === "failures" ? "is-failed" : null }, notes[item.name]) : null)),
    h("p", { class: "rule", "data-key": "rule" }), saved().map((one) => h("a", { href: one.query, "data-key": `saved ${one.name}`, "aria-current": location.search === one.query ? "page" : null }, icon("star"), h("span", {}, one.name))));
  show($("#foot"),
    session.isSignedIn ? h("p", { class: "who" }, h("span", {}, session.name), h("small", {}, session.queues?.length ? `${session.scope}, ${session.queues.join(", ")}` : session.scope)) : null,
    h("div", { class: "line" },
      h("button", { type: "button", class: "plain", title: "Theme", "aria-label": `Theme: ${theme()}`, onclick: nextTheme }, icon(theme()), h("span", {}, { auto: "Auto", dark: "Dark", light: "Light" }[theme()])),
      h("button", { type: "button", class: "plain", title: "Keys and help", "aria-label": "Keys and help", onclick: help }, "?"),
      session.isSignedIn ? h("button", { type: "button", class: "plain", "aria-label": "Sign out", title: "Sign out", onclick: leave }, icon("out")) : null));
  $("#new").hidden = !can("write") || view() === "submit";
}

addEventListener("reelhaul-saved", drawNav);

const find = () => palette({ views: views(), nextTheme });

function closeMenu() {
  document.body.classList.remove("has-menu");
  $("#menu").setAttribute("aria-expanded", "false");
}
$("#menu").append(icon("menu"));
$("#find .slot").append(icon("search"));
$("#new .slot").append(icon("plus"));
$("#menu").addEventListener("click", () => $("#menu").setAttribute("aria-expanded", String(document.body.classList.toggle("has-menu"))));
$("#page").addEventListener("click", closeMenu);
$("#side").addEventListener("click", (event) => { if (event.target.closest("a")) closeMenu(); });
$("#find").addEventListener("click", find);
$(".skip").addEventListener("click", (event) => { event.preventDefault(); $("#main").focus(); });

// MARK: The theme

const THEMES = ["auto", "dark", "light"];
const theme = () => document.documentElement.dataset.theme ?? "auto";

function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try { localStorage.setItem("reelhaul.theme", next); } catch { /* It holds until the page is closed. */ }
  drawNav();
}

// MARK: What the stream says

const STATES = {
  connecting: ["connecting", "Connecting to the server."], live: ["live", "Changes are shown as they happen."], behind: ["behind", "The server has said nothing for a while."],
  cut: ["cut off", "The connection is cut. It is tried again."], trouble: ["behind", "The server cannot read the fleet's state."],
  refused: ["not live", "The server does not follow this view: its address may be wrong."],
};
let lostAt = null;

function drawTrouble() {
  const [words, long] = STATES[live.state];
  $("#live").className = `is-${live.state}`;
  $("#live").title = long;
  text($("#live .words"), words);
  const isLost = live.state === "cut" || live.state === "trouble" || live.state === "behind" || live.state === "refused";
  lostAt = isLost ? lostAt ?? Date.now() : null;
  const seen = live.toldAt ? `What is shown is from ${new Date(live.toldAt).toLocaleTimeString("en-GB")}.` : "";
  const notes = [];
  // A server that restarts is back within a moment.
  if (isLost && Date.now() - lostAt > 1500) notes.push({ cut: `The connection to the server is cut. ${seen} It is tried again by itself.`, trouble: `The server cannot read the fleet's state. ${seen}`, behind: `The server has said nothing for a while. ${seen}`, refused: "The server answers, but does not follow this view: its address may be wrong." }[live.state]);
  else if (overview && live.state === "live") {
    if (overview.eventsBehindSeconds > 60) notes.push(`Events are ${short(overview.eventsBehindSeconds)} behind: Kafka does not take them, or no worker publishes them.`);
  }
  show($("#trouble"), notes.map((note) => h("p", { "data-key": note }, note)));
}

live.addEventListener("state", drawTrouble);
live.addEventListener("overview", (event) => { overview = event.detail; drawNav(); drawTrouble(); });
setInterval(drawTrouble, 1000);

// MARK: Who is signed in

let needsSignIn = false;

onSignInWanted(() => {
  if (needsSignIn) return;
  needsSignIn = true;
  live.stop();
  session.isSignedIn = false;
  follow();
});

async function leave() {
  await signOut();
  location.reload();
}

/// Opens the view for who is signed in. Until the server has said what they may do, nothing is offered, and it is asked again.
async function begin() {
  needsSignIn = !await readSession();
  if (shown.name === null || needsSignIn || session.scope) {
    shown.name = null;
    drawNav();
    follow();
  }
  if (!needsSignIn && !session.scope) setTimeout(() => { if (!needsSignIn) begin(); }, 2000);
}

// What was read for somebody else goes.
addEventListener("reelhaul-signed-in", () => location.reload());

// MARK: Keys

let lastKey = { key: "", at: 0 };
addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!needsSignIn) find();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || needsSignIn || document.querySelector("dialog[open]")) return;
  if (event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (shown.keys?.(event)) { event.preventDefault(); return; }
  if (!areKeysOn()) return;
  const jump = lastKey.key === "g" && Date.now() - lastKey.at < 1500 ? { o: "overview", t: "tasks", w: "workers", q: "queues", h: "hosts", s: "storages", f: "failures", d: "dead-letters", p: "operations" }[event.key] : null;
  lastKey = { key: event.key, at: Date.now() };
  if (jump) { const item = views().find(({ name }) => name === jump); if (item) go(item.target); }
  else if (event.key === "/") { const box = shown.root?.querySelector("input[type=search]"); box ? box.focus() : find(); }
  else if (event.key === "?") help();
  else if (event.key === "n" && can("write")) go(href({ view: "submit" }));
  else if (event.key === "Escape" && view() === "task") hasPast() ? history.back() : go(tasksHref());
  else return;
  event.preventDefault();
});

// MARK: The start

onRoute(follow);
drawNav();
begin();

