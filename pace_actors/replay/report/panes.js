// The list of events, what happened at one of them, the context then, and two contexts beside each other.

// --- events ----------------------------------------------------------------------------------------------------------

const ROW = 48;
const KINDS = [
  ["all", "All", () => true],
  ["turn", "Turns", (kind) => kind === "turn"],
  ["answer", "Answers", (kind) => kind === "accepted" || kind === "refused"],
  ["refused", "Refused", (kind) => kind === "refused"],
  ["fence", "Fences", (kind) => kind === "fence"],
  ["fact", "Facts", (kind) => kind === "fact"],
];

/** Which steps are listed, by the kind that is chosen and the words that are looked for. */
function chooseRows() {
  const { thread } = page;
  const fits = KINDS.find(([name]) => name === page.kind)[2];
  const words = page.sought.toLowerCase().split(/\s+/).filter(Boolean);
  page.rows = [];
  thread.steps.forEach((step, at) => {
    const passes = page.kind === "all" || fits(kindOf(thread, step));
    if (passes && words.every((word) => wordsOf(step).includes(word))) page.rows.push(at);
  });
  $("rows-span").style.height = `${page.rows.length * ROW}px`;
  $("rows-none").hidden = page.rows.length > 0;
  drawChips();
}

function drawChips() {
  const { thread } = page;
  if (!thread.counts) {
    thread.counts = Object.fromEntries(KINDS.map(([name]) => [name, 0]));
    for (const step of thread.steps) {
      const kind = kindOf(thread, step);
      for (const [name, , fits] of KINDS) if (fits(kind)) thread.counts[name] += 1;
    }
  }
  $("chips").replaceChildren(...KINDS.filter(([name]) => name === "all" || thread.counts[name]).map(([name, words]) =>
    el("button", {
      type: "button", class: `chip ${name}`, "aria-pressed": name === page.kind ? "true" : "false",
      press: () => { page.kind = name; chooseRows(); showRow(); drawRows(); },
    }, el("span", { text: words }), el("span", { class: "number", text: thread.counts[name].toLocaleString("en") }))));
}

function drawRows() {
  const box = $("rows");
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
  const last = Math.min(page.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 4);
  const shown = [];
  for (let place = first; place < last; place += 1) shown.push(rowShape(page.rows[place], place));
  $("rows-span").replaceChildren(...shown);
  box.setAttribute("aria-activedescendant", `row-${page.index}`);
}

function rowShape(index, place) {
  const { thread } = page;
  const step = thread.steps[index];
  const head = headline(thread, step);
  const row = el(
    "div",
    {
      class: `row ${head.kind}`, id: `row-${index}`, role: "option", "data-index": index,
      "aria-selected": index === page.index ? "true" : "false", "aria-posinset": place + 1,
      "aria-setsize": page.rows.length,
    },
    el("span", { class: "dot" }),
    el("span", { class: "row-title", text: head.title }),
    el("span", { class: "row-more", text: head.more || "" }),
    el("span", { class: "row-place", text: `${step.position} · ${clock(step.at)}` }),
    el("span", { class: "row-words", dir: "auto", text: head.words.slice(0, 160) }),
  );
  row.style.top = `${place * ROW}px`;
  return row;
}

/** Bring the selected step into view in the list, or the last one before it that is listed. */
function showRow() {
  const place = Math.max(0, above(page.rows, page.index) - 1);
  const box = $("rows");
  const top = place * ROW;
  if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) {
    box.scrollTop = top - box.clientHeight / 2 + ROW / 2;
  }
}

// --- what happened ---------------------------------------------------------------------------------------------------

function drawStory() {
  const { thread } = page;
  const step = thread.steps[page.index];
  const head = headline(thread, step);
  const pieces = [
    el("header", { class: "story-head" },
      el("h2", { class: `title ${head.kind}`, text: head.title }),
      el("p", { class: "sub", text: `${step.type} at position ${step.position} · ${day(step.at)} ${clock(step.at)} UTC` })),
    ...bodyOf(thread, step),
  ];
  const chain = chainOf(thread, step);
  if (chain.length) {
    pieces.push(el("h3", { text: "How it hangs together" }), el("ol", { class: "chain" }, chain.map(linkShape)));
  }
  pieces.push(rawOf(step));
  $("story").replaceChildren(...pieces);
  $("story").scrollTop = 0;
}

