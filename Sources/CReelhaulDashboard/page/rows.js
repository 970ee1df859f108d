// The rows of a list that may have a million tasks: pages by cursor, in the order of the server. Rows that are far away keep
// only their key. What enters or leaves while somebody points at the list waits until `apply`.
import { get } from "./api.js";
import { href } from "./route.js";

/// What a row shows: documents may have long parameters and outputs.
export const FIELDS = "id,kind,state,status,priority,queue,source,destination,bytesTotal,bytesDone,rate,eta,attempt,maxAttempts,worker,sequence,createdAt,finishedAt,runAt,error,labels,waits";
const PAGE = 200;
const KEPT = 3000;
// So many rows stay while somebody only looks at the first ones.
const MANY = 2 * KEPT;
export const MOST = 400_000;
// How many pages are read for one row.
const READS = 10;

const keyOf = ({ id, createdAt }) => ({ id, createdAt });
const rowOf = (task) => ({ ...keyOf(task), task });

export class Rows {
  rows = [];
  hasMore = true;
  problem = null;
  isReading = false;
  isRead = false;
  scrollTop = 0;
  /// How many pages in a row had no match: the server looks at a bounded number of tasks for each.
  barren = 0;
  // A page begins behind the place `after`: that of a row, or of the last task that a search has looked at.
  #pages = [{ cursor: null, after: null }];
  #next = null;
  // Where the search for the last rows has ended.
  #searched = null;
  // New rows that wait to be shown, by id.
  #fresh = new Map();
  // The task behind which others were not read, and the cursor that reads them: rows behind it go with the next `apply`.
  #gap = null;
  // The last task of the first page, and the cursor behind it.
  #first = null;

  /// `filter` is the query of the list; `isUp` if the oldest come first.
  constructor(filter) {
    this.filter = filter;
    this.isUp = filter.sort === "createdAt";
  }

  /// The time to which tasks were searched, if that is not where the rows end.
  get searchedTo() { return this.#searched?.createdAt ?? null; }

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

  // The first row behind `key`.
  #behind(key) {
    const index = this.#index(key);
    return this.rows[index]?.id === key.id ? index + 1 : index;
  }

