// Submitting: one form with what each kind has, several URLs at once, or a file of JSON lines.
import { can, get, key, post } from "./api.js";
import { h, icon, show } from "./dom.js";
import { local, number, parse, parseBytes, plural, stringify } from "./format.js";
import { commandLine, hidden, submission } from "./command.js";
import { live } from "./live.js";
import { param, taskHref, tasksHref } from "./route.js";
import { bar, confirm, copy, empty, field as labeled, head, option, panel, toast } from "./ui.js";

const KINDS = {
  download: { words: "Download", source: "https://example.org/film.mp4", destination: "storage://default/films/", note: "From http(s):// or s3:// to a storage." },
  upload: { words: "Upload", source: "storage://default/film.mp4", destination: "s3://films/film.mp4", note: "From a storage to S3, HTTP or tus." },
  copy: { words: "Copy", source: "https://example.org/film.mp4", destination: "s3://films/film.mp4", note: "From anywhere to anywhere." },
  delete: { words: "Delete", source: "storage://default/old.mp4", note: "A file, an object or an upload, wherever it is." },
  own: { words: "Own kind", source: "", destination: "", note: "A kind that a handler of yours carries out." },
};
// Lines of `NAME=VALUE`, or with another mark.
const linesOf = (text) => (text ?? "").split("\n").map((line) => line.trim()).filter(Boolean);
const pairs = (text, mark) => Object.fromEntries(linesOf(text).map((line) => { const at = line.indexOf(mark); return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + mark.length).trim()]; }));

/// Whether a line can have this pair: one whose name has a `=`, or one of several lines, would be read as another.
const isLine = ([name, value]) => { const read = Object.entries(pairs(`${name}=${value}`, "=")); return read.length === 1 && read[0][0] === name && read[0][1] === value; };

/// What is wrong with a field.
class Fault extends Error {
  constructor(field, words) { super(words); this.field = field; }
}

// A request takes at most 10,000 lines and 4 MiB.
const LINES = 5000, BYTES = 3 << 20;