function bodyOf(thread, step) {
  const heard = fieldsOf(step, 0);
  if (step.erased) return [el("p", { class: "none", text: "Its words are erased; the numbers stay." })];
  if (step.type === "TurnHeard") {
    const acts = (heard.actions || []).map((each) => quote([each.name, each.arguments, each.outcome].filter(Boolean).join("\n"), "Action"));
    return [heard.user && quote(heard.user, "User"), heard.assistant && quote(heard.assistant, "Assistant"), ...acts].filter(Boolean);
  }
  if (step.type === "AnswerArrived") {
    const answer = thread.answer.get(step.position);
    const why = answer.reason && el("p", { class: "why refused" }, el("strong", { text: `Refused: ${answer.reason}. ` }), el("span", { text: whyRefused(answer.reason) }));
    const words = heard.text ? quote(heard.text, heard.model ? `Raw answer of ${heard.model}` : "Raw answer") : null;
    const detail = heard.detail ? quote(heard.detail, "The failure said") : null;
    return [why, words, detail].filter(Boolean);
  }
  if (step.type === "NoteTaken") return [quote(heard.text || "", "Note")];
  return plainBody(thread, step);
}

function plainBody(thread, step) {
  const { words, more } = headline(thread, step);
  return [words && el("p", { class: "said", dir: "auto", text: words }), more && el("p", { class: "said soft", text: more })].filter(Boolean);
}

/** The events of a step as they are stored, written out when somebody wants to see them. */
function rawOf(step) {
  const box = el("details", { class: "raw" }, el("summary", { text: "As recorded" }));
  box.addEventListener("toggle", () => {
    box.append(...step.events.map(([type], place) => el("div", {},
      el("h4", { text: `${step.position + place} ${type}` }),
      el("pre", { text: JSON.stringify(fieldsOf(step, place), null, 1).slice(0, 20000) }))));
  }, { once: true });
  return box;
}

/** One link of a chain: what, when, and whether it is what is selected. */
function link(kind, title, position, more = "") {
  return { kind, title, position, more };
}

function linkShape({ kind, title, position, more }) {
  const here = position && stepAt(page.thread, position) === page.index;
  const words = position
    ? jump(position, title)
    : el("span", { class: "jump flat", text: title });
  return el("li", { class: `link ${kind}${here ? " here" : ""}`, "aria-current": here ? "step" : null },
    words, position ? el("span", { class: "at", text: position }) : null,
    more && el("p", { class: "link-more", dir: "auto", text: more }));
}

function chainOf(thread, step) {
  if (step.type === "AnswerArrived") return chainOfAnswer(thread, step);
  if (step.type === "TurnHeard") return chainOfTurn(thread, thread.turnAt.get(step.position));
  if (step.type === "CandidatesExtracted") return chainOfFacts(thread, step);
  return chainOfFence(thread, step);
}

const beginning = (thread, turn) => {
  const step = thread.steps[stepAt(thread, turn.position)];
  return headline(thread, step).words.slice(0, 90);
};

function chainOfAnswer(thread, step) {
  const answer = thread.answer.get(step.position);
  const bar = thread.bar.get(`${answer.generation}.${answer.version}`);
  return bar ? chainOfBar(thread, bar, answer) : [link("refused", "Nobody had asked for it", step.position)];
}

/** Turns → request → answer → decision → what followed. */
function chainOfBar(thread, bar, answer) {
  const found = [];
  const turns = thread.line.turns.filter((turn) => turn.turn >= bar.first && turn.turn <= bar.last);
  for (const turn of turns.slice(0, 3)) {
    found.push(link("turn", `Turn ${turn.turn} was said`, turn.position, beginning(thread, turn)));
  }
  if (turns.length > 3) {
    const rest = turns.slice(3);
    found.push(link("turn", `and ${turnsNamed(rest[0].turn, rest[rest.length - 1].turn)}`, rest[rest.length - 1].position));
  }
  if (bar.base) {
    const base = thread.bar.get(`${bar.generation}.${bar.base}`);
    found.push(link("accepted", `Summary v${bar.base} stood`, base ? base.closed : 0, base ? `it covered up to turn ${base.last}` : ""));
  }
  const by = bar.by === "model" ? "" : `, ${bar.by}`;
  const upon = bar.base ? `to go on from v${bar.base}` : "from nothing before";
  found.push(link("request", `v${bar.version} was asked for ${turnsNamed(bar.first, bar.last)}`, bar.asked, `${upon}${by}`));
  if (bar.outcome === "dropped") {
    found.push(link("dropped", `Dropped: ${bar.reason}`, bar.closed, DROPPED[bar.reason] || ""));
  }
  found.push(...answersOf(thread, bar, answer));
  return found.concat(after(thread, bar));
}