  // The place of the last task that a search has looked at: the cursor behind it names its id.
  #searchedBy({ searchedTo, next }) {
    return searchedTo ? { createdAt: searchedTo, id: next?.split("_")[1] ?? (this.isUp ? "" : "~") } : null;
  }

  #read(cursor) { return get(`v1/tasks${href({ ...this.filter, fields: FIELDS, limit: PAGE, cursor })}`); }

  /// Reads the next page. Returns whether anything was read.
  async more() {
    if (this.isReading || !this.hasMore || this.rows.length >= MOST) return false;
    this.isReading = true;
    const cursor = this.#next;
    try {
      const page = await this.#read(cursor);
      this.problem = null;
      // If the rows end elsewhere by now, this page does not go on from them.
      if (cursor === this.#next) this.#append(page);
    } catch (problem) {
      this.problem = problem;
    }
    this.isReading = false;
    return !this.problem;
  }

  #append(page) {
    const known = new Set(this.rows.slice(-2 * PAGE).map((row) => row.id));
    for (const task of page.tasks) if (!known.has(task.id)) this.rows.push(rowOf(task));
    this.barren = page.tasks.length ? 0 : this.barren + 1;
    this.#next = page.next ?? null;
    this.hasMore = page.hasMore && Boolean(page.next);
    this.isCut = page.hasMore && !page.next;
    this.#searched = this.#searchedBy(page);
    if (this.#next) this.#pages.push({ cursor: this.#next, after: this.#searched ?? (this.rows.length ? keyOf(this.rows.at(-1)) : null) });
    this.isRead = true;
  }

  /// Reads the page again that has the row at `index`; where there are no rows yet, the one in which new tasks are. Returns the
  /// first row behind what was read.
  async refresh(index) {
    while (this.isRead && !this.rows.length) {
      const page = await this.#read(this.isUp ? this.#pages.at(-1).cursor : null);
      this.merge(page);
      if (!this.isUp || page.tasks.length || !page.next) return Infinity;
      // The search took more pages than before.
      this.#pages.push({ cursor: page.next, after: this.#searchedBy(page) });
    }
    const row = this.rows[index];
    // What is behind very many new ones is found with the next times.
    for (let reads = 0; row && reads < READS; reads += 1) {
      const at = this.#pages.findLastIndex(({ after }) => !after || this.#precedes(after, row)), { cursor, after } = this.#pages[at];
      const page = await this.#read(cursor), edge = page.next ? this.#searchedBy(page) ?? page.tasks.at(-1) : null;
      this.merge(page, after);
      if (!edge) return Infinity;
      if (!this.#precedes(edge, row)) return this.#behind(edge);
      // So many have come into this page, or before it, that it ends before the row.
      this.#pages.splice(at + 1, 0, { cursor: page.next, after: keyOf(edge) });
    }
    return Infinity;
  }

  /// The page has all that match between `after` (or the start) and the last of them, or where it was searched to, or the end
  /// if there are no more.
  merge(page, after = null) {
    const { tasks, hasMore, next, searchedTo } = page, last = tasks.at(-1), edge = hasMore ? this.#searchedBy(page) ?? last : null;
    if (hasMore && !edge) return;
    const isWithin = (key) => (!after || this.#precedes(after, key)) && (!edge || !this.#precedes(edge, key));
    const from = after ? this.#behind(after) : 0, end = edge ? this.#behind(edge) : this.rows.length;
    const found = new Map(tasks.map((task) => [task.id, task]));
    for (const row of this.rows.slice(from, end)) {
      const task = found.get(row.id);
      row.isGone = !task;
      if (task) { row.task = task; found.delete(row.id); }
    }
    if (!hasMore) { this.hasMore = false; this.#next = null; }
    if (!after) this.#first = hasMore && next && !searchedTo ? { ...keyOf(last), next } : null;
    // A page without any known task does not touch the rows behind it. And those that were the last may be so no more.
    const isPast = this.#gap && isWithin(this.#gap);
    const isTouching = found.size < tasks.length || !isPast && tasks.some((task) => this.#fresh.has(task.id));
    if (isPast) this.#gap = null;
    if (hasMore && next && !searchedTo && (end < this.rows.length ? !isTouching : !this.hasMore)) this.#gap = { ...keyOf(last), next };
    for (const row of this.#fresh.values()) if (isWithin(row)) this.#fresh.delete(row.id);
    // Rows behind what was read come with their page.
    const bound = this.hasMore ? this.#searched ?? this.rows.at(-1) : null;
    for (const task of found.values()) if (!bound || this.#precedes(task, bound)) this.#fresh.set(task.id, rowOf(task));
    if (this.#fresh.size > MANY) this.#shorten();
  }

  // All behind the first page goes with the next `apply`, and is read again by whoever comes there.
  #shorten() {
    if (!this.#first) return;
    this.#gap = this.#first;
    for (const row of this.#fresh.values()) if (this.#precedes(this.#gap, row)) this.#fresh.delete(row.id);
  }

  /// Lets go of what is behind the first page, if that is much: a list that is looked at for days does not grow for ever.
  shorten() { if (this.rows.length > MANY) this.#shorten(); }

  /// How many new rows wait to be shown.
  get waiting() { return this.#fresh.size; }

  /// Whether there are tasks between those that wait and the rows that are shown.
  get isTorn() { return this.#gap !== null && this.#behind(this.#gap) < this.rows.length; }

  /// Whether each task that matches has a row, or waits for one.
  get isWhole() { return this.isRead && !this.hasMore && !this.#gap; }

  /// Lets rows in and out. `top` is the first row that is seen: returns by how many rows it moves.
  apply(top) {
    const seen = this.rows[top], gap = this.#gap;
    const stays = (row) => !row.isGone && !(gap && this.#precedes(gap, row));
    if (this.#fresh.size || !this.rows.every(stays)) {
      this.rows = this.rows.filter(stays);
      for (const row of this.#fresh.values()) if (stays(row) && this.#behind(row) === this.#index(row)) this.rows.splice(this.#index(row), 0, row);
      this.#fresh.clear();
    }
    if (gap) {
      this.#pages = [...this.#pages.filter(({ after }) => !after || this.#precedes(after, gap)), { cursor: gap.next, after: gap }];
      this.#next = gap.next;
      this.hasMore = true;
      this.#searched = this.#gap = null;
    }
    return seen ? this.#index(seen) - top : 0;
  }

  /// Lets go of what is far from the rows that are seen.
  forget(from, to) {
    if (this.rows.length < MANY) return;
    for (let index = 0; index < this.rows.length; index += 1) if (index < from - KEPT || index > to + KEPT) this.rows[index].task = null;
  }
}
