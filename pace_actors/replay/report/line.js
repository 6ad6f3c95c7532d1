// The time line: an overview on a canvas, and of what is visible the turns, pending turns and requests as shapes. A step
// is as wide as any other: what counts is the order, the time stands beside it.

const SCALES = [3, 5, 8, 12, 15, 18, 22, 26, 32, 38];
const Y = { session: 4, turns: 30, pending: 60, lanes: 104 };
const H = { session: 18, turns: 20, pending: 32, lane: 20, gap: 4, facts: 16, axis: 18 };
const EDGE = 12;

const lanesOf = (thread) => 1 + thread.line.bars.reduce((most, bar) => Math.max(most, bar.lane), 0);
const factsY = (thread) => Y.lanes + lanesOf(thread) * (H.lane + H.gap) + 6;
const heightOf = (thread) => factsY(thread) + H.facts + H.axis + 6;

const scale = () => SCALES[page.zoom];
const xOf = (index) => EDGE + index * scale();
const widthOf = (thread) => 2 * EDGE + thread.steps.length * scale();

/** Lay the tracks out for a thread, at a scale. */
function layTracks() {
  const { thread } = page;
  const height = heightOf(thread);
  $("span").style.width = `${widthOf(thread)}px`;
  $("span").style.height = `${height}px`;
  $("labels").style.height = `${height}px`;
  $("tracks").setAttribute("height", height);
  const labels = [["session", Y.session, H.session], ["turns", Y.turns, H.turns], ["pending", Y.pending, H.pending],
    ["summaries", Y.lanes, H.lane], ["facts", factsY(thread) - 2, H.facts]];
  $("labels").replaceChildren(...labels.map(([words, top, tall]) => {
    const label = el("span", { text: words });
    label.style.top = `${top}px`;
    label.style.lineHeight = `${tall}px`;
    return label;
  }));
}

/** Bring a step into view. */
function showStep(index) {
  const box = $("scroll");
  const x = xOf(index);
  const margin = Math.min(120, box.clientWidth / 4);
  if (x < box.scrollLeft + margin || x > box.scrollLeft + box.clientWidth - margin) {
    box.scrollLeft = x - box.clientWidth / 2;
  }
}

function drawTracks() {
  const { thread } = page;
  const box = $("scroll");
  const drawing = $("tracks");
  const width = box.clientWidth;
  const first = Math.max(0, Math.floor((box.scrollLeft - EDGE) / scale()) - 1);
  const last = Math.min(thread.steps.length - 1, Math.ceil((box.scrollLeft + width) / scale()) + 1);
  drawing.setAttribute("width", width);
  drawing.setAttribute("viewBox", `${box.scrollLeft} 0 ${width} ${heightOf(thread)}`);
  const shown = { first, last, left: box.scrollLeft, right: box.scrollLeft + width };
  drawing.replaceChildren(
    ...sessionsIn(thread, shown), pendingIn(thread, shown), ...cursors(thread), ...turnsIn(thread, shown),
    ...barsIn(thread, shown), ...factsIn(thread, shown), ...axisIn(thread, shown),
  );
}

const indexOf = (thread, position) => stepAt(thread, position);

function sessionsIn(thread, shown) {
  const found = [];
  for (const session of thread.line.sessions) {
    const from = xOf(indexOf(thread, session.began)) - scale() / 2;
    const to = session.ended ? xOf(indexOf(thread, session.ended)) + scale() / 2 - 2 : widthOf(thread) - EDGE / 2;
    if (to < shown.left || from > shown.right) continue;
    const left = Math.max(from, shown.left + 4);
    found.push(svg("rect", {
      class: "session", x: from, y: Y.session, width: Math.max(2, to - from), height: H.session, rx: 4,
    }));
    const words = session.reason ? `session ${session.session} · ends: ${session.reason}` : `session ${session.session}`;
    const room = Math.min(to, shown.right) - left;
    if (room > 60) {
      const fits = room > words.length * 6.4 ? words : `session ${session.session}`;
      found.push(svg("text", { class: "session-name", x: left + 8, y: Y.session + 13, text: fits }));
    }
    if (session.ended) {
      found.push(svg("line", { class: "fence", x1: to + 2, x2: to + 2, y1: Y.session, y2: factsY(thread) + H.facts }));
    }
  }
  for (const [marks, sign, name] of [[thread.line.settings, "⚙", "settings"], [thread.line.withdrawals, "⌫", "withdrawn"]]) {
    for (const mark of marks) {
      const x = xOf(indexOf(thread, mark.position));
      if (x < shown.left - 20 || x > shown.right + 20) continue;
      found.push(svg("line", { class: "mark", x1: x, x2: x, y1: Y.turns - 4, y2: factsY(thread) + H.facts }));
      found.push(pressable(svg("text", { class: "sign", x, y: Y.turns + 15, text: sign }), mark.position, name));
    }
  }
  return found;
}

