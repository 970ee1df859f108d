// The stream of the server's state. It says when it is behind or cut off, and begins again by itself.
import { get } from "./api.js";

// The server is silent for at most 15 s.
const PATIENCE = 25_000;
// A browser has few connections to a server, and those of hidden pages block the one that is seen. A glance at another
// tab ends nothing.
const HIDDEN_PATIENCE = 3000;

class Live extends EventTarget {
  state = "connecting";
  overview = null;
  heardAt = 0;
  /// When it said last how the fleet is, or that nothing has changed.
  toldAt = 0;
  #openedAt = 0;
  #stream = null;
  #wanted = null;
  #retry = 0;
  #wasThere = false;
  #timer = null;
  #isTold = false;

  constructor() {
    super();
    setInterval(() => this.#look(), 1000);
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.#timer);
      if (document.hidden) this.#timer = setTimeout(() => this.#close(), HIDDEN_PATIENCE);
      else if (!this.#stream) this.#open();
    });
  }

  /// Follows the overview, and the tasks that `query` names.
  follow(query) {
    if (query === this.#wanted && this.#stream && this.#stream.readyState !== EventSource.CLOSED) return;
    this.#wanted = query;
    this.#open();
  }

  stop() {
    this.#wanted = null;
    this.#close();
  }

  #close() {
    this.#stream?.close();
    this.#stream = null;
  }

  #open() {
    this.#close();
    // A hidden page gets its stream once somebody looks at it.
    if (this.#wanted === null || document.hidden) return;
    clearTimeout(this.#timer);
    this.#openedAt = Date.now();
    const stream = new EventSource(`v1/stream?${this.#wanted}`);
    this.#stream = stream;
    const hear = (name, run) => stream.addEventListener(name, (event) => {
      if (stream !== this.#stream) return;
      this.heardAt = Date.now();
      this.#retry = 0;
      this.#wasThere = false;
      run(event);
      if (name !== "open" && this.state === "live") this.toldAt = this.heardAt;
    });
    hear("open", () => { if (this.state !== "trouble") this.#say("live"); });
    hear("ping", () => { if (this.state !== "trouble") this.#say("live"); });
    hear("trouble", () => this.#say("trouble"));
    hear("overview", (event) => {
      this.overview = JSON.parse(event.data);
      this.#say("live");
      this.#tell("overview", this.overview);
    });
    for (const name of ["tasks", "operations"]) {
      hear(name, (event) => { this.#say("live"); this.#tell(name, JSON.parse(event.data)); });
    }
    stream.addEventListener("error", () => {
      if (stream !== this.#stream) return;
      if (this.state !== "refused") this.#say("cut");
      if (stream.readyState === EventSource.CLOSED) this.#again();
    });
  }

  // After an answer that is no stream the browser does not try again: the server may be restarting, a token has ended, or the server
  // refuses the query for ever.
  async #again() {
    this.#stream = null;
    const isThere = await get("v1/overview").then(() => true, () => false), isRefused = isThere && this.#wasThere;
    // Another stream was opened meanwhile, and tells how it goes.
    if (this.#stream) return;
    this.#wasThere = isThere;
    this.#say(isRefused ? "refused" : "cut");
    clearTimeout(this.#timer);
    this.#retry = isThere && !isRefused ? 1 : Math.min(10, this.#retry + 1);
    this.#timer = setTimeout(() => { if (!this.#stream) this.#open(); }, 500 * this.#retry);
  }

  // A connection may be dead although nobody closed it: a new one tells.
  #look() {
    if (!this.#stream || Date.now() - Math.max(this.heardAt, this.#openedAt) <= PATIENCE) return;
    if (this.state !== "cut") this.#say("behind");
    this.#open();
  }

  #say(state) {
    if (state === this.state && this.#isTold) return;
    const isBack = state === "live" && this.state !== "live" && this.#isTold;
    this.#isTold = true;
    this.state = state;
    this.#tell("state", state);
    if (isBack) this.#tell("back", null);
  }

  #tell(name, detail) { this.dispatchEvent(new CustomEvent(name, { detail })); }
}

export const live = new Live();
