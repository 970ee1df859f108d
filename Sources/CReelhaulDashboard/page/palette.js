// The command palette (Ctrl-K): views, saved views, states, actions of the open task, and tasks by name or id. And the help.
import { can, get, taskNamed } from "./api.js";
import { h, icon, show } from "./dom.js";
import { title } from "./format.js";
import { go, href, saved, taskHref, taskId, tasksHref, view } from "./route.js";
import { dialog } from "./ui.js";
import { act, allowed, verb } from "./actions.js";

const STATES = ["running", "queued", "scheduled", "retrying", "blocked", "paused", "failed", "canceled", "succeeded"];

async function items({ views, nextTheme }) {
  const id = view() === "task" ? taskId() : null;
  const task = id ? await get(`v1/tasks/${encodeURIComponent(id)}`).catch(() => null) : null;
  return [
    ...(task ? allowed(task).map((name) => ({ words: `${verb(name)} this task`, note: title(task), icon: "next", run: () => act(task, name) })) : []),
    ...views.map((item) => ({ words: item.words, note: "view", icon: item.name === "failures" ? "failed" : item.name, run: () => go(item.target) })),
    ...(can("write") ? [{ words: "Submit tasks", note: "form", icon: "plus", run: () => go(href({ view: "submit" })) }] : []),
    ...saved().map((one) => ({ words: one.name, note: "saved view", icon: "star", run: () => go(one.query) })),
    ...STATES.map((state) => ({ words: `Tasks ${state}`, note: "list", icon: state, run: () => go(tasksHref({ state })) })),
    { words: "Next theme", note: "auto, dark, light", icon: "auto", run: nextTheme },
    { words: "Keys and help", note: "?", icon: "search", run: help },
  ];
}

/// `page` is what the page around the views offers: its `views`, and `nextTheme`, which goes on to it.
export async function palette(page) {
  if (document.querySelector("dialog.palette")) return;
  let known = [], found = [], shown = [], at = 0, asked = 0, isSearching = false;
  const list = h("ul", { role: "listbox", id: "palette-list", "aria-label": "Results" });
  const input = h("input", {
    type: "text", placeholder: "A view, an action, or a task's name, URL or id", "aria-label": "Search", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", autofocus: true,
    oninput: () => { at = 0; found = []; look(); },
    onkeydown: (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") { at = (at + (event.key === "ArrowDown" ? 1 : -1) + shown.length) % Math.max(1, shown.length); draw(); }
      else if (event.key === "Enter" && shown[at]) choose(shown[at]);
      else return;
      event.preventDefault();
    },
  });
  const node = dialog("Search or jump to", () => [h("div", { class: "find" }, icon("search"), input), list]);
  node.classList.add("palette");
  const choose = (item) => { node.close(); item.run(); };
  const draw = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const fits = known.filter((item) => words.every((word) => `${item.words} ${item.note}`.toLowerCase().includes(word)));
    shown = [...fits.slice(0, words.length ? 6 : 12), ...found];
    if (words.length) shown.push({ words: `Search all tasks for “${input.value.trim()}”`, note: "list", icon: "search", run: () => go(tasksHref({ text: input.value.trim() })) });
    at = Math.min(at, Math.max(0, shown.length - 1));
    show(list, shown.map((item, index) => h("li", { id: `palette-${index}`, role: "option", "aria-selected": String(index === at), onclick: () => choose(item), onpointermove: () => { if (at !== index) { at = index; draw(); } } }, icon(item.icon), h("span", {}, item.words), h("small", {}, item.note))),
      isSearching && !found.length ? h("li", { class: "quiet", role: "presentation" }, "Searching tasks…") : null);
    input.setAttribute("aria-activedescendant", shown.length ? `palette-${at}` : "");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };
  let timer;
  const look = () => {
    clearTimeout(timer);
    const words = input.value.trim(), mine = asked += 1;
    isSearching = words.length > 1;
    draw();
    if (!isSearching) return;
    timer = setTimeout(async () => {
      // A search looks at the newest tasks; by its id, any is found.
      const named = await taskNamed(words);
      const page = named ? { tasks: [named] } : await get(`v1/tasks${href({ text: words, limit: 8 })}`).catch(() => ({ tasks: [] }));
      if (mine !== asked) return;
      isSearching = false;
      found = page.tasks.map((task) => ({ words: title(task), note: task.status ?? task.state, icon: task.status ?? task.state, run: () => go(taskHref(task.id)) }));
      draw();
    }, 180);
  };
  known = await items(page);
  draw();
}

// MARK: Help

/// Keys of one character can be turned off, for those whose software types them.
export const areKeysOn = () => { try { return localStorage.getItem("reelhaul.keys") !== "off"; } catch { return true; } };

const KEYS = [
  ["Ctrl K", "search, jump, act"], ["/", "search in the list"], ["j  k", "next, previous row"], ["Enter", "open the row"], ["x", "select the row"], ["Esc", "leave a field, close, go back"],
  ["n", "submit tasks"], ["g o", "overview"], ["g t", "tasks"], ["g w", "workers"], ["g q", "queues"], ["g f", "failures"], ["g p", "operations"], ["?", "this help"],
];

export function help() {
  dialog("Keys and help", (node) => [
    h("h2", {}, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([keys, words]) => h("div", {}, h("dt", {}, keys.split(/ +/).map((one) => h("kbd", {}, one))), h("dd", {}, words)))),
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: areKeysOn(), onchange: (event) => { try { localStorage.setItem("reelhaul.keys", event.target.checked ? "on" : "off"); } catch { /* It stays on. */ } } }), h("span", {}, "keys of one character are on")),
    h("p", { class: "quiet" }, "What you see is in the address: a link shows the same to somebody else. ", h("a", { href: "v1/openapi.json" }, "The API"), " has all of it for programs."),
    h("menu", {}, h("button", { type: "button", class: "main", onclick: () => node.close() }, "Close")),
  ]);
}

