// Requests to the server, who asks, and what they may do. All paths are relative, so that the page works below a prefix.
import { clock, parse } from "./format.js";

class Problem extends Error {
  constructor(status, detail, body = {}) {
    super(detail);
    this.status = status;
    this.body = body;
  }
  /// The server is of a version without this route.
  get isMissing() { return this.status === 404 || this.status === 405 || this.status === 501; }
}

export const session = { name: null, scope: null, queues: [], tokensRequired: false, isSignedIn: false };
const RANKS = ["read", "write", "admin"];

/// Whether the scope of who is signed in allows what needs `scope`: what is not allowed, or not known to be, is not offered.
export const can = (scope) => RANKS.indexOf(session.scope) >= RANKS.indexOf(scope);

/// Whether it is not limited to some queues.
export const seesAll = () => !session.queues?.length;

let signInWanted = () => {};
export const onSignInWanted = (run) => { signInWanted = run; };

// A server that went away without a word does not end a request.
const PATIENCE = 30_000;

async function answer(path, options = {}) {
  let response, text, ahead;
  try {
    response = await fetch(path, { credentials: "same-origin", ...(options.method ? {} : { signal: AbortSignal.timeout(PATIENCE) }), ...options });
    // Before the body, which may take long. The header has whole seconds.
    ahead = Date.parse(response.headers.get("Date") ?? "") + 500 - Date.now();
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, options.method ? "The server cannot be reached. Nothing is known to have been sent." : "The server cannot be reached.");
  }
  if (!Number.isNaN(ahead)) clock.ahead = Math.abs(ahead) > 2000 ? ahead : 0;
  let body = {};
  try { body = text ? parse(text) : {}; } catch { /* A proxy's own page is no JSON. */ }
  if (!response.ok) {
    if (response.status === 401 && path !== "v1/session") signInWanted();
    throw new Problem(response.status, body.detail ?? `The server answered ${response.status}.`, body);
  }
  return { body, status: response.status };
}

export const get = async (path, options) => (await answer(path, options)).body;

export async function send(method, path, body, { type = "application/json", headers = {}, ...more } = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body ?? {});
  return (await answer(path, { method, headers: { "Content-Type": type, ...headers }, body: text, ...more })).body;
}

export const post = (path, body, options) => send("POST", path, body, options);
export const put = (path, body) => send("PUT", path, body);

export const key = () => [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("-");

// MARK: The session

/// Reads who is signed in. Returns false if somebody has to sign in first. `session.scope` stays null if the server does not say.
export async function readSession() {
  try {
    const told = await get("v1/session");
    Object.assign(session, told, { isSignedIn: Boolean(told.tokensRequired), scope: told.scope ?? "admin" });
    return true;
  } catch (problem) {
    if (problem.status === 401) {
      Object.assign(session, { tokensRequired: true, isSignedIn: false });
      return false;
    }
    // Without this route there are no tokens, and everybody may do everything. Without an answer nothing is known yet.
    session.scope = problem.isMissing ? "admin" : null;
    return true;
  }
}

export const signIn = (token) => post("v1/session", { token });

export async function signOut() {
  await answer("v1/session", { method: "DELETE" }).catch(() => {});
  Object.assign(session, { name: null, isSignedIn: false });
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/// The task that has `text` as its id, or null.
export const taskNamed = async (text) => ID.test(text) ? get(`v1/tasks/${text}`).catch(() => null) : null;
