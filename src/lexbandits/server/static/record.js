// What happened, and who measures.

import { ago, b, clockTime, count, drawn, h, lasting, now } from "./dom.js";

function panel(key, title, hint, ...body) {
  return h(
    "section",
    { class: "panel", "data-key": key, "aria-labelledby": `${key}-title` },
    h("header", null, h("h2", { id: `${key}-title` }, title), hint && h("p", { class: "hint" }, hint)),
    h("div", { class: "pad" }, body),
  );
}

// --- what happened

const quoted = (text) => (text ? [": “", text, "”"] : "");

/** An event as a sentence. */
function eventWords({ kind, arm, payload, by }) {
  const who = by ? ` (${by})` : "";
  switch (kind) {
    case "created":
      return ["the study was created"];
    case "failed":
      return [b(arm), " failed", quoted(payload.reason), who];
    case "expired":
      return ["a trial of ", b(arm), " ran out: declared missing", who];
    case "released":
      return ["a trial of ", b(arm), " was given back", who];
    case "told_late":
      return ["a result of ", b(arm), " came late: kept, not counted", who];
    case "corrected":
      return ["a result of ", b(arm), " was corrected", quoted(payload.reason)];
    case "arm_added":
      return [b(arm ?? payload.arm?.name ?? payload.arm ?? "an arm"), " was added"];
    case "arm_withdrawn":
      return [
        b(arm),
        " was withdrawn",
        quoted(payload.reason),
        payload.returned?.length > 0 && ["; back in: ", payload.returned.join(", ")],
      ];
    case "arm_restored":
      return [b(arm), " is back in"];
    case "amended":
      return [
        b(payload.objective),
        " was changed",
        payload.tolerance != null && `: tolerance ${payload.tolerance}`,
        payload.resolution != null && `, resolution ${payload.resolution}`,
      ];
    case "reordered":
      return ["new order: ", payload.objectives?.join(" › ")];
    case "paused":
      return ["paused", quoted(payload.reason)];
    case "resumed":
      return ["measuring again"];
    case "budget":
      return payload.budget == null
        ? ["no budget any more"]
        : [`budget set to ${count(payload.budget)} trials`];
    case "finished":
      return payload.certified
        ? [b(payload.arm), " is certified as the answer"]
        : ["finished: ", b(payload.arm), ", without a certificate"];
    case "ended":
      return ["ended by hand", quoted((payload.reason ?? "").replace(/^ended by hand: /, ""))];
    case "reopened":
      return ["reopened", quoted(payload.why ?? payload.reason)];
    case "imported":
      return ["results were imported"];
    case "note":
      return ["note", quoted(payload.text)];
    default:
      return [kind.replaceAll("_", " ")];
  }
}

export function latest({ events }, turns) {
  const lines = [
    ...events.map((event) => ({ key: event.seq, at: event.at, words: eventWords(event) })),
    ...turns.map((turn) => ({ ...turn, words: drawn(turn.words) })),
  ].sort((a, z) => Date.parse(z.at) - Date.parse(a.at));
  return panel(
    "latest",
    "Latest",
    null,
    h(
      "ul",
      { class: "tl" },
      lines
        .slice(0, 10)
        .map(({ key, at, words }) =>
          h("li", { "data-key": key }, h("time", { datetime: at }, clockTime(at)), h("span", null, words)),
        ),
    ),
  );
}

// --- who measures

export const itemWords = (item) =>
  `item ${typeof item === "string" ? item : JSON.stringify(item)}`;

function leaseLeft(until) {
  const left = Date.parse(until) - now();
  return left > 0
    ? h("span", { class: "mut" }, `${lasting(left)} left`)
    : h("span", { class: "warnt" }, `overdue by ${lasting(-left)}`);
}

/** The service names first who was heard of last: rows in that order would not stay where they are. */
const byName = (workers) =>
  [...workers].sort((a, z) => a.name.localeCompare(z.name, "en", { numeric: true }));

export function workers(study, trials, role) {
  const over = study.state === "finished";
  const title = over ? "Workers" : "Workers and open trials";
  if (!study.workers.length && !trials.length) {
    const none = study.results ? "Who measured gave no name." : over ? "Nobody measured." : "Nobody has asked for a trial yet.";
    return panel("workers", title, null, h("p", { class: "mut" }, none));
  }
  const known = new Set(study.workers.map(({ name }) => name));
  const others = trials.filter((trial) => !known.has(trial.worker));
  const rows = [
    ...byName(study.workers).map((worker) =>
      workerRow(
        worker,
        trials.filter((trial) => trial.worker === worker.name),
        role,
      ),
    ),
    others.length > 0 &&
      workerRow({ name: null, open: others.length, heard: null, resolved: null }, others, role),
  ];
  return panel(
    "workers",
    title,
    over
      ? null
      : "A trial whose lease ran out is declared missing at the next ask and not repeated: whoever could repeat slow ones until they are quick would choose which values count.",
    h(
      "table",
      { class: "mini wk", role: "table" },
      h(
        "thead",
        { role: "rowgroup" },
        h(
          "tr",
          { role: "row" },
          ["Worker", "Last asked or told", "Measuring"].map((head) =>
            h("th", { scope: "col", role: "columnheader" }, head),
          ),
          h("th", { scope: "col", role: "columnheader", class: "num" }, "Told"),
        ),
      ),
      h("tbody", { role: "rowgroup" }, rows),
    ),
    study.more_workers > 0 &&
      h("p", { class: "mut" }, `and ${count(study.more_workers)} more, not heard of for longer`),
  );
}

function workerRow(worker, held, role) {
  const hidden = worker.open - held.length;
  return h(
    "tr",
    { role: "row", "data-key": `worker ${worker.name}` },
    h(
      "th",
      { scope: "row", role: "rowheader" },
      worker.name ?? h("span", { class: "mut" }, held.some(({ worker }) => worker) ? "others" : "without a name"),
    ),
    h("td", { role: "cell", class: "mut" }, worker.heard ? ago(worker.heard) : ""),
    h(
      "td",
      { role: "cell" },
      held.length === 0 && hidden <= 0 ? h("span", { class: "mut" }, "–") : null,
      held.length > 0 &&
        h(
          "ul",
          { class: "held" },
          held.map((trial) => openTrial(trial, role)),
        ),
      hidden > 0 && h("span", { class: "mut" }, `${held.length ? "and " : ""}${count(hidden)} more`),
    ),
    h("td", { role: "cell", class: "num" }, worker.resolved == null ? "" : count(worker.resolved)),
  );
}

function openTrial(trial, role) {
  const overdue = Date.parse(trial.until) <= now();
  const named = `${trial.arm}, ${itemWords(trial.item)}`;
  const button = (action, text) =>
    h(
      "button",
      { class: "btn sm", "data-do": action, "data-trial": trial.id, "aria-label": `${text}: ${named}` },
      text,
    );
  return h(
    "li",
    { "data-key": trial.id },
    h("span", { class: "what" }, named),
    leaseLeft(trial.until),
    role !== "read" &&
      !overdue && // who looks next notes that it has run out
      h("span", { class: "does" }, button("enter", "Enter result"), button("release", "Give back")),
  );
}