function answersOf(thread, bar, chosen) {
  const all = thread.line.answers.filter((each) => each.generation === bar.generation && each.version === bar.version);
  const shown = all.length > 4 && chosen ? [chosen] : all;
  return shown.flatMap((answer) => [
    ...newerOf(thread, answer),
    link("answer", `Answered after ${lasted(bar.asked_at, answer.at)}`, answer.position, count(answer.chars, "character")),
    answer.reason
      ? link("refused", `Refused: ${answer.reason}`, answer.position + 1, whyRefused(answer.reason))
      : link("accepted", `Accepted: covers up to turn ${bar.last}`, answer.position + 1),
  ]);
}

/** What was accepted before a stale answer came. */
function newerOf(thread, answer) {
  if (answer.reason !== "stale") return [];
  const newer = thread.line.bars.filter((bar) => bar.session === answer.session && bar.outcome === "accepted" && bar.closed < answer.position);
  const latest = newer.reduce((one, other) => (one && one.closed > other.closed ? one : other), null);
  return latest ? [link("accepted", `v${latest.version} had been accepted: it covers up to turn ${latest.last}`, latest.closed)] : [];
}

/** What came of it: who went on from it, who saw it, or how its turns were covered instead. */
function after(thread, bar) {
  const found = [];
  if (bar.outcome === "accepted") {
    const saw = thread.line.turns.filter((turn) => turn.saw && turn.saw[0] === bar.generation && turn.saw[1] === bar.version);
    if (saw.length) {
      found.push(link("turn", `Seen in the ${saw.length === 1 ? "context" : "contexts"} of ${ranges(saw.map((turn) => turn.turn))}`, saw[0].position, "answered with this summary in view"));
    }
    const next = thread.line.bars.find((each) => each.generation === bar.generation && each.base === bar.version);
    if (next) found.push(link("request", `v${next.version} goes on from it, for ${turnsNamed(next.first, next.last)}`, next.asked));
    if (bar.invalidated) found.push(link("dropped", "Dropped again: a turn that it had seen was withdrawn", bar.invalidated));
    return found;
  }
  if (bar.outcome === "open") return [link("open", "No answer yet", 0)];
  const sessions = (each) => each.session === bar.session && each.asked > bar.asked;
  const again = thread.line.bars.find((each) => sessions(each) && each.last >= bar.last && each.first <= bar.last);
  if (again) found.push(link("request", `Its turns were asked for again as v${again.version}`, again.asked));
  const covered = thread.turn.get(bar.last);
  const session = thread.line.sessions.find((each) => each.session === bar.session);
  if (covered && covered.covered) {
    found.push(link("accepted", `Turn ${bar.last} was covered in the end`, covered.covered));
  } else {
    const ended = session && session.ended ? `session ${session.session} ended: ${session.reason}` : "";
    found.push(link("open", `Turn ${bar.last} came into no summary`, ended ? session.ended : 0, ended));
  }
  return found;
}

