// How things are said. No text of the log reaches the page but by `textContent`.

const DROPPED = {
  idle: "silence ended the session before an answer came",
  reset: "a reset ended the session before an answer came",
  disabled: "the thread was switched off before an answer came",
  erased: "the thread was erased before an answer came",
  generation: "a turn that its summary was to see was withdrawn before an answer came",
};

/** Why something was refused, with the rule behind it. */
function reasonOf(kind, reason) {
  const [rule, words] = page.log.reasons[kind][reason] || ["", ""];
  return words && `${words} (${rule})`;
}
const whyRefused = (reason) => capital(reasonOf("answers", reason));

/** A text that can do nothing to its surroundings: control characters and direction marks become visible. */
const visible = (text) =>
  text
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (mark) => String.fromCharCode(0x2400 + mark.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421")
    .replace(/[\u0080-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]|\p{Cs}/gu, "\ufffd");

const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
const span = (first, last) => (first === last ? `${first}` : `${first}–${last}`);
const turnsNamed = (first, last) => (first === last ? `turn ${first}` : `turns ${first}–${last}`);
const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const clock = (at) => new Date(at / 1000).toISOString().slice(11, 19);
const day = (at) => new Date(at / 1000).toISOString().slice(0, 10);
const seconds = (ms) => (ms >= 10000 || ms % 1000 === 0 ? `${Math.round(ms / 1000)} s` : `${(ms / 1000).toFixed(1)} s`);
const lasted = (from, to) => {
  const ms = Math.max(0, (to - from) / 1000);
  if (ms < 90000) return seconds(ms);
  return ms < 5400000 ? `${Math.round(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
};
const version = (each) => `v${each.version}`;

/** Numbers as ranges: 1–3, 5. */
function ranges(numbers) {
  const found = [];
  for (const each of [...numbers].sort((one, other) => one - other)) {
    const latest = found[found.length - 1];
    if (latest && each === latest[1] + 1) latest[1] = each;
    else found.push([each, each]);
  }
  return found.map(([first, last]) => span(first, last)).join(", ");
}

function characters(text) {
  let found = 0;
  for (const _ of text) found += 1;
  return found;
}

const size = (chars) => `${count(chars, "character")} · ≈ ${count(Math.ceil(chars / 4), "token")}`;

const KIND = {
  TurnHeard: "turn", ResetAsked: "fence", SettingsChanged: "fence", WithdrawAsked: "fence", EraseThreadAsked: "fence",
};

/** Which kind of step it is, without a look at its texts. */
function kindOf(thread, step) {
  if (!step.own) return "fact";
  if (step.type === "AnswerArrived") return thread.answer.get(step.position).reason ? "refused" : "accepted";
  if (step.type === "ClockRead") return step.events.some(([type]) => type === "SessionEnded") ? "fence" : "clock";
  return KIND[step.type] || "clock";
}

/** A few words about a step: title, what it says, and which kind it is. */
function headline(thread, step) {
  if (step.head === undefined) {
    const said = (SAID[step.type] || saidOtherwise)(thread, step, fieldsOf(step, 0));
    step.head = { ...said, kind: kindOf(thread, step), more: said.more || "" };
  }
  return step.head;
}

const asksIn = (step) => decisionsOf(step)
  .filter((each) => each.type === "SummaryRequested")
  .map(({ fields }) => `asks v${fields.version} for ${turnsNamed(fields.covers.first, fields.covers.last)}`);
const endsIn = (step) => decisionsOf(step)
  .filter((each) => each.type === "SessionEnded")
  .map(({ fields }) => `session ended: ${fields.reason}`);
const joined = (...pieces) => pieces.flat().filter(Boolean).join(" · ");

const SAID = {
  TurnHeard(thread, step, heard) {
    const turn = thread.turnAt.get(step.position);
    const displaced = decisionsOf(step).find((each) => each.type === "TurnsDisplaced");
    return {
      title: `Turn ${turn ? turn.turn : "?"}`,
      words: step.erased ? "erased" : heard.user || heard.assistant || "(no words)",
      more: joined(endsIn(step), displaced && `displaces up to ${displaced.fields.to}`, asksIn(step)),
    };
  },
  AnswerArrived(thread, step, heard) {
    const answer = thread.answer.get(step.position);
    const verdict = answer.reason ? `refused: ${answer.reason}` : "accepted";
    return {
      title: `v${answer.version} ${verdict}`,
      words: heard.failure ? joined(`failed: ${heard.failure}`, heard.detail)
        : heard.text || (heard.chars ? "(its text was not kept)" : "(no words in it)"),
      more: joined(asksIn(step)),
    };
  },
  ClockRead: (thread, step, heard) => ({
    title: heard.why === "idle" ? "Silence" : "The wait is over",
    words: joined(endsIn(step), asksIn(step)),
  }),
  ResetAsked: (thread, step) => ({ title: "Reset", words: joined(endsIn(step)) }),
  SettingsChanged(thread, step) {
    const mark = thread.line.settings.find((each) => each.position === step.position);
    const changes = told(thread.part, mark ? mark.changes : []);
    return {
      title: "Settings",
      words: changes.map(([name, old, now]) => `${name} ${old} → ${now}`).join(", ") || "as they were",
      more: joined(endsIn(step), asksIn(step)),
    };
  },
  WithdrawAsked(thread, step, heard) {
    const dropped = step.events.some(([type]) => type === "SummaryInvalidated");
    return {
      title: `${capital(heard.turns.length === 1 ? "turn" : "turns")} ${ranges(heard.turns)} withdrawn`,
      words: dropped ? "the summary had seen it, and goes too" : "no summary had seen it",
      more: joined(asksIn(step)),
    };
  },
  EraseThreadAsked: (thread, step) => ({
    title: "Erased", words: joined(decisionsOf(step).map((each) => `up to turn ${each.fields.last_turn}`)),
  }),
  FactsOpened: () => ({ title: "Facts", words: "the first event about this user" }),
  CandidatesExtracted(thread, step, heard) {
    const turn = thread.turnAt.get(step.source);
    return { title: turn ? `Facts of turn ${turn.turn}` : "Facts of another thread", words: factWords(step, heard) };
  },
  FactStated: (thread, step, heard) => ({ title: "Stated", words: factWords(step, heard) }),
  ForgetAsked: (thread, step, heard) => ({
    title: "Forget", words: heard.everything ? "everything" : `facts ${ranges(heard.facts || [])}`,
  }),
  FactsUsed: (thread, step, heard) => ({ title: "Facts shown", words: `facts ${ranges(heard.facts)}` }),
  SourceSwitched: (thread, step, heard) => ({
    title: "Source", words: `${heard.source} is ${heard.on ? "on" : "off"}`,
  }),
  SourcesErased: (thread, step, heard) => ({
    title: "Sources erased", words: `facts ${ranges(heard.facts || [])}`,
  }),
  FactReworded: (thread, step, heard) => ({ title: "Fact reworded", words: `fact ${heard.fact}` }),
  NoteTaken: (thread, step, heard) => ({ title: "Note", words: heard.text || "" }),
};
const saidOtherwise = (thread, step) => ({ title: step.type, words: "" });

const factNamed = ({ said }) => (said ? joined([`${said.subject || ""} ${said.predicate || ""} ${said.value || ""}`]) : "");
const DID = {
  FactAdded: "added", FactConfirmed: "confirmed", FactSuperseded: "outweighed", FactRejected: "rejected",
  FactReplaced: "replaced", FactRestored: "holds again", FactEvicted: "put out", FactLapsed: "lapsed",
  FactForgotten: "forgotten", TombstoneLifted: "tombstone lifted",
};

function factWords(step, heard) {
  const candidates = heard.candidates || (heard.candidate ? [heard.candidate] : []);
  const words = decisionsOf(step).map(({ type, fields }) => {
    const said = /Added|Confirmed|Superseded|Rejected|Lifted/.test(type) && candidates[fields.item || 0];
    const what = said ? factNamed(said) : `fact ${fields.fact}`;
    return `${DID[type] || type}${fields.reason ? ` (${fields.reason})` : ""}: ${what}`;
  });
  return words.join(" · ") || (heard.outcome && heard.outcome !== "none" ? heard.outcome : "nothing found");
}
