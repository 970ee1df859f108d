// Numbers, times and JSON as people read them. A clock that is wrong makes no negative time.

const whole = new Intl.NumberFormat("en");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export const number = (value, isAtLeast = false) => value === undefined || value === null ? "–" : whole.format(value) + (isAtLeast ? "+" : "");

/// `12.3 MiB`; at most 4 digits, so that a column keeps its width.
export function bytes(count) {
  if (count === undefined || count === null) return "–";
  let value = Number(count), unit = 0;
  while (Math.abs(value) >= 1000 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${unit && value < 100 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/// `3 of 8`. Of an own kind, only its workers know how many attempts its policy allows where the task has the standard number.
export const attempts = ({ kind, attempt, maxAttempts }) =>
  Number(maxAttempts) === 8 && !["download", "upload", "copy", "delete", "noop"].includes(kind) ? `${attempt}` : `${attempt} of ${maxAttempts}`;

export const rate = (value) => `${bytes(value)}/s`;

/// Bytes of text as the command line reads it, `500`, `20M`, `1.5 GiB`: powers of 1024 with an `i`, powers of 1000 without.
/// Null if it is none, or has a part of a byte.
export function parseBytes(text) {
  const found = /^(\d+(?:\.\d+(?= *[kmgtp]))?) *(?:([kmgtp])(i?))?b?$/i.exec(text);
  if (!found) return null;
  const [, amount, unit = "", binary] = found;
  return Math.round(Number(amount) * (binary ? 1024 : 1000) ** "_kmgtp".indexOf(unit.toLowerCase() || "_"));
}

/// `42 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`.
export function duration(seconds) {
  if (seconds === undefined || seconds === null || Number.isNaN(Number(seconds))) return "–";
  const s = Math.max(0, Math.round(Number(seconds)));
  if (s < 60) return `${s} s`;
  if (s < 3600) return s < 600 && s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

/// How far the server's clock is ahead of this machine's, in milliseconds. Leases and ages are told by the server's.
export const clock = { ahead: 0 };
export const now = () => Date.now() + clock.ahead;

export const age = (time) => time ? Math.max(0, (now() - Date.parse(time)) / 1000) : null;
export const ago = (time) => !time ? "–" : age(time) < 5 ? "just now" : `${short(age(time))} ago`;
export const until = (time) => !time ? "–" : Date.parse(time) <= now() ? "now" : `in ${duration((Date.parse(time) - now()) / 1000)}`;

/// One unit, for columns.
export function short(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

const two = (value) => String(value).padStart(2, "0");

/// In the reader's own time zone: `14:03:09` today, `2026-11-23 14:03` before.
export function time(text, isPrecise = false) {
  if (!text) return "–";
  const at = new Date(text);
  const clockTime = `${two(at.getHours())}:${two(at.getMinutes())}`;
  const isToday = at.toDateString() === new Date(now()).toDateString();
  if (isToday) return `${clockTime}:${two(at.getSeconds())}`;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clockTime}${isPrecise ? `:${two(at.getSeconds())}` : ""}`;
}

/// As a field of local time has it: `2026-11-23T14:03:09.000`; empty if it is no time.
export function local(instant) {
  const at = new Date(instant ?? NaN);
  return Number.isNaN(at.getTime()) ? "" : new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
}

/// Done in percent, rounded down, because 100 means done; null if the total is unknown.
export function percent(task) {
  if (task.state === "succeeded") return 100;
  return task.bytesTotal > 0 ? Math.max(0, Math.min(100, Math.floor(100 * task.bytesDone / task.bytesTotal))) : null;
}

const decoded = (value) => { try { return decodeURIComponent(value); } catch { return value; } };
const lastName = (url) => decoded(url.split(/[?#]/)[0].split("/").filter(Boolean).pop() ?? url);

/// What people call a task: its label "title", or else the name of its file.
export const title = (task) => task.labels?.title || lastName(task.destination || task.source || task.id);

/// Of a URL, as the fleet names hosts: without user and port, `BUCKET.s3` for s3; empty for a storage, which is no host.
export function host(url) {
  const [, scheme, address, name = address] = /^(?!storage:)([\w+.-]+):\/\/(?:[^/?#]*@)?(?:\[([^\]]*)\]|([^/?#:]*))/i.exec(url ?? "") ?? [];
  return !name ? "" : scheme.toLowerCase() === "s3" ? `${name.toLowerCase()}.s3` : name.toLowerCase().replace(/\.$/, "");
}

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${Number(count) === 1 ? one : many}`;

/// Where a group of failed tasks failed.
export const where = (group) => group.host ? ` at ${group.host}` : group.hostCount ? ` at ${plural(group.hostCount, "host")}` : "";

// MARK: JSON

/// A number that JavaScript would change. It computes like one, and is written as it came.
class Exact {
  constructor(text) { this.text = text; }
  valueOf() { return Number(this.text); }
  toString() { return this.text; }
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const MARK = "\u0000exact:";

/// As `JSON.parse`, but keeps every digit of every number.
export function parse(source) {
  const marked = source.replace(TOKEN, (token) => token[0] === '"' || String(Number(token)) === token ? token : `"\\u0000exact:${token}"`);
  return JSON.parse(marked, (_, value) => typeof value === "string" && value.startsWith(MARK) ? new Exact(value.slice(MARK.length)) : value);
}

/// As `JSON.stringify`, with the digits as they came. With `indent`, over several lines.
export function stringify(value, indent = "", margin = "") {
  if (value instanceof Exact) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const inner = margin + indent, [open, close] = Array.isArray(value) ? "[]" : "{}";
  const members = Array.isArray(value)
    ? value.map((item) => stringify(item, indent, inner))
    : Object.entries(value).filter(([, item]) => item !== undefined).map(([name, item]) => `${JSON.stringify(name)}:${indent && " "}${stringify(item, indent, inner)}`);
  if (!members.length) return open + close;
  return indent ? `${open}\n${inner}${members.join(`,\n${inner}`)}\n${margin}${close}` : open + members.join(",") + close;
}
