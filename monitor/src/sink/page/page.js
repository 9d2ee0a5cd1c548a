"use strict";
// What is shown is data and an address: `address` is read from the URL and written to it, `now`, `past` and `events` come
// from the daemon. Each part of the page is a function of these. Nothing is ever parsed as HTML.

const RANGES = [["10m", "10 min"], ["1h", "1 h"], ["6h", "6 h"], ["24h", "24 h"], ["7d", "7 d"], ["30d", "30 d"]];
const MEASURES = [["memory", "Memory"], ["number", "Number"]];
const STATES = [["all", "All"], ["orphan", "Orphans"], ["unproven", "Unproven"], ["suspect", "Suspects"], ["live", "In use"]];
const DEFAULTS = { range: "24h", by: "memory", show: "all", q: "" };
// Into how many equal parts the time is divided by labels: as many as there is room for.
const LABELS = { "10m": [5, 2], "1h": [6, 3, 2], "6h": [6, 3, 2], "24h": [6, 4, 3, 2], "7d": [7, 2], "30d": [6, 3, 2] };
const COLOURS = 8;
const KEPT_EVENTS = 200;

const byId = (id) => document.getElementById(id);
const closed = new Set();
let now = null, past = null, pastFailed = false, events = [], waiting = [], paused = false, column = null;
let address = readAddress();

// The URL.

function readAddress() {
  const given = new URLSearchParams(location.search);
  const one = (name, of) => (of.some(([key]) => key === given.get(name)) ? given.get(name) : DEFAULTS[name]);
  return { range: one("range", RANGES), by: one("by", MEASURES), show: one("show", STATES), q: given.get("q") || "" };
}

function link(change) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...address, ...change })) {
    if (value !== DEFAULTS[name]) query.set(name, value);
  }
  return query.size ? `?${query}` : location.pathname;
}

function go(change, replace) {
  history[replace ? "replaceState" : "pushState"](null, "", link(change));
  arrive();
}

function arrive() {
  const before = address;
  address = readAddress();
  if (byId("filter").value !== address.q) byId("filter").value = address.q;
  if (before.range !== address.range) { past = null; column = null; readPast(); }
  draw();
}

// Elements.

function make(tag, attributes, ...children) {
  const svg = ["svg", "rect", "line", "text", "g"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null && child !== ""));
  return element;
}

function put(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child != null));
}

/** Makes the children of `parent` those of `items`. What has not changed stays, with its focus and selection. */
function keep(parent, items, key, create, update) {
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let child = there.get(name);
    there.delete(name);
    if (!child) { child = create(item); child.dataset.key = name; }
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
    update(child, item);
  }
  for (const child of there.values()) child.remove();
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Words.