function pendingIn(thread, shown) {
  let most = 4;
  for (let at = shown.first; at <= shown.last; at += 1) most = Math.max(most, thread.pending[at]);
  const y = (value) => Y.pending + H.pending * (1 - value / most);
  const base = Y.pending + H.pending;
  let path = `M${xOf(shown.first) - scale() / 2} ${base}`;
  for (let at = shown.first; at <= shown.last; at += 1) {
    path += `V${y(thread.pending[at]).toFixed(1)}H${(xOf(at) + scale() / 2).toFixed(1)}`;
  }
  const group = svg("g", {}, svg("path", { class: "pending-area", d: `${path}V${base}Z` }));
  group.append(svg("line", { class: "base", x1: shown.left, x2: shown.right, y1: base + 0.5, y2: base + 0.5 }));
  if (thread.pendingMax) {
    group.append(svg("text", { class: "scale-mark", x: shown.right - 6, y: Y.pending + 8, text: `${most} turns` }));
  }
  return group;
}

/** Where a turn is, seen from the selected position. */
function stageOf(turn) {
  const { state, position } = page;
  if (turn.position > position) return "future";
  if (turn.erased && turn.erased <= position) return "gone";
  if (turn.withdrawn && turn.withdrawn <= position) return "gone";
  if (!state.live || turn.turn < state.first_turn) return "past";
  if (turn.turn <= state.covered) return "covered";
  return turn.turn <= state.displaced ? "pending" : "window";
}

function turnsIn(thread, shown) {
  const found = [];
  const wide = Math.max(3, Math.min(scale() - 2, 30));
  for (let at = shown.first; at <= shown.last; at += 1) {
    const turn = thread.turnAt.get(thread.steps[at].position);
    if (!turn || !thread.steps[at].own) continue;
    const x = xOf(at) - wide / 2;
    const stage = stageOf(turn);
    const mark = svg("rect", { class: `turn ${stage}`, x, y: Y.turns, width: wide, height: H.turns, rx: Math.min(4, wide / 3) });
    const group = svg("g", { "data-turn": turn.turn, class: at === page.index ? "chosen" : "" }, mark);
    if (wide >= `${turn.turn}`.length * 6.5 + 4) {
      group.append(svg("text", { class: `turn-name ${stage}`, x: xOf(at), y: Y.turns + 14, text: turn.turn }));
    }
    found.push(pressable(group, turn.position, `turn ${turn.turn}, ${STAGES[stage]}`));
  }
  return found;
}

const STAGES = {
  future: "not said yet", gone: "withdrawn", past: "of an earlier session", covered: "summarised", pending: "pending",
  window: "word for word",
};
const SIGNS = { accepted: "✓", rejected: "✗", dropped: "╳", open: "…" };
const barWords = (bar) => {
  const asked = `v${bar.version} for ${turnsNamed(bar.first, bar.last)}`;
  if (bar.outcome === "accepted") return `${asked}, accepted`;
  if (bar.outcome === "rejected") return `${asked}, refused: ${bar.reason}`;
  return bar.outcome === "dropped" ? `${asked}, dropped: ${bar.reason}` : `${asked}, in flight`;
};

/** When a request was asked, and when it ended. */
function barTimes(bar) {
  const asked = `asked at position ${bar.asked}, ${clock(bar.asked_at)}`;
  const ended = bar.closed ? `${bar.outcome} at ${bar.closed}, ${clock(bar.closed_at)}, after ${lasted(bar.asked_at, bar.closed_at)}` : "open";
  const base = bar.base ? `on v${bar.base}` : "on nothing";
  return `${barWords(bar)}\n${base}\n${asked}\n${ended}`;
}

function barsIn(thread, shown) {
  const found = [];
  for (const bar of thread.line.bars) {
    const from = xOf(indexOf(thread, bar.caused));
    const to = bar.closed ? xOf(indexOf(thread, bar.closed)) : widthOf(thread) - EDGE / 2;
    if (to < shown.left - 4 || from > shown.right + 4) continue;
    found.push(barShape(bar, from, Math.max(to - from, scale() * 0.8), shown));
    if (bar.answered && bar.answered !== bar.closed) {
      const x = xOf(indexOf(thread, bar.answered));
      const late = svg("text", { class: "late", x, y: Y.lanes + bar.lane * (H.lane + H.gap) + 15, text: "✗" });
      found.push(pressable(late, bar.answered, `late answer to v${bar.version}`));
    }
  }
  return found;
}

