// Charts of samples over time, as SVG. A line breaks where nothing was sampled: nothing is made up.
import { h, svg } from "./dom.js";
import { number, time } from "./format.js";

const HEIGHT = 150;

/// `series` are `{name, is, value(sample)}`. `format` writes a value; `isStacked` adds the series up.
export function chart({ title, samples, step, from, to, series, format = number, isStacked = false, base = 1 }) {
  const width = 400, left = 62, right = 8, top = 10, bottom = 22;
  const points = samples.map((sample) => ({ at: Date.parse(sample.at), values: series.map((one) => Number(one.value(sample) ?? 0)) })).filter((point) => point.at >= from - step * 1000 && point.at <= to);
  const sum = (values) => isStacked ? values.reduce((a, b) => a + b, 0) : Math.max(...values);
  const most = nice(Math.max(base > 1 ? base : 2, ...points.map((point) => sum(point.values))), base);
  const x = (at) => left + (width - left - right) * (at - from) / (to - from);
  const y = (value) => top + (HEIGHT - top - bottom) * (1 - value / most);
  const node = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `${title}. ${words(points, series, format)}` });
  for (const share of [0, 0.5, 1]) {
    node.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(most * share), y2: y(most * share) }), svg("text", { class: "axis", x: left - 8, y: y(most * share) + 4, "text-anchor": "end" }, format(most * share)));
  }
  for (const at of ticks(from, to)) node.append(svg("text", { class: "axis", x: Math.min(width - 18, Math.max(left + 16, x(at))), y: HEIGHT - 5, "text-anchor": "middle" }, label(at, to - from)));
  const pieces = split(points, step);
  series.forEach((one, index) => {
    for (const piece of pieces) {
      const upper = (point) => y(isStacked ? point.values.slice(0, index + 1).reduce((a, b) => a + b, 0) : point.values[index]);
      const lower = (point) => y(isStacked ? point.values.slice(0, index).reduce((a, b) => a + b, 0) : 0);
      const line = piece.map((point) => `${x(point.at).toFixed(1)} ${upper(point).toFixed(1)}`);
      const back = [...piece].reverse().map((point) => `${x(point.at).toFixed(1)} ${lower(point).toFixed(1)}`);
      if (isStacked || series.length === 1) node.append(svg("path", { class: `area is-${one.is}`, d: `M${line.join("L")}L${back.join("L")}Z` }));
      // A layer without height would hide the one below it.
      const shows = (place) => !isStacked || index === 0 || [place - 1, place, place + 1].some((near) => piece[near]?.values[index] > 0);
      const path = line.map((point, place) => !shows(place) ? "" : place > 0 && shows(place - 1) ? `L${point}` : `M${point}`).join("");
      if (path) node.append(svg("path", { class: `line is-${one.is}`, d: piece.length > 1 ? path : `${path}h1.5` }));
    }
  });
  if (!points.length) node.append(svg("text", { class: "axis", x: width / 2, y: HEIGHT / 2, "text-anchor": "middle" }, "No samples in this time yet"));
  node.append(svg("line", { class: "cursor", "data-key": "cursor", "data-own": true, y1: top, y2: HEIGHT - bottom, x1: -9, x2: -9 }));
  // A chart that is drawn anew keeps its former nodes.
  const leave = (event) => {
    const [node, tip] = event.currentTarget.children;
    for (const name of ["x1", "x2"]) node.querySelector(".cursor").setAttribute(name, -9);
    tip.hidden = true;
  };
  const move = (event) => {
    const [node, tip] = event.currentTarget.children;
    const box = node.getBoundingClientRect(), at = from + (to - from) * ((event.clientX - box.left) / box.width * width - left) / (width - left - right);
    const near = points.reduce((best, point) => !best || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best, null);
    if (!near || Math.abs(near.at - at) > Math.max(step * 2000, (to - from) / 50)) return leave(event);
    for (const name of ["x1", "x2"]) node.querySelector(".cursor").setAttribute(name, x(near.at));
    tip.replaceChildren(h("b", {}, time(new Date(near.at).toISOString())), ...series.map((one, index) => h("span", { class: `key is-${one.is}` }, `${one.name} ${format(near.values[index])}`)));
    tip.hidden = false;
    tip.classList.toggle("is-left", x(near.at) > width * 0.6);
    tip.style.setProperty("left", `${100 * x(near.at) / width}%`);
  };
  return h("figure", {},
    h("figcaption", {}, h("span", {}, title), series.length > 1 ? h("span", { class: "keys-of" }, series.map((one) => h("span", { class: `key is-${one.is}` }, one.name))) : null),
    h("div", { class: "plot", onpointermove: move, onpointerleave: leave }, node, h("p", { class: "tip", "data-own": true, hidden: true })));
}

function words(points, series, format) {
  if (!points.length) return "No samples.";
  const last = points.at(-1);
  return series.map((one, index) => `${one.name}: now ${format(last.values[index])}, at most ${format(Math.max(...points.map((point) => point.values[index])))}`).join("; ");
}

function nice(value, base) {
  let unit = 1;
  while (base > 1 && value / unit >= base) unit *= base;
  const power = 10 ** Math.floor(Math.log10(value / unit));
  return unit * power * [1, 2, 4, 5, 10].find((step) => value / unit <= step * power);
}

function split(points, step) {
  const pieces = [];
  for (const point of points) {
    const piece = pieces.at(-1);
    if (piece && point.at - piece.at(-1).at <= step * 2500) piece.push(point);
    else pieces.push([point]);
  }
  return pieces;
}

function ticks(from, to) {
  const hour = 3_600_000;
  const each = [hour / 6, hour / 2, hour, 4 * hour, 24 * hour, 48 * hour].find((one) => (to - from) / one <= 7) ?? 96 * hour;
  const zone = new Date(to).getTimezoneOffset() * 60_000, found = [];
  for (let at = Math.ceil((from - zone) / each) * each + zone; at <= to; at += each) found.push(at);
  return found;
}

function label(at, span) {
  const date = new Date(at);
  return span > 2 * 86_400_000 ? date.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) : `${String(date.getHours()).padStart(2, "0")}:${String(date.getMinutes()).padStart(2, "0")}`;
}

/// A small line without axes: the last values as they came.
export function spark(values, width = 160, height = 36) {
  const most = Math.max(1, ...values), step = width / Math.max(1, values.length - 1);
  const line = values.map((value, index) => `${(index * step).toFixed(1)} ${(height - 2 - (height - 4) * value / most).toFixed(1)}`);
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    values.length > 1 ? [svg("path", { class: "area is-running", d: `M${line.join("L")}L${width} ${height}L0 ${height}Z` }), svg("path", { class: "line is-running", d: `M${line.join("L")}` })] : null);
}