function chainOfTurn(thread, turn) {
  if (!turn) return [];
  const found = [];
  if (turn.saw) {
    const saw = thread.bar.get(turn.saw.join("."));
    found.push(link("accepted", `It answered a context with summary v${turn.saw[1]}`, saw ? saw.closed : 0));
  }
  found.push(link("turn", `Turn ${turn.turn} was said`, turn.position, count(turn.chars, "character")));
  const facts = thread.line.facts.filter((fact) => fact.turn === turn.turn).slice(0, 6);
  for (const fact of facts) {
    const why = fact.reason ? `: ${fact.reason}` : "";
    found.push(link(fact.reason ? "refused" : "fact", `Fact ${DID[fact.decision] || fact.decision}${why}`, fact.position));
  }
  if (turn.displaced) {
    const by = thread.turnAt.get(thread.steps[stepAt(thread, turn.displaced)].position);
    found.push(link("pending", by ? `Turn ${by.turn} pushed it out of the window` : "It left the window", turn.displaced));
  }
  const asked = thread.line.bars.filter((bar) => bar.session === turn.session && bar.first <= turn.turn && turn.turn <= bar.last);
  for (const bar of asked.slice(0, 8)) {
    found.push(link(KIND_OF[bar.outcome], barWords(bar), bar.closed || bar.asked));
  }
  if (asked.length > 8) found.push(link("request", `and ${count(asked.length - 8, "more request")}`, 0));
  if (turn.withdrawn) found.push(link("dropped", "Withdrawn: shown nowhere any more", turn.withdrawn));
  if (turn.erased) found.push(link("dropped", "Erased", turn.erased));
  const session = thread.line.sessions.find((each) => each.session === turn.session);
  if (session && session.ended) {
    const left = turn.displaced ? "" : "it had never left the window";
    found.push(link("dropped", `Session ${session.session} ended: ${session.reason}`, session.ended, left));
  } else if (!turn.displaced && !turn.withdrawn) {
    found.push(link("window", "It is in the window still", 0));
  }
  return found;
}
const KIND_OF = { accepted: "accepted", rejected: "refused", dropped: "dropped", open: "open" };

function chainOfFacts(thread, step) {
  const turn = thread.turnAt.get(step.source);
  const found = turn ? [link("turn", `Turn ${turn.turn} was said`, turn.position, beginning(thread, turn))] : [];
  found.push(link("answer", "An extractor looked at it", step.position, fieldsOf(step, 0).extractor || ""));
  const heard = fieldsOf(step, 0);
  for (const { type, fields, position } of decisionsOf(step)) {
    const said = heard.candidates && heard.candidates[fields.item || 0];
    const why = fields.reason ? `: ${fields.reason}` : "";
    const rule = fields.reason ? reasonOf("candidates", fields.reason) : "";
    const kind = fields.reason ? "refused" : "fact";
    found.push(link(kind, `${capital(DID[type] || type)}${why}`, position, joined(said ? factNamed(said) : `fact ${fields.fact}`, rule)));
  }
  return found;
}

function chainOfFence(thread, step) {
  const last = step.position + step.events.length - 1;
  const within = (position) => position >= step.position && position <= last;
  const found = [];
  for (const bar of thread.line.bars) {
    if (bar.outcome === "dropped" && within(bar.closed)) {
      found.push(link("dropped", `v${bar.version} was in flight and is dropped`, bar.asked, `for ${turnsNamed(bar.first, bar.last)}`));
      if (bar.answered) found.push(link("refused", `its answer came late, and was refused`, bar.answered));
    }
    if (within(bar.invalidated)) found.push(link("accepted", `v${bar.version} had been accepted and is dropped`, bar.closed));
    if (within(bar.asked)) found.push(link("request", `v${bar.version} is asked for ${turnsNamed(bar.first, bar.last)}`, bar.asked));
  }
  return found;
}

// --- the context -----------------------------------------------------------------------------------------------------

function drawContext() {
  const { state, position, thread } = page;
  const used = Math.min(1, state.chars / state.context_chars);
  const bar = el("div", { class: "meter", role: "img", "aria-label": `${state.chars} of ${state.context_chars} characters` }, el("span"));
  bar.firstChild.style.width = `${(used * 100).toFixed(1)}%`;
  const live = state.live ? `session ${state.session}` : "no live session";
  $("context").replaceChildren(
    el("header", { class: "story-head" },
      el("h2", { class: "title", text: "What the planner sees" }),
      el("p", { class: "sub", text: `after position ${position} · ${live} · ${state.chars.toLocaleString("en")} of ${state.context_chars.toLocaleString("en")} characters` }), bar),
    ...sectionsShown(thread, state).filter(Boolean),
  );
}

