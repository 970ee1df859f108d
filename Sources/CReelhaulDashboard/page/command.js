// The command line that submits a task, as one would type it in a shell.
import { stringify } from "./format.js";

const quote = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : `'${String(word).replaceAll("'", "'\\''")}'`;

const UPLOAD = { method: "method", partSize: "part-size", contentType: "content-type", storageClass: "storage-class", checksum: "checksum", toCredential: "to-credential" };

/// `task` has the fields of a submission. Members that are absent, null or as by default are left out.
export function commandLine(task) {
  const words = ["reelhaul"];
  const give = (name, value) => { if (value !== undefined && value !== null && value !== "") words.push(`--${name}`, String(value)); };
  const known = new Map([["download", [task.source]], ["upload", [task.source]], ["copy", [task.source, task.destination]], ["delete", [task.source]]]).get(task.kind);
  words.push(...(known ? [task.kind, ...known] : ["submit", task.kind]).filter(Boolean));
  if (!known) give("source", task.source);
  if (task.kind !== "copy" && task.kind !== "delete") give("to", task.destination);
  if (task.priority) give("priority", task.priority);
  if (task.queue !== "default") give("queue", task.queue);
  for (const id of task.after ?? []) give("after", id);
  give("not-before", task.notBefore);
  if (task.ifExists !== "fail") give("if-exists", task.ifExists);
  for (const [name, value] of Object.entries(task.labels ?? {})) if (!name.includes("=")) give("label", `${name}=${value}`);
  if (task.paused) words.push("--paused");
  give("notify", task.notify);
  for (const name of ["sha256", "md5", "bytes"]) give(name, task.expect?.[name]);
  if (task.allowUnframed) words.push("--allow-unframed");
  const headers = Array.isArray(task.headers) ? task.headers.map((name) => typeof name === "string" ? `${name}: …` : `${name.name}: ${name.value}`) : Object.entries(task.headers ?? {}).map(([name, value]) => `${name}: ${value}`);
  for (const header of headers) give("header", header);
  if (Number(task.maxAttempts ?? 8) !== 8) give("max-attempts", task.maxAttempts);
  if (task.retryAfter?.length) give("retry-after", task.retryAfter.join(","));
  give("rate", task.rate);
  if (Number(task.connections ?? 16) !== 16) give("connections", task.connections);
  give("credential", task.credential);
  const parameters = task.parameters;
  if (parameters !== undefined && parameters !== null) {
    if (task.kind === "upload" || task.kind === "copy") {
      for (const [name, option] of Object.entries(UPLOAD)) give(option, parameters[name]);
      if (parameters.creationWithUpload) words.push("--creation-with-upload");
      for (const [name, value] of Object.entries(parameters.metadata ?? {})) give("metadata", `${name}=${value}`);
    } else if (task.kind === "delete") {
      if (parameters.recursive) words.push("--recursive");
    } else {
      give("parameters", stringify(parameters));
    }
  }
  return words.map(quote).join(" ");
}

/// The submission that a task's document tells of, with the settings that only `spec` has.
export function submission(task) {
  const spec = task.spec ?? {};
  return { ...spec, kind: task.kind, source: task.source, destination: task.destination, priority: task.priority, queue: task.queue, after: task.after, labels: task.labels, maxAttempts: task.maxAttempts, parameters: task.parameters };
}

/// The labels that the command line leaves out: a `=` in a name would be read as its end.
export const unsaid = (task) => Object.keys(task.labels ?? {}).filter((name) => name.includes("="));

/// What a document hides because it may be a secret, so that a copy of the task lacks it.
export function hidden(task) {
  const found = [];
  if (/\*\*\*/.test([task.source, task.destination, task.spec?.notify])) found.push("values of a URL's query (***)");
  if (task.spec?.headers?.length) found.push(`values of the header fields ${task.spec.headers.join(", ")}`);
  return found;
}