function size(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 999.5 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
  return `${unit < 3 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

/** What the host regained, where that could be read. */
const regained = (sums, before) => (sums.freed_pss_bytes ? `${before}PSS ${size(sums.freed_pss_bytes)}` : "");
const freed = (sums) => size(sums.freed_bytes) + regained(sums, " (") + (sums.freed_pss_bytes ? ")" : "");

function length(ms) {
  const [s, min, h] = [Math.floor(ms / 1e3), Math.floor(ms / 6e4), Math.floor(ms / 36e5)];
  if (s < 60) return `${s} s`;
  if (min < 60) return `${min} min`;
  if (h < 48) return min % 60 && h < 10 ? `${h} h ${min % 60} min` : `${h} h`;
  return `${Math.floor(h / 24)} d`;
}

const many = (n, one, more) => `${n.toLocaleString("en")} ${n === 1 ? one : more || `${one}s`}`;
const clock = (ms, options) => new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...options });
const day = (ms) => new Date(ms).toLocaleDateString([], { day: "numeric", month: "short" });
const moment = (ms) => (Date.now() - ms < 864e5 ? clock(ms) : `${day(ms)} ${clock(ms)}`);
const rangeName = () => ({ "10m": "10 minutes", "1h": "hour", "6h": "6 hours", "24h": "24 hours", "7d": "7 days", "30d": "30 days" })[address.range];
const numberOf = (run) => (run.generation == null ? "" : ` #${run.generation}`);

/** Names of agents; where several users run the same one, they are told apart by a letter. */
function titles(agents) {
  const seen = new Map();
  for (const { key, name, unit } of agents) {
    const title = JSON.stringify([name, unit]);
    if (!seen.has(title)) seen.set(title, []);
    if (!seen.get(title).includes(key)) seen.get(title).push(key);
  }
  return ({ key, name, unit }) => {
    const same = seen.get(JSON.stringify([name, unit])) || [];
    return same.length > 1 ? `${name} (${String.fromCharCode(65 + (same.indexOf(key) % 26))})` : name;
  };
}

let titled = ({ name }) => name;

// Parts.

function draw() {
  titled = titles([...(now ? now.agents : []), ...(past ? past.series : [])]);
  choice("range", RANGES);
  choice("by", MEASURES);
  choice("show", STATES);
  drawHeadline();
  drawTiles();
  drawChart();
  drawRuns();
  drawTree();
}

function choice(name, options) {
  keep(byId(name), options, ([value]) => value,
    ([, title]) => make("a", { "data-go": name }, title),
    (element, [value]) => {
      element.setAttribute("href", link({ [name]: value }));
      if (address[name] === value) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
    });
}

function drawHeadline() {
  if (!now) return;
  const { sums, leftovers, agents, watching } = now;
  const { paused } = now;
  const stays = paused ? `paused${paused.until ? ` until ${clock(paused.until)}` : ""}, ends nothing` : "observes, ends nothing";
  say(byId("mode"), now.mode === "observe" ? stays : "ends orphans");
  byId("mode").hidden = false;
  say(byId("version"), `${now.version}, up ${length(now.up_ms)}`);
  byId("notice").hidden = watching;
  if (!watching) say(byId("notice"), "orphand does not see everything at the moment: there may be more than is shown. `sudo orphand status` says why.");
  let verdict = "Nothing is left behind.";
  if (sums.orphan.count) verdict = `${many(sums.orphan.count, "orphan")} ${sums.orphan.count === 1 ? "holds" : "hold"} ${size(sums.orphan.bytes)}.`;
  else if (!watching) verdict = "No orphan in sight.";
  else if (sums.suspect.count) verdict = `${many(sums.suspect.count, "suspect")}, no orphans.`;
  else if (sums.unproven.count || leftovers.count) verdict = "No orphans.";
  say(byId("verdict"), verdict);
  document.title = sums.orphan.count ? `${many(sums.orphan.count, "orphan")}, ${size(sums.orphan.bytes)} - orphand` : "orphand";
  const alive = agents.reduce((n, agent) => n + agent.generations.filter((one) => one.alive).length, 0);
  const parts = [];
  if (!alive && !sums.live.count) parts.push("No agent with MCP servers is running.");
  else parts.push(`${many(sums.live.count, "server")} in use by ${alive ? many(alive, "running agent") : "somebody"}.`);
  if (sums.unproven.count) parts.push(`${sums.unproven.count} may still be in use though the agent is gone.`);
  if (leftovers.count) parts.push(`${many(leftovers.count, "leftover")} of ended agents ${leftovers.count === 1 ? "holds" : "hold"} ${size(leftovers.bytes)}: no server, ended only by you.`);
  if (past) parts.push(past.sums.reaped ? `In the last ${rangeName()} ${many(past.sums.reaped, "orphan")} ended, ${freed(past.sums)} freed.` : past.sums.orphans || sums.orphan.count ? "" : `No leak in the last ${rangeName()}.`);
  say(byId("summary"), parts.join(" "));
}

function drawTiles() {
  if (!now) return;
  const of = (state, label) => ({ key: state, state, label, value: String(now.sums[state].count), more: now.sums[state].count ? size(now.sums[state].bytes) : "none" });
  const tiles = [of("orphan", "Orphans"), of("unproven", "Unproven"), of("suspect", "Suspects"), of("live", "In use")];
  if (past) tiles.push({ key: "freed", label: `Freed in ${rangeName()}`, value: size(past.sums.freed_bytes), more: past.sums.reaped ? `${many(past.sums.reaped, "orphan")} ended${regained(past.sums, ", ")}` : "none ended" });
  keep(byId("tiles"), tiles, (tile) => tile.key,
    (tile) => make("li", {}, make(tile.state ? "a" : "div", { "data-go": tile.state && "show" },
      make("span", { class: "label" }, tile.state ? make("span", { class: `dot ${tile.state}` }) : null, make("span")),
      make("span", { class: "value" }), make("span", { class: "more" }))),
    (element, tile) => {
      const [box] = element.children;
      say(box.querySelector(".label > :last-child"), tile.label);
      say(box.querySelector(".value"), tile.value);
      say(box.querySelector(".more"), tile.more);
      if (!tile.state) return;
      const on = address.show === tile.state;
      box.setAttribute("href", link({ show: on ? "all" : tile.state }));
      if (on) box.setAttribute("aria-current", "true"); else box.removeAttribute("aria-current");
    });
}

const values = (run) => (address.by === "memory" ? run.bytes : run.counts);
const worth = (value) => (address.by === "memory" ? size(value) : String(value));
const colour = (at, run) => `s${run.other || at >= COLOURS ? COLOURS : at}`;

function ceiling(top) {
  if (address.by === "number" && top <= 4) return Math.max(1, top);
  const unit = 10 ** Math.floor(Math.log10(top));
  return [1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10].map((n) => n * unit).find((n) => n >= top) || top;
}

function drawChart() {
  const chart = byId("chart");
  const [width, height] = [Math.max(260, chart.clientWidth), chart.clientHeight];
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const [left, right, top, bottom] = [52, 4, 8, 20];
  const [w, h] = [width - left - right, height - top - bottom];
  const totals = past ? Array.from({ length: past.steps }, (_, at) => past.series.reduce((sum, run) => sum + values(run)[at], 0)) : [];
  const most = Math.max(0, ...totals);
  const scale = most ? ceiling(most) : 0;
  const few = scale && address.by === "number" && scale < 5;
  const lines = few ? scale : /^10*$/.test(String(scale)) ? 5 : 4;
  for (let n = 0; n <= lines; n += 1) {
    const y = Math.round(top + h - (h * n) / lines) + 0.5;
    if (scale || !n) svg.append(make("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }));
    if (scale && Number.isInteger(address.by === "number" ? (scale * n) / lines : 1)) {
      svg.append(make("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, n ? worth((scale * n) / lines) : "0"));
    }
  }
  if (past) {
    const step = w / past.steps;
    const gap = step > 6 ? 1.5 : step > 3 ? 0.75 : 0;
    for (let at = 0; at < past.steps; at += 1) {
      let y = top + h;
      past.series.forEach((run, n) => {
        const value = values(run)[at];
        if (!value) return;
        const tall = Math.max(1, (h * value) / scale);
        y -= tall;
        svg.append(make("rect", { class: colour(n, run), x: (left + at * step + gap / 2).toFixed(2), width: Math.max(1, step - gap).toFixed(2), y: y.toFixed(2), height: Math.max(0.8, tall - (tall > 4 ? 1 : 0)).toFixed(2) }));
      });
    }
    const labels = LABELS[address.range].find((n) => w / n >= 62) || 2;
    for (let n = 0; n <= labels; n += 1) {
      const at = past.from + (past.steps * past.step_ms * n) / labels;
      const title = n === labels ? "now" : ["7d", "30d"].includes(address.range) ? day(at) : clock(at);
      svg.append(make("text", { x: left + (w * n) / labels, y: height - 4, "text-anchor": n === labels ? "end" : n ? "middle" : "start" }, title));
    }
    if (column != null) svg.append(make("rect", { class: "cursor", x: left + column * step, width: Math.max(2, step), y: top, height: h }));
    if (!most) svg.append(make("text", { class: "said", x: left + w / 2, y: top + h / 2, "text-anchor": "middle" }, `Nothing leaked in the last ${rangeName()}`));
  } else {
    svg.append(make("text", { class: "said", x: left + w / 2, y: top + h / 2, "text-anchor": "middle" }, pastFailed ? "The history cannot be read now" : "Reading the history .."));
  }
  put(chart, svg);
  const when = column != null && past ? past.from + column * past.step_ms : null;
  if (when == null) {
    const peak = totals.indexOf(most);
    say(byId("readout"), most ? `Most in one step: ${worth(most)}, from ${moment(past.from + peak * past.step_ms)}. Memory as of the verdicts.` : "");
    return;
  }
  const there = past.series.map((run) => [run, values(run)[column]]).filter(([, value]) => value);
  const freed = past.freed_bytes[column];
  say(byId("readout"), `${day(when)} ${clock(when)}: ${there.length ? there.map(([run, value]) => `${run.other ? "other" : titled(run)}${numberOf(run)} ${worth(value)}`).join(", ") : "no orphans"}${freed ? `; ${size(freed)} freed` : ""}`);
}

function drawRuns() {
  const runs = past ? past.series : [];
  byId("runs").hidden = !runs.length;
  keep(byId("runs").tBodies[0], runs, (run) => `${run.key} ${run.generation} ${run.other}`,
    () => make("tr", {}, make("th", { scope: "row" }, make("svg", { class: "swatch", viewBox: "0 0 10 10", "aria-hidden": "true" }, make("rect", { width: 10, height: 10, rx: 2 })),
      make("span"), " ", make("span", { class: "unit" })), ...Array.from({ length: 5 }, () => make("td"))),
    (row, run) => {
      const [head, ...cells] = row.children;
      head.querySelector("rect").setAttribute("class", colour(runs.indexOf(run), run));
      say(head.querySelector("span"), run.other ? "all others" : titled(run) + numberOf(run));
      say(head.querySelector(".unit"), run.unit || "");
      [run.orphans, run.reaped, run.freed_bytes ? freed(run) : "-", run.left, run.unproven].forEach((value, n) => say(cells[n], value ? String(value) : "-"));
    });
}

const stateOf = (server) => (["kept", "ending"].includes(server.state) ? "orphan" : server.state);

function matches(server, agent) {
  if (address.show !== "all" && stateOf(server) !== address.show) return false;
  const text = `${server.name} ${titled(agent)} ${agent.unit || ""}`.toLowerCase();
  return text.includes(address.q.toLowerCase());
}

function why(server) {
  const parts = [];
  if (server.evidence.length) parts.push(server.evidence.join(", "));
  if (server.doubts) parts.push(`it stays: ${server.doubts}`);
  if (server.guards) parts.push(`it stays: ${server.guards}`);
  if (server.duplicate) parts.push("a duplicate: its agent has a newer one");
  if (server.processes > 1) parts.push(many(server.processes, "process", "processes"));
  const text = parts.join("; ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function account(sums) {
  const parts = [];
  if (sums.orphan.count) parts.push(`${many(sums.orphan.count, "orphan")} ${size(sums.orphan.bytes)}`);
  if (sums.unproven.count) parts.push(`${sums.unproven.count} unproven`);
  if (sums.suspect.count) parts.push(many(sums.suspect.count, "suspect"));
  if (sums.live.count) parts.push(`${sums.live.count} live ${size(sums.live.bytes)}`);
  return parts.join(", ") || "no servers";
}

function branch(kind) {
  return (item) => {
    const key = item.branch;
    const details = make("details", { open: !closed.has(key) }, make("summary", {}, make("span", { class: "what" }, make("span"), " ", make("span", { class: "unit" })), make("span", { class: "sum" })), make("ul"));
    details.addEventListener("toggle", () => (details.open ? closed.delete(key) : closed.add(key)));
    return make("li", { class: kind }, details);
  };
}

function fill(element, title, more, sums) {
  const summary = element.firstElementChild.firstElementChild;
  say(summary.querySelector(".what > :first-child"), title);
  say(summary.querySelector(".unit"), more);
  say(summary.querySelector(".sum"), sums);
  return element.firstElementChild.lastElementChild;
}

function drawTree() {
  if (!now) return;
  const narrowed = address.show !== "all" || address.q !== "";
  const agents = now.agents.map((agent) => ({ ...agent, branch: agent.key, generations: agent.generations
    .map((one) => ({ ...one, branch: `${agent.key} ${one.number} ${one.older}`, servers: one.servers.filter((server) => matches(server, agent)), more: narrowed ? 0 : one.more }))
    .filter((one) => one.servers.length || one.more || (!narrowed && one.alive)) }))
    .filter((agent) => agent.generations.length);
  keep(byId("tree"), agents, (agent) => agent.branch, branch("agent"), (element, agent) => {
    const list = fill(element, agent.name === "none" ? "without a known agent" : titled(agent), agent.unit || "", account(agent.sums));
    keep(list, agent.generations, (one) => one.branch, branch("generation"), (inner, one) => {
      const title = one.older ? "earlier generations" : one.number == null ? "no known generation" : `#${one.number}`;
      const life = one.started == null ? "" : `${one.alive ? "running since" : "ended, began"} ${moment(one.started)}`;
      drawServers(fill(inner, title, life, account(one.sums)), one);
    });
  });
  const empty = byId("nobody");
  empty.hidden = agents.length > 0;
  if (!agents.length) say(empty, narrowed ? "Nothing matches." : "No agent is running, and nothing is left of one. Start one: it appears here at once.");
}

function drawServers(list, generation) {
  const lines = generation.more ? [...generation.servers, { key: "more", more: generation.more }] : generation.servers;
  keep(list, lines, (server) => server.key,
    (server) => (server.more ? make("li", { class: "more-line" }) : make("li", { class: "server" }, make("span", { class: "state" }, make("span"), make("span")),
      make("span", { class: "name" }), make("span", { class: "size" }), make("span", { class: "age" }), make("span", { class: "why" }))),
    (row, server) => {
      if (server.more) return say(row, `and ${many(server.more, "more server")}`);
      const [state, name, bytes, age, reason] = row.children;
      state.firstChild.className = `dot ${stateOf(server)}`;
      say(state.lastChild, server.state);
      say(name, server.agent ? `${server.name} (an agent)` : server.name);
      say(bytes, size(server.bytes));
      say(age, server.age_ms == null ? "" : length(server.age_ms));
      say(reason, why(server));
      reason.hidden = !reason.textContent;
      return row;
    });
}

function drawEvents() {
  keep(byId("events"), events, (event) => `${event.id} ${event.time}`,
    (event) => make("li", {}, make("time", { datetime: new Date(event.time).toISOString(), title: new Date(event.time).toLocaleString() }, clock(event.time, { second: "2-digit" })),
      make("span", { class: `kind ${event.tone}` }, event.kind), make("span", {}, event.text)), () => {});
  byId("silence").hidden = events.length > 0;
  say(byId("pause"), paused && waiting.length ? `Resume (${waiting.length})` : paused ? "Resume" : "Pause");
}

// The daemon.

function heard(message) {
  say(byId("silence"), "Nothing has happened since orphand started.");
  const fresh = message.events.slice().reverse();
  if (message.missed) fresh.push({ id: `missed ${Date.now()}`, time: Date.now(), kind: "missed", tone: "warning", text: `${many(message.missed, "event")} came too fast to be shown` });
  if (message.recent) { events = []; waiting = []; }
  if (paused && !message.recent) waiting = [...fresh, ...waiting].slice(0, KEPT_EVENTS);
  else events = [...fresh, ...events].slice(0, KEPT_EVENTS);
  drawEvents();
  if (!message.recent && message.events.some((event) => ["alarm", "good"].includes(event.tone))) setTimeout(readPast, 6000);
}

async function readPast() {
  const range = address.range;
  try {
    const answer = await fetch(`/api/history?range=${range}`);
    if (!answer.ok) throw new Error(String(answer.status));
    const body = await answer.json();
    if (range !== address.range) return;
    [past, pastFailed] = [body, false];
  } catch {
    pastFailed = true;
  }
  draw();
}

function connected(on, words) {
  byId("link").classList.toggle("on", on);
  say(byId("link"), words);
}

let source = null, pause = 1000, silence;
function leave() {
  clearTimeout(silence);
  source?.close();
  source = null;
}

/** It was refused, for instance because too many pages are open; or it was silent, although it speaks every 5 s. */
function again() {
  lost();
  leave();
  setTimeout(listen, pause + Math.random() * 1000);
  pause = Math.min(pause * 2, 30000);
}

/** What is shown is of the past from now on, and nobody may be there who ends anything. */
function lost() {
  connected(false, "not connected, trying again");
  if (!now) return;
  byId("mode").hidden = true;
  byId("notice").hidden = false;
  say(byId("notice"), `Not connected: what is below is as it was at ${clock(now.time)}. If orphand does not run, nobody ends orphans.`);
}

function heed() {
  clearTimeout(silence);
  silence = setTimeout(again, 15000);
}

function listen() {
  if (source || document.hidden) return;
  source = new EventSource("/events");
  heed();
  const parsed = (show) => (message) => { heed(); pause = 1000; connected(true, "live"); show(JSON.parse(message.data)); };
  source.addEventListener("now", parsed((state) => { now = state; draw(); }));
  source.addEventListener("events", parsed(heard));
  source.addEventListener("blind", parsed(({ why: reason }) => { byId("notice").hidden = false; say(byId("notice"), `orphand cannot say how things stand: ${reason}.`); }));
  source.addEventListener("error", () => (source?.readyState === EventSource.CLOSED ? again : lost)());
}

/** A browser has few connections to one host: a page that nobody looks at holds none. */
function look() {
  if (!document.hidden) { listen(); readPast(); return; }
  leave();
}

// The person.

document.addEventListener("click", (event) => {
  const to = event.target.closest("a[data-go]");
  if (!to || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  history.pushState(null, "", to.getAttribute("href"));
  arrive();
});
window.addEventListener("popstate", arrive);
byId("filter").addEventListener("input", (event) => go({ q: event.target.value }, true));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input") || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  byId("filter").focus();
});
byId("filter").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { event.target.value = ""; go({ q: "" }, true); event.target.blur(); }
});
byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (!paused) { events = [...waiting, ...events].slice(0, KEPT_EVENTS); waiting = []; }
  drawEvents();
});

function point(at) {
  column = at == null || !past ? null : Math.max(0, Math.min(past.steps - 1, at));
  drawChart();
}

const chart = byId("chart");
chart.addEventListener("keydown", (event) => {
  if (!past) return;
  const last = past.steps - 1;
  const moves = { ArrowLeft: (column ?? last + 1) - 1, ArrowRight: (column ?? last - 1) + 1, Home: 0, End: last, Escape: null };
  if (!(event.key in moves)) return;
  event.preventDefault();
  point(moves[event.key]);
});
chart.addEventListener("pointermove", (event) => {
  if (past) point(Math.floor(((event.clientX - chart.getBoundingClientRect().left - 52) / (chart.clientWidth - 56)) * past.steps));
});
chart.addEventListener("pointerleave", () => point(null));
chart.addEventListener("blur", () => point(null));
new ResizeObserver(drawChart).observe(chart);

byId("filter").value = address.q;
draw();
drawEvents();
document.addEventListener("visibilitychange", look);
setInterval(() => document.hidden || readPast(), 30000);
look();