function sectionsShown(thread, state) {
  const system = state.system.map(([line]) => line).join("\n");
  const facts = state.facts.filter(([id]) => !state.hidden.includes(id));
  const covers = state.summary_version ? `v${state.summary_version[1]} · ${turnsNamed(state.first_turn, state.covered)}` : "";
  return [
    section("covered", "Summary", covers, state.summary, state.summary ? [quote(state.summary)] : []),
    section("pending", "Pending", state.pending.length ? reach(state.pending) : "", state.pending.map((each) => each[1].join("\n")).join(""),
      pendingShown(thread, state)),
    section("window", "Window", state.window.length ? `${reach(state.window)}, word for word` : "", state.window.map((each) => each[1] + each[2]).join(""),
      state.window.map(([turn, user, assistant]) => pairShape(thread, turn, user, assistant))),
    section("known", "Facts", facts.length ? count(facts.length, "fact") : "", facts.map((each) => each[1]).join(""), facts.map(factShape)),
    section("open", "Requests in flight", "", null, state.requests.map(([number, base, first, last]) =>
      el("p", { class: "item", text: `v${number} for ${turnsNamed(first, last)}, ${base ? `on v${base}` : "on nothing"}` }))),
    section("", "System text, as it is sent", "", system, system ? [quote(system)] : [], false),
    section("", "Numbers", "", null, [numbers(state)], false),
  ];
}
/** The pending turns; those whose extracts only the log still has, as one. */
function pendingShown(thread, state) {
  const bare = state.pending.filter(([, words]) => !words.join(""));
  const rest = state.pending.slice(bare.length).map(([turn, words, shown]) => item(thread, turn, linesOf(words), shown ? "" : "left out"));
  if (!bare.length) return rest;
  return [el("p", { class: "sub", text: `${turnsNamed(bare[0][0], bare[bare.length - 1][0])}: only the log still has them; left out for length` }), ...rest];
}

const linesOf = (lines) => lines.join("\n") || "only the log still has it";
const reach = (list) => turnsNamed(list[0][0], list[list.length - 1][0]);

function section(kind, title, more, text, children, open = true) {
  if (!children.length) {
    return el("p", { class: `section-none ${kind}` }, el("span", { class: "dot" }), el("span", { text: title }), el("span", { class: "sub", text: "nothing" }));
  }
  return el("details", { class: `section ${kind}`, open, "data-section": title },
    el("summary", {}, el("span", { class: "dot" }), el("span", { class: "section-title", text: title }), el("span", { class: "sub", text: more }),
      text === null ? null : el("span", { class: "size", text: size(characters(text)) })),
    el("div", { class: "section-body" }, children));
}

function item(thread, turn, words, note) {
  const known = thread.turn.get(turn);
  return el("div", { class: "item" },
    known ? jump(known.position, turn, "turn-link") : el("span", { text: turn }),
    el("p", { class: "words", dir: "auto", text: words }), note && el("span", { class: "badge", text: note }));
}

function pairShape(thread, turn, user, assistant) {
  const known = thread.turn.get(turn);
  return el("div", { class: "item pair" }, known ? jump(known.position, turn, "turn-link") : el("span", { text: turn }),
    el("div", {}, quote(user, "User"), quote(assistant, "Assistant")));
}

function factShape([id, words, confidence, sensitive, origin]) {
  const notes = [origin === "extracted" ? "" : origin, sensitive ? "sensitive" : "", `${(confidence / 1000).toFixed(2)}`];
  return el("div", { class: "item" }, el("span", { class: "fact-id", text: id }), el("p", { class: "words", dir: "auto", text: words }),
    el("span", { class: "sub", text: notes.filter(Boolean).join(" · ") }));
}

const NUMBERS = ["session", "live", "first_turn", "covered", "displaced", "last_turn", "generation", "failures", "last_failure", "chars", "context_chars", "tombstones"];

function numbers(state) {
  const settings = Object.entries(state.settings).map(([name, value]) => `${name}=${value}`).join(", ") || "all defaults";
  const pairs = [...NUMBERS.map((name) => [name.replace("_", " "), state[name] === null ? "–" : String(state[name])]), ["settings", settings]];
  return el("dl", { class: "numbers" }, pairs.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })]));
}

// --- two contexts ----------------------------------------------------------------------------------------------------

