"use strict";

// The log as this file holds it. Everything that is shown is read from `stateAt(thread, position)` and from the tables of
// the time line; the rules that made them are not here.

const $ = (id) => document.getElementById(id);
const read = (id) => JSON.parse($(id).textContent);

/** The first place in an ascending list whose value is above `value`. */
function above(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

const rowsOf = (table) =>
  table.rows.map((row) => Object.fromEntries(table.columns.map((name, at) => [name, row[at]])));

/** A value with the numbers of texts replaced by the texts. */
function told(part, value) {
  if (Array.isArray(value)) return value.map((each) => told(part, each));
  if (value === null || typeof value !== "object") return value;
  if ("$" in value) return part.texts[value.$];
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, told(part, each)]));
}

function partOf(id) {
  const part = read(id);
  part.positions = part.steps.map((step) => step[0]);
  part.wholeAt = part.whole.map(([at]) => at);
  part.lists = new Set(part.lists);
  return part;
}

/** The sections after a step: the last whole ones before it, and what has changed since. */
function sectionsAt(part, index) {
  if (index < 0) return told(part, part.empty);
  const [first, whole] = part.whole[above(part.wholeAt, index) - 1];
  const now = { ...whole };
  for (const name of part.lists) if (name in now) now[name] = now[name].slice();
  for (let at = first + 1; at <= index; at += 1) {
    for (const [name, change] of Object.entries(part.changes[at])) {
      if (part.lists.has(name)) for (const [where, gone, comes] of change) now[name].splice(where, gone, ...comes);
      else now[name] = change;
    }
  }
  return told(part, now);
}

/** A thread, and what is known of its user, after the batch that holds a position, or the last one before it. */
function stateAt(thread, position) {
  const own = sectionsAt(thread.part, above(thread.part.positions, position) - 1);
  return { ...own, ...sectionsAt(thread.facts, above(thread.facts.positions, position) - 1) };
}

const parts = new Map();
const partNamed = (id) => {
  if (!parts.has(id)) parts.set(id, partOf(id));
  return parts.get(id);
};

/** A thread as the page uses it; read when it is first looked at. */
function openThread(index, number) {
  const entry = index.threads[number];
  const part = partNamed(`thread-${number}`);
  const facts = partNamed(`user-${entry.facts}`);
  const thread = { number, entry, part, facts };
  thread.line = Object.fromEntries(Object.entries(part.line).map(([name, table]) => [name, rowsOf(table)]));
  const turns = new Map(thread.line.turns.map((turn) => [turn.position, turn]));
  thread.turnAt = turns;
  thread.turn = new Map(thread.line.turns.map((turn) => [turn.turn, turn]));
  const own = part.steps.filter((step) => step.length > 1).map((raw) => stepOf(part, raw, true));
  const decided = new Set(thread.line.facts.map((fact) => fact.position));
  const here = ([position, , , , source, events]) =>
    !source || turns.has(source) || events.some((_, place) => decided.has(position + place));
  const others = facts.steps.filter(here).map((raw) => stepOf(facts, raw, false));
  thread.steps = merged(own, others);
  thread.positions = thread.steps.map((step) => step.position);
  thread.bar = new Map(thread.line.bars.map((bar) => [`${bar.generation}.${bar.version}`, bar]));
  thread.answer = new Map(thread.line.answers.map((answer) => [answer.position, answer]));
  thread.coveredAt = thread.line.coverage.map((mark) => mark.position);
  measure(thread);
  return thread;
}

function stepOf(part, raw, own) {
  const [position, version, at, erased, source, events] = raw;
  return { position, version, at, erased, source, own, part, events, type: events[0][0] };
}

function merged(one, other) {
  const all = [];
  let left = 0;
  let right = 0;
  while (left < one.length || right < other.length) {
    const first = right >= other.length || (left < one.length && one[left].position < other[right].position);
    all.push(first ? one[left++] : other[right++]);
  }
  return all;
}

/** Of each step how many turns are pending, and whether something was refused: what the overview draws. */
function measure(thread) {
  thread.pending = new Uint32Array(thread.steps.length);
  thread.refused = new Uint8Array(thread.steps.length);
  let mark = -1;
  const marks = thread.line.coverage;
  thread.steps.forEach((step, at) => {
    while (mark + 1 < marks.length && marks[mark + 1].position <= step.position) mark += 1;
    thread.pending[at] = mark < 0 ? 0 : marks[mark].pending;
    const answer = thread.answer.get(step.position);
    thread.refused[at] = answer && answer.reason ? 1 : 0;
  });
  thread.pendingMax = thread.pending.reduce((most, each) => Math.max(most, each), 0);
}

/** The step that holds a position, or the last one before it; 0 for what lies before the first. */
const stepAt = (thread, position) => Math.max(0, above(thread.positions, position) - 1);

const fieldsOf = (step, place) => told(step.part, step.events[place][1]);
const decisionsOf = (step) => step.events.slice(1).map(([type, fields], at) => ({
  type, fields: told(step.part, fields), position: step.position + at + 1, version: step.version + at + 1,
}));

/** Every text of a step, in lower case, for the search. */
function wordsOf(step) {
  if (step.words === undefined) {
    const found = [];
    const walk = (value) => {
      if (typeof value === "string") found.push(value);
      else if (value && typeof value === "object") Object.values(value).forEach(walk);
    };
    step.events.forEach(([type, fields]) => { found.push(type); walk(told(step.part, fields)); });
    step.words = found.join("\n").toLowerCase();
  }
  return step.words;
}