export function open(_, view) {
  live.follow("state=running&limit=1");
  if (!can("write")) return show(view.root, head("Submit"), empty("Your token may not submit tasks.", "It has the scope read. A token with the scope write may."));
  let kind = "download", isMany = false, lost = [], answer = null, isBusy = false, sent = {}, preview = "", fault = null;
  // `kept` has the labels and metadata of a copied task that no line can have.
  const values = {}, kept = {};
  const draw = () => show(view.root, page());
  const set = (name) => (event) => { values[name] = event.target.type === "checkbox" ? event.target.checked : event.target.value; previewSoon(); };
  const input = (name, more = {}) => h("input", { name, autocomplete: "off", spellcheck: "false", value: values[name] ?? "", oninput: set(name), ...more });
  const field = (label, input, help) => labeled(label, input, help, fault?.field === input.name && fault.message);
  const check = (name, words) => h("label", { class: "check" }, h("input", { type: "checkbox", name, checked: Boolean(values[name]), onchange: set(name) }), h("span", {}, words));
  const choice = (name, choices) => h("select", { name, onchange: set(name) }, choices.map(([value, words]) => option(value, values[name] ?? "", words)));
  let timer;
  const previewSoon = () => { clearTimeout(timer); timer = setTimeout(draw, 120); };
  const from = param("from");
  if (from) fill(from);
  draw();
  // What was typed stays.
  view.update = () => param("from") === from;

  async function fill(id) {
    try {
      const task = await get(`v1/tasks/${encodeURIComponent(id)}`), from = submission(task), p = from.parameters ?? {};
      kind = Object.hasOwn(KINDS, from.kind) ? from.kind : "own";
      lost = hidden(task);
      Object.assign(values, { source: from.source, destination: from.destination, queue: from.queue === "default" ? "" : from.queue, priority: from.priority || "", kind: from.kind, ifExists: from.ifExists === "fail" ? "" : from.ifExists, credential: from.credential, rate: from.rate ?? "", connections: from.connections === 16 ? "" : from.connections, maxAttempts: from.maxAttempts === 8 ? "" : from.maxAttempts, retryAfter: (from.retryAfter ?? []).join(","), after: (from.after ?? []).join(" "), notBefore: local(from.notBefore), notify: from.notify, sha256: from.expect?.sha256, md5: from.expect?.md5, bytes: from.expect?.bytes ?? "", allowUnframed: from.allowUnframed, labels: split("labels", from.labels), headers: (from.headers ?? []).map((name) => `${name}: ***`).join("\n"), recursive: p.recursive, method: p.method, partSize: p.partSize ?? "", contentType: p.contentType, storageClass: p.storageClass, checksum: p.checksum, creationWithUpload: p.creationWithUpload, toCredential: p.toCredential, metadata: split("metadata", p.metadata), parameters: kind === "own" && from.parameters !== null ? stringify(from.parameters, "  ") : "" });
      view.root.replaceChildren();
      draw();
    } catch (problem) { answer = { problem: `The task to copy could not be read: ${problem.message}` }; draw(); }
  }

  /// The pairs that lines can have, as lines. The field `name` keeps the others.
  function split(name, pairs = {}) {
    const all = Object.entries(pairs ?? {});
    kept[name] = Object.fromEntries(all.filter((pair) => !isLine(pair)));
    return all.filter(isLine).map((pair) => pair.join("=")).join("\n");
  }

  function page() {
    [preview, fault] = ["", null];
    try { preview = tasks().slice(0, 3).map(commandLine).join("\n"); } catch (error) { fault = error; }
    return [
      head("Submit", null, h("div", { class: "choices", role: "group", "aria-label": "How" }, [["One form", false], ["JSON lines", true]].map(([words, value]) => h("button", { type: "button", "aria-pressed": String(isMany === value), onclick: () => { isMany = value; answer = null; draw(); } }, words)))),
      lost.length ? h("p", { class: "notice", "data-key": "lost" }, `This is a copy. The fleet does not show what may be a secret. Put it back in place of ***, or delete it: ${lost.join("; ")}.`) : null,
      isMany ? many() : form(), result(),
    ];
  }

  // MARK: One form

  function form() {
    const own = kind === "own", to = values.destination ?? "", isUp = kind === "upload" || kind === "copy" && !to.startsWith("storage://");
    return h("form", { class: "submit", "data-key": "form", onsubmit: (event) => { event.preventDefault(); sendForm(); } },
      h("div", { class: "choices kinds", role: "group", "aria-label": "Kind" }, Object.entries(KINDS).map(([name, one]) => h("button", { type: "button", "aria-pressed": String(name === kind), onclick: () => { kind = name; answer = null; draw(); } }, one.words))),
      h("p", { class: "quiet" }, KINDS[kind].note),
      own ? field("Kind", input("kind", { required: true, placeholder: "thumbnails" })) : null,
      field(own ? "Source, if the kind has one" : "Source URLs, one a line", h("textarea", { name: "source", readonly: isBusy, rows: String(Math.min(10, Math.max(2, (values.source ?? "").split("\n").length))), required: !own, spellcheck: "false", placeholder: KINDS[kind].source, oninput: set("source"), value: values.source ?? "" })),
      kind === "delete" ? null : field("Destination", input("destination", { required: kind === "upload" || kind === "copy", placeholder: KINDS[kind].destination }), kind === "download" ? "Empty: storage://default/ and the source's name. A name that ends in / is a folder." : own ? null : "A name that ends in / is a folder."),
      own ? field("Parameters, JSON", h("textarea", { name: "parameters", rows: "4", spellcheck: "false", placeholder: "{}", oninput: set("parameters"), value: values.parameters ?? "" })) : null,
      kind === "delete" ? check("recursive", "with all it holds (a directory, or a key that ends in /)") : null,
      group("Order and queue", h("div", { class: "grid" }, field("Queue", input("queue", { placeholder: "default" })), field("Priority", input("priority", { type: "number", min: "-1000", max: "1000", placeholder: "0" })), field("Not before", input("notBefore", { type: "datetime-local", step: "any" })), field("After these tasks", input("after", { placeholder: "ids" })), field("Web hook", input("notify", { placeholder: "https://example.org/hook" }))), field("Labels, K=V a line", h("textarea", { name: "labels", rows: "2", oninput: set("labels"), value: values.labels ?? "" })), keeps("labels"), check("paused", "add it without starting it")),
      group("Checks", h("div", { class: "grid" }, field("SHA-256", input("sha256")), field("MD5", input("md5")), field("Bytes", input("bytes", { inputmode: "numeric" })), kind === "delete" ? null : field("If the destination exists", choice("ifExists", [["", "fail"], ["skip", "skip"], ["replace", "replace"]]))), kind === "download" ? check("allowUnframed", "accept a file whose end only the connection's end marks, if it proves whole") : null),
      group("Transfer", h("div", { class: "grid" }, field("Credential", input("credential")), kind === "copy" ? field("Credential of the destination", input("toCredential")) : null, field("At most bytes a second", input("rate", { placeholder: "20MB" })), field("At most connections", input("connections", { type: "number", min: "1", placeholder: "16" })), field("Attempts", input("maxAttempts", { type: "number", min: "1", placeholder: "8" })), field("Waits between attempts, s", input("retryAfter", { placeholder: "5,30,120" }))), field("Header fields, K: V a line", h("textarea", { name: "headers", rows: "2", spellcheck: "false", oninput: set("headers"), value: values.headers ?? "" }), "Secrets belong in a credential.")),
      isUp ? group("Upload", h("div", { class: "grid" }, field("Method", choice("method", [["", "by default"], ["PUT", "PUT"], ["POST", "POST"]])), field("Part size", input("partSize", { placeholder: "64MiB" })), field("Content type", input("contentType", { placeholder: "video/mp4" })), field("Storage class", input("storageClass")), field("Checksum", choice("checksum", [["", "what it can"], ["crc32c", "crc32c"], ["sha256", "sha256"], ["none", "none"]]))), check("creationWithUpload", "sent with the creation of its upload (tus, small files; may be there twice if the answer is lost)"), field("Metadata, K=V a line", h("textarea", { name: "metadata", rows: "2", oninput: set("metadata"), value: values.metadata ?? "" })), keeps("metadata")) : null,
      preview ? h("div", { class: "code" }, h("pre", { tabindex: "0", "aria-label": "The same as command lines" }, preview), h("button", { type: "button", onclick: () => copy(tasks().map(commandLine).join("\n")) }, icon("copy"), "Copy")) : fault ? h("p", { class: "quiet" }, "The command line is shown once every field is right.") : null,
      h("menu", {}, h("button", { class: "main", disabled: isBusy }, isBusy ? "Submitting…" : sources().length > 1 ? `Submit ${plural(sources().length, "task")}` : "Submit")));
  }

  // It opens where a field in it is wrong.
  function group(title, ...children) {
    const fields = h("div", {}, children);
    return h("details", { class: "group", "data-key": title, open: fields.querySelector("[aria-invalid]") !== null }, h("summary", {}, title), fields);
  }

  function keeps(name) {
    const all = kept[name] ?? {};
    return Object.keys(all).length ? h("p", { class: "quiet break" }, "Copied as they are, because no line can have them: ", h("code", {}, JSON.stringify(all)), h("button", { type: "button", class: "link", onclick: () => { kept[name] = {}; draw(); } }, "Leave them out")) : null;
  }

  function sources() { return linesOf(values.source); }

  /// The tasks that the form means, without what is empty.
  function tasks() {
    const v = (name) => { const value = values[name]; return typeof value === "string" ? value.trim() || undefined : value || undefined; };
    const count = (name) => v(name) === undefined ? undefined : parseBytes(String(v(name))) ?? wrong(name, "This is no number of bytes. Examples: 500, 20MB, 64MiB.");
    const whole = (name) => v(name) === undefined ? undefined : Number(v(name));
    const filled = (object) => { const left = Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && !(typeof value === "object" && !Array.isArray(value) && !Object.keys(value).length))); return Object.keys(left).length ? left : undefined; };
    const list = sources(), to = kind === "delete" ? undefined : v("destination");
    if (lost.length) for (const name of ["source", "destination", "notify"]) if (v(name)?.includes("***")) wrong(name, "*** stands for what the fleet does not show. Put it back.");
    if (list.length > 1 && to && !to.endsWith("/") && kind !== "own") wrong("destination", "Several URLs need a folder, a destination that ends in /.");
    const parameters = kind === "own" ? v("parameters") === undefined ? undefined : json(v("parameters"))
      : kind === "delete" ? filled({ recursive: v("recursive") })
      : kind === "upload" || kind === "copy" ? filled({ method: v("method"), partSize: count("partSize"), contentType: v("contentType"), storageClass: v("storageClass"), checksum: v("checksum"), creationWithUpload: v("creationWithUpload"), toCredential: kind === "copy" ? v("toCredential") : undefined, metadata: { ...kept.metadata, ...pairs(values.metadata, "=") } }) : undefined;
    const common = {
      kind: kind === "own" ? v("kind") : kind, priority: whole("priority"), queue: v("queue"), after: v("after")?.split(/[\s,]+/), notBefore: v("notBefore") && new Date(v("notBefore")).toISOString(), notify: v("notify"),
      expect: filled({ sha256: v("sha256"), md5: v("md5"), bytes: count("bytes") }), ifExists: kind === "delete" ? undefined : v("ifExists"), headers: filled(headers()), maxAttempts: whole("maxAttempts"), retryAfter: waits(v("retryAfter")),
      rate: count("rate"), connections: whole("connections"), credential: v("credential"), labels: filled({ ...kept.labels, ...pairs(values.labels, "=") }), paused: v("paused"), allowUnframed: kind === "download" ? v("allowUnframed") : undefined, parameters,
    };
    return (list.length ? list : kind === "own" ? [undefined] : []).map((source) => filled({ ...common, source, destination: to?.endsWith("/") && source ? to + (source.split(/[?#]/)[0].split("/").filter(Boolean).pop() ?? "") : to }));
  }

  function json(text) { try { return parse(text); } catch { return wrong("parameters", "This is no JSON."); } }
  function wrong(name, words) { throw new Fault(name, words); }

  function headers() {
    const all = pairs(values.headers, ":"), unknown = Object.keys(all).filter((name) => all[name] === "***");
    if (lost.length && unknown.length) wrong("headers", `The fleet does not show the value of ${unknown.join(", ")}. Put it back in place of ***, or delete the line.`);
    return all;
  }

  function waits(text) {
    const all = text?.split(/[\s,]+/).filter(Boolean);
    if (all?.some((one) => !/^\d+(\.\d+)?$/.test(one))) wrong("retryAfter", "These are no numbers of seconds. Example: 5,30,120.");
    return all?.map(Number);
  }

  async function sendForm() {
    draw();
    if (!fault) return sendField("source", sources(), tasks().map((task) => stringify(task)));
    view.root.querySelector(`[name="${fault.field}"]`)?.focus();
  }

  /// Sends what the field `name` has in `texts`, as `lines`.
  async function sendField(name, texts, lines) {
    const outcome = await sendLines(lines);
    if (!outcome) return;
    // Only the wrong ones stay, so that the right ones are not submitted twice. While some were not sent, all stay as they are: the
    // same text has the same keys.
    if (!outcome.done || outcome.problem) return tell();
    values[name] = outcome.wrong.map((one) => texts[one.line - 1]).join("\n");
    draw();
    const area = view.root.querySelector(`[name=${name}]`);
    if (area) area.value = values[name];
    tell();
  }

  /// The answer may be below what is seen.
  function tell() {
    const place = view.root.querySelector(".answer");
    place?.scrollIntoView({ block: "nearest" });
    place?.focus({ preventScroll: true });
  }

  /// What among `lines` destroys something: tasks that delete, and commands that cancel or remove tasks.
  function destructive(lines) {
    return lines.flatMap((line) => {
      let read = null;
      try { read = JSON.parse(line); } catch { /* It will be refused. */ }
      const one = { ...read, ...read?.task };
      return one.kind === "delete" || one.command === "cancel" || one.command === "remove" ? [one] : [];
    });
  }

  /// Whether nothing is destroyed, or somebody agrees.
  async function isAgreed(lines) {
    const found = destructive(lines), what = ({ kind, source, parameters, command, taskId }) => kind === "delete" ? `${source}${parameters?.recursive ? ", with all it holds" : ""}` : `${command} the task ${taskId}`;
    if (!found.length) return true;
    const isOne = found.length === 1, others = lines.length - found.length, areDeletes = found.every(({ kind }) => kind === "delete");
    return confirm(areDeletes ? isOne ? "Delete this?" : `Delete these ${number(found.length)}?` : `Delete, cancel or remove ${isOne ? "this" : `these ${number(found.length)}`}?`, h("div", {},
      h("ul", { class: "plain-list" }, found.slice(0, 6).map((one) => h("li", {}, h("span", {}, what(one))))),
      found.length > 6 ? h("p", { class: "quiet" }, `and ${plural(found.length - 6, "other")}`) : null,
      h("p", { class: "is-warning" }, "This cannot be undone."),
      others ? h("p", { class: "quiet" }, `${plural(others, "other line")} will be sent too.`) : null), areDeletes ? isOne ? "Delete it" : `Delete ${number(found.length)}` : "Send them", { isBad: true });
  }

  /// Sends lines in requests of a bounded size. What was sent before and had no answer is sent as the same. Returns what became of
  /// them, or null while others are sent.
  async function sendLines(lines) {
    if (!isBusy && !await isAgreed(lines)) return null;
    if (isBusy) { toast("Others are being submitted. Try again after that.", { isBad: true }); return null; }
    isBusy = true;
    const outcome = answer = { done: 0, all: lines.length, ids: [], wrong: [] };
    draw();
    const text = lines.join("\n");
    if (sent.text !== text) sent = { text, key: key() };
    for (let from = 0; from < lines.length;) {
      let to = from, size = 0;
      while (to < lines.length && to - from < LINES && size + lines[to].length < BYTES) { size += 4 * lines[to].length; to += 1; }
      to = Math.max(to, from + 1);
      try {
        const told = await post("v1/tasks", lines.slice(from, to).join("\n"), { type: "application/x-ndjson", headers: { "Idempotency-Key": `${sent.key}-${from}` } }).catch((problem) => problem.status === 422 && problem.body.results ? problem.body : Promise.reject(problem));
        for (const one of told.results) one.error ? outcome.wrong.push({ line: from + one.line, error: one.error, text: lines[from + one.line - 1] }) : outcome.ids.push(one.id);
      } catch (problem) {
        outcome.problem = problem.message;
        break;
      }
      outcome.done = from = to;
      draw();
    }
    isBusy = false;
    // The page may show something else by now.
    answer = outcome;
    if (!outcome.problem) sent = {};
    draw();
    return outcome;
  }

  // MARK: JSON lines

  function many() {
    const take = async (files) => {
      let lines;
      try { lines = linesOf((await Promise.all([...files].map((file) => file.text()))).join("\n")); }
      catch (error) { answer = { problem: `The file cannot be read here: ${error.message}` }; return draw(); }
      if (!lines.length) { answer = { problem: "The file has no lines." }; return draw(); }
      if (await sendLines(lines)) tell();
    };
    const over = (isOver) => (event) => { event.preventDefault(); event.currentTarget.classList.toggle("is-over", isOver); };
    return h("section", { class: "submit", "data-key": "many" },
      h("label", { class: "drop", ondragover: over(true), ondragenter: over(true), ondragleave: over(false), ondrop: (event) => { over(false)(event); take(event.dataTransfer.files); } }, icon("plus"), h("b", {}, "Drop a file of JSON lines here, or choose one"), h("span", { class: "quiet" }, "One task a line, as for reelhaul batch. Right lines are submitted although others are wrong."), h("input", { type: "file", accept: ".jsonl,.ndjson,.json,.txt", multiple: true, disabled: isBusy, onchange: (event) => { take(event.target.files); event.target.value = ""; } })),
      field("Or paste lines", h("textarea", { name: "lines", readonly: isBusy, rows: "6", spellcheck: "false", placeholder: '{"kind":"download","source":"https://example.org/a.mp4"}', oninput: set("lines"), value: values.lines ?? "" })),
      h("menu", {}, h("button", { type: "button", class: "main", disabled: isBusy, onclick: () => { const lines = linesOf(values.lines); if (lines.length) sendField("lines", lines, lines); } }, isBusy ? "Submitting…" : "Submit the lines")));
  }

  function result() {
    if (!answer) return null;
    const { ids = [], wrong: bad = [], problem, done = 0, all = 0 } = answer;
    const told = panel("What became of it", null, h("div", { role: "status" },
      isBusy && all > LINES ? bar(100 * done / all, { label: "Lines sent" }) : null,
      problem ? h("p", { class: "is-error" }, problem, done ? ` ${number(done)} of ${number(all)} lines were sent before. Submit the same again: none is submitted twice.` : "") : null,
      ids.length ? h("p", {}, `${plural(ids.length, "task")} submitted. `, ids.length === 1 ? h("a", { href: taskHref(ids[0]) }, "Watch it") : h("a", { href: tasksHref() }, "See the list")) : isBusy ? h("p", { class: "quiet" }, "Sending…") : null,
      bad.length ? [h("p", { class: "is-error" }, `${plural(bad.length, "line")} ${bad.length === 1 ? "was" : "were"} refused:`), h("ul", { class: "refused" }, bad.slice(0, 100).map((one) => h("li", {}, h("b", {}, `Line ${number(one.line)}: `), one.error, h("code", {}, one.text?.slice(0, 160))))), bad.length > 100 ? h("p", { class: "quiet" }, `and ${number(bad.length - 100)} others`) : null] : null));
    told.classList.add("answer");
    told.tabIndex = -1;
    return told;
  }
}