function drawCompare() {
  const { thread } = page;
  const from = page.pinned === null ? Math.max(0, page.index - 1) : page.pinned;
  const before = thread.steps[from].position;
  const found = differences(stateAt(thread, before), page.state);
  const pin = el("button", { type: "button", class: "quiet", text: page.pinned === null ? "Pin this position as A" : "Unpin A", press: togglePin });
  $("compare").replaceChildren(
    el("header", { class: "story-head" },
      el("h2", { class: "title", text: "What changed" }),
      el("p", { class: "sub" }, "from ", jump(before, `A: ${before}`), " to ", jump(page.position, `B: ${page.position}`), page.pinned === null ? " (the step before)" : ""), pin),
    ...(found.length ? found.map(changeShape) : [el("p", { class: "none", text: "Nothing: both contexts are the same." })]),
  );
}

function togglePin() {
  page.pinned = page.pinned === null ? page.index : null;
  redraw();
}

/** What differs between two states, section by section: `{title, gone, come, words}`. */
function differences(before, after) {
  const found = [];
  const listed = [
    ["Pending", "pending", (each) => each[0], (each) => `${each[0]}: ${linesOf(each[1])}`],
    ["Window", "window", (each) => each[0], (each) => `${each[0]}: ${each[1]} → ${each[2]}`],
    ["Facts", "facts", (each) => each[0], (each) => `${each[1]} (${(each[2] / 1000).toFixed(2)})`],
    ["Requests in flight", "requests", (each) => each[0], (each) => `v${each[0]} for ${turnsNamed(each[2], each[3])}`],
    ["Left out for length", "left_out", (each) => each.join("–"), (each) => turnsNamed(each[0], each[1])],
  ];
  if (before.summary !== after.summary) found.push({ title: "Summary", words: wordChanges(before.summary, after.summary) });
  for (const [title, name, key, words] of listed) {
    const [gone, come] = listChanges(before[name], after[name], key, words);
    if (gone.length || come.length) found.push({ title, gone, come });
  }
  const changed = [...NUMBERS, "hidden", "settings"].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  if (changed.length) {
    const value = (state, name) => (typeof state[name] === "object" && state[name] !== null ? JSON.stringify(state[name]) : String(state[name] ?? "–"));
    found.push({ title: "Numbers", numbers: changed.map((name) => [name.replace("_", " "), value(before, name), value(after, name)]) });
  }
  return found;
}

function listChanges(before, after, key, words) {
  const old = new Map(before.map((each) => [key(each), words(each)]));
  const now = new Map(after.map((each) => [key(each), words(each)]));
  const gone = [...old].filter(([name, said]) => now.get(name) !== said).map(([, said]) => said);
  const come = [...now].filter(([name, said]) => old.get(name) !== said).map(([, said]) => said);
  return [gone, come];
}

const WORDS_MAX = 700;

/** Pieces of two texts: `[sign, words]`, by the longest words that they have in common. */
function wordChanges(before, after) {
  const old = before.split(/(?<=\s)/);
  const now = after.split(/(?<=\s)/);
  if (old.length > WORDS_MAX || now.length > WORDS_MAX) return [["-", before], ["+", after]];
  const table = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      table[i][j] = old[i] === now[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const found = [];
  const add = (sign, word) => {
    const latest = found[found.length - 1];
    if (latest && latest[0] === sign) latest[1] += word;
    else found.push([sign, word]);
  };
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) { add("=", old[i]); i += 1; j += 1; }
    else if (j >= now.length || (i < old.length && table[i + 1][j] >= table[i][j + 1])) { add("-", old[i]); i += 1; }
    else { add("+", now[j]); j += 1; }
  }
  return found.filter(([, words]) => words);
}

function changeShape(change) {
  const body = [];
  if (change.words) {
    const tags = { "=": "span", "-": "del", "+": "ins" };
    body.push(el("p", { class: "words", dir: "auto" }, change.words.map(([sign, words]) => el(tags[sign], { text: words }))));
  }
  for (const words of change.gone || []) body.push(el("p", { class: "item minus", dir: "auto" }, el("del", { text: words.slice(0, TEXT_SHOWN) })));
  for (const words of change.come || []) body.push(el("p", { class: "item plus", dir: "auto" }, el("ins", { text: words.slice(0, TEXT_SHOWN) })));
  if (change.numbers) {
    body.push(el("table", { class: "changes" }, change.numbers.map(([name, old, now]) =>
      el("tr", {}, el("th", { scope: "row", text: name }), el("td", { text: old }), el("td", { class: "arrow", text: "→" }), el("td", { text: now })))));
  }
  return el("section", { class: "change", "data-change": change.title }, el("h3", { text: change.title }), body);
}
