// What is selected, and what follows from it.

const page = {
  index: 0, position: 0, state: null, thread: null, zoom: 3, pinned: null, kind: "all", sought: "", rows: [], log: null,
};

function select(index) {
  const { thread } = page;
  page.index = Math.max(0, Math.min(thread.steps.length - 1, index));
  const step = thread.steps[page.index];
  page.position = step.position + step.events.length - 1;
  page.state = stateAt(thread, page.position);
  showStep(page.index);
  showRow();
  redraw();
}

let waiting = false;
/** Draw everything that depends on what is selected, once before the next picture. */
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; drawNow(); });
}

const NOTED_MS = 200;
let noting = 0;
/** Note in the address what is selected, so that it can be opened there again; browsers refuse to do so too often. */
function notePlace() {
  const place = `#thread=${page.thread.number}&at=${page.thread.steps[page.index].position}`;
  if (location.hash !== place) history.replaceState(null, "", place);
}

function drawNow() {
  const { thread } = page;
  const step = thread.steps[page.index];
  const head = headline(thread, step);
  drawTracks();
  drawOverview();
  drawRows();
  const open = panesOpen();
  if (open.has("story")) drawStory();
  if (open.has("context")) drawContext();
  if (open.has("compare")) drawCompare();
  $("scrub").value = page.index;
  $("scrub").setAttribute("aria-valuetext", `position ${step.position}, ${head.title}`);
  $("place").textContent = `position ${step.position.toLocaleString("en")}`;
  $("readout").replaceChildren(el("strong", { class: head.kind, text: head.title }), el("span", { dir: "auto", text: ` ${joined(head.more, head.words.slice(0, 140))}` }));
  clearTimeout(noting);
  noting = setTimeout(notePlace, NOTED_MS);
}

/** Which panes can be seen: on a narrow page one, on a wide one three. */
function panesOpen() {
  return new Set(["events", "story", "context", "compare"].filter((name) => $(name).offsetParent !== null));
}

function view(name) {
  document.body.dataset.view = name;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.setAttribute("aria-selected", tab.dataset.view === name ? "true" : "false");
  }
  if (name === "events" && page.thread) showRow();
  redraw();
}

function useThread(number, position = null) {
  page.thread = openThread(page.log, number);
  const { thread } = page;
  page.pinned = null;
  page.kind = "all";
  page.sought = "";
  $("search").value = "";
  $("threads").value = number;
  $("scrub").max = thread.steps.length - 1;
  $("totals").textContent = totals(thread);
  page.zoom = widest(thread);
  layTracks();
  chooseRows();
  select(position === null ? thread.steps.length - 1 : stepAt(thread, position));
}

/** The largest scale at which all of a thread can be seen, or the usual one. */
function widest(thread) {
  const fits = SCALES.filter((wide) => thread.steps.length * wide + 2 * EDGE <= $("scroll").clientWidth).length;
  return Math.max(3, fits - 1);
}

function totals(thread) {
  const refused = thread.line.answers.filter((answer) => answer.reason).length;
  const { turns, bars } = thread.line;
  return joined(count(turns.length, "turn"), count(bars.length, "request"), count(refused, "refused answer"));
}

function zoom(by) {
  page.zoom = Math.max(0, Math.min(SCALES.length - 1, page.zoom + by));
  layTracks();
  $("scroll").scrollLeft = xOf(page.index) - $("scroll").clientWidth / 2;
  redraw();
}

/** The next step behind or before the selected one that fits. */
function seek(by, fits) {
  const { thread } = page;
  for (let at = page.index + by; at >= 0 && at < thread.steps.length; at += by) {
    if (fits(kindOf(thread, thread.steps[at]))) { select(at); return; }
  }
}

const KEYS = {
  ArrowLeft: () => select(page.index - 1),
  ArrowRight: () => select(page.index + 1),
  Home: () => select(0),
  End: () => select(page.thread.steps.length - 1),
  t: () => seek(1, (kind) => kind === "turn"),
  T: () => seek(-1, (kind) => kind === "turn"),
  r: () => seek(1, (kind) => kind === "refused"),
  R: () => seek(-1, (kind) => kind === "refused"),
  "+": () => zoom(1),
  "-": () => zoom(-1),
  a: () => { page.pinned = page.index; view("compare"); },
  "/": () => { if (!panesOpen().has("events")) view("events"); $("search").focus(); },
  "?": () => $("help").showModal(),
  1: () => view("events"),
  2: () => view("story"),
  3: () => view("context"),
  4: () => view("compare"),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
  const typing = event.target.matches("input[type=search], select");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.target === $("rows") && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    const place = above(page.rows, page.index) - 1 + (event.key === "ArrowDown" ? 1 : page.rows[above(page.rows, page.index) - 1] === page.index ? -1 : 0);
    if (page.rows[place] !== undefined) select(page.rows[place]);
    event.preventDefault();
    return;
  }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function listen() {
  document.addEventListener("keydown", onKey);
  $("threads").addEventListener("change", () => useThread(Number($("threads").value)));
  $("scrub").addEventListener("input", () => select(Number($("scrub").value)));
  $("previous").addEventListener("click", () => select(page.index - 1));
  $("next").addEventListener("click", () => select(page.index + 1));
  $("zoom-in").addEventListener("click", () => zoom(1));
  $("zoom-out").addEventListener("click", () => zoom(-1));
  $("help-open").addEventListener("click", () => $("help").showModal());
  $("search").addEventListener("input", () => { page.sought = $("search").value; chooseRows(); $("rows").scrollTop = 0; drawRows(); });
  $("rows").addEventListener("scroll", () => requestAnimationFrame(drawRows), { passive: true });
  $("scroll").addEventListener("scroll", redraw, { passive: true });
  $("tracks").addEventListener("click", (event) => {
    const shape = event.target.closest("[data-at]");
    if (shape) { select(stepAt(page.thread, Number(shape.dataset.at))); return; }
    const x = event.clientX - $("scroll").getBoundingClientRect().left + $("scroll").scrollLeft;
    select(Math.round((x - EDGE) / scale()));
  });
  $("rows").addEventListener("click", (event) => {
    const row = event.target.closest("[data-index]");
    if (row) select(Number(row.dataset.index));
  });
  for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => view(tab.dataset.view));
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function start() {
  page.log = read("index");
  $("title").textContent = visible(page.log.title || "a log");
  const users = new Map();
  page.log.threads.forEach((entry, number) => {
    if (!users.has(entry.user)) users.set(entry.user, el("optgroup", { label: visible(entry.user) }));
    users.get(entry.user).append(el("option", { value: number, text: `${entry.thread} (${count(entry.turns, "turn")})` }));
  });
  $("threads").append(...users.values());
  listen();
  view("context");
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = Number(wanted.get("thread") || 0);
  const known = Number.isInteger(number) && number >= 0 && number < page.log.threads.length;
  useThread(known ? number : 0, known && wanted.has("at") ? Number(wanted.get("at")) || 0 : null);
  requestAnimationFrame(() => performance.mark("shown"));
}

start();