function barShape(bar, from, wide, shown) {
  const y = Y.lanes + bar.lane * (H.lane + H.gap);
  const chosen = [bar.asked, bar.closed].some((each) => each && indexOf(page.thread, each) === page.index);
  const group = svg("g", { class: chosen ? "bar chosen" : "bar", "data-bar": `${bar.generation}.${bar.version}`, "data-outcome": bar.outcome });
  group.append(svg("rect", { class: `bar-body ${bar.outcome}`, x: from, y, width: wide, height: H.lane, rx: 5 }));
  const left = Math.max(from, shown.left);
  const room = Math.min(from + wide, shown.right) - left;
  const sign = SIGNS[bar.outcome];
  const full = `v${bar.version} · ${span(bar.first, bar.last)} ${sign}`;
  const words = [bar.reason ? `${full} ${bar.reason}` : full, full, `v${bar.version} ${sign}`, sign]
    .find((each) => each.length * 6.3 + 10 <= room);
  if (words) group.append(svg("text", { class: `bar-name ${bar.outcome}`, x: left + 6, y: y + 14, text: words }));
  group.append(svg("title", { text: barTimes(bar) }));
  return pressable(group, bar.closed || bar.asked, barWords(bar));
}

function factsIn(thread, shown) {
  const found = [];
  const y = factsY(thread) + H.facts / 2;
  for (let at = shown.first; at <= shown.last; at += 1) {
    const step = thread.steps[at];
    if (step.own || step.events.length < 2) continue;
    const did = new Set(step.events.slice(1).map(([type]) => type));
    const kind = did.has("FactRejected") ? "refused" : did.has("FactForgotten") ? "dropped" : "known";
    const x = xOf(at);
    const mark = svg("path", { class: `fact ${kind}`, d: `M${x} ${y - 5}l5 5l-5 5l-5 -5Z` });
    found.push(pressable(mark, step.position, headline(thread, step).title));
  }
  return found;
}

function axisIn(thread, shown) {
  const found = [];
  const y = factsY(thread) + H.facts + H.axis - 4;
  const every = Math.ceil(130 / scale());
  for (let at = Math.floor(shown.first / every) * every; at <= shown.last; at += every) {
    const step = thread.steps[at];
    if (!step) continue;
    const x = xOf(at);
    found.push(svg("line", { class: "tick", x1: x, x2: x, y1: y - 14, y2: y - 10 }));
    const words = `${step.position} · ${clock(step.at).slice(0, 5)}`;
    found.push(svg("text", { class: at ? "axis" : "axis first", x: at ? x : 2, y, text: words }));
  }
  return found;
}

function cursors(thread) {
  const found = [];
  const y2 = factsY(thread) + H.facts;
  for (const [index, name] of [[page.pinned, "pinned"], [page.index, "cursor"]]) {
    if (index === null) continue;
    const x = xOf(index);
    found.push(svg("line", { class: name, x1: x, x2: x, y1: 0, y2 }));
    if (name === "pinned") found.push(svg("text", { class: "pinned-name", x: x + 4, y: 9, text: "A" }));
  }
  return found;
}

function pressable(shape, position, words) {
  shape.setAttribute("role", "button");
  shape.setAttribute("aria-label", words);
  shape.setAttribute("data-at", position);
  shape.classList.add("press");
  return shape;
}

// --- the overview ----------------------------------------------------------------------------------------------------

function drawOverview() {
  const { thread } = page;
  const canvas = $("overview");
  const wide = canvas.clientWidth;
  const tall = 30;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = wide * ratio;
  canvas.height = tall * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.body);
  const colour = (name) => style.getPropertyValue(name);
  const steps = thread.steps.length;
  const most = Math.log1p(Math.max(4, thread.pendingMax)); // one long wait is not to hide all others
  const column = (x) => Math.min(steps - 1, Math.floor((x / wide) * steps));
  for (let x = 0; x < wide; x += 1) {
    let pending = 0;
    let refused = 0;
    for (let at = column(x); at <= column(x + 1) && at < steps; at += 1) {
      pending = Math.max(pending, thread.pending[at]);
      refused += thread.refused[at];
    }
    pen.fillStyle = colour("--pending-soft");
    const high = (Math.log1p(pending) / most) * (tall - 8);
    pen.fillRect(x, tall - 6 - high, 1, high);
    if (refused) {
      pen.fillStyle = colour("--refused");
      pen.fillRect(x, tall - 4, 1, 4);
    }
  }
  pen.fillStyle = colour("--soft");
  for (const session of thread.line.sessions) {
    if (session.ended) pen.fillRect((indexOf(thread, session.ended) / steps) * wide, 0, 1, tall);
  }
  const box = $("scroll");
  const from = Math.max(0, (box.scrollLeft - EDGE) / scale() / steps) * wide;
  const to = Math.min(1, (box.scrollLeft + box.clientWidth) / scale() / steps) * wide;
  pen.fillStyle = colour("--glass");
  pen.fillRect(from, 0, to - from, tall);
  pen.strokeStyle = colour("--rule-strong");
  pen.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), tall - 1);
}
