// The rows of a list that may have a million tasks: pages by cursor, in the order of the server. Rows that are far away keep
// only their key. What enters or leaves while somebody points at the list waits until `apply`.
import { get } from "./api.js";
import { href } from "./route.js";

/// What a row shows: documents may have long parameters and outputs.
export const FIELDS = "id,kind,state,status,priority,queue,source,destination,bytesTotal,bytesDone,rate,eta,attempt,maxAttempts,worker,sequence,createdAt,finishedAt,runAt,error,labels,waits";
const PAGE = 200;
const KEPT = 3000;
export const MOST = 400_000;

export class Rows {
  rows = [];
  hasMore = true;
  searchedTo = null;
  problem = null;
  isReading = false;
  isRead = false;
  scrollTop = 0;
  /// How many pages in a row had no match: the server looks at a bounded number of tasks for each.
  barren = 0;
  #pages = [{ cursor: null, after: null }];
  #next = null;
  #waiting = null;

  /// `filter` is the query of the list; `isUp` if the oldest come first.
  constructor(filter) {
    this.filter = filter;
    this.isUp = filter.sort === "createdAt";
  }

  // Whether `a` stands before `b`.
  #precedes(a, b) {
    const order = a.createdAt === b.createdAt ? a.id < b.id : a.createdAt < b.createdAt;
    return a.id !== b.id && (this.isUp ? order : !order);
  }

  #index(key) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#precedes(this.rows[middle], key)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /// Reads the next page. Returns whether anything was read.
  async more() {
    if (this.isReading || !this.hasMore || this.rows.length >= MOST) return false;
    this.isReading = true;
    try {
      const page = await get(`v1/tasks${href({ ...this.filter, fields: FIELDS, limit: PAGE, cursor: this.#next })}`);
      this.problem = null;
      const known = new Set(this.rows.slice(-2 * PAGE).map((row) => row.id));
      for (const task of page.tasks) if (!known.has(task.id)) this.rows.push({ id: task.id, createdAt: task.createdAt, task });
      this.barren = page.tasks.length ? 0 : this.barren + 1;
      this.#next = page.next ?? null;
      this.hasMore = page.hasMore && Boolean(page.next);
      this.isCut = page.hasMore && !page.next;
      this.searchedTo = page.searchedTo ?? null;
      const last = this.rows.at(-1);
      if (this.#next) this.#pages.push({ cursor: this.#next, after: last ? { id: last.id, createdAt: last.createdAt } : null });
      this.isRead = true;
    } catch (problem) {
      this.problem = problem;
    }
    this.isReading = false;
    return !this.problem;
  }

  /// Reads the page again that has the row at `index`.
  async refresh(index) {
    const row = this.rows[index];
    if (!row) return;
    let page = this.#pages[0];
    for (const one of this.#pages) {
      if (one.after && !this.#precedes(one.after, row)) break;
      page = one;
    }
    const read = await get(`v1/tasks${href({ ...this.filter, fields: FIELDS, limit: PAGE, cursor: page.cursor })}`);
    this.merge(read.tasks, read.hasMore, page.after);
  }

  /// `tasks` are all that match between `after` (or the start) and the last of them, or the end if there are no more.
  merge(tasks, hasMore, after = null) {
    const from = after ? this.#index(after) + (this.rows[this.#index(after)]?.id === after.id ? 1 : 0) : 0;
    const last = tasks.at(-1), end = hasMore ? last ? this.#index(last) + 1 : from : this.rows.length;
    const found = new Map(tasks.map((task) => [task.id, task]));
    for (const row of this.rows.slice(from, end)) {
      const task = found.get(row.id);
      row.isGone = !task;
      if (task) { row.task = task; found.delete(row.id); }
    }
    for (const row of this.rows.slice(end, end + PAGE)) found.delete(row.id);
    // Rows behind the last that was read come with their page.
    const bound = this.rows.at(-1);
    const fresh = [...found.values()].filter((task) => !bound || !this.hasMore || this.#precedes(task, bound)).map((task) => ({ id: task.id, createdAt: task.createdAt, task }));
    this.#waiting = { fresh: [...new Map([...(this.#waiting?.fresh ?? []), ...fresh].map((row) => [row.id, row])).values()] };
  }

  /// How many new rows wait to be shown.
  get waiting() { return this.#waiting?.fresh.length ?? 0; }

  /// Lets rows in and out. `top` is the first row that is seen: returns by how many rows it moves.
  apply(top, isGoneKept) {
    const seen = this.rows[top];
    const fresh = this.#waiting?.fresh ?? [];
    this.#waiting = null;
    if (fresh.length || !isGoneKept && this.rows.some((row) => row.isGone)) {
      const known = new Set(this.rows.map((row) => row.id));
      this.rows = this.rows.filter((row) => isGoneKept || !row.isGone);
      for (const row of fresh) if (!known.has(row.id)) this.rows.splice(this.#index(row), 0, row);
    }
    return seen ? this.#index(seen) - top : 0;
  }

  /// Lets go of what is far from the rows that are seen.
  forget(from, to) {
    if (this.rows.length < 2 * KEPT) return;
    for (let index = 0; index < this.rows.length; index += 1) if (index < from - KEPT || index > to + KEPT) this.rows[index].task = null;
  }
}
