// Every study at a glance.

import { ago, b, count, h } from "./dom.js";

const FILTERS = {
  all: ["All", () => true],
  measuring: ["Measuring", (study) => study.state === "measuring"],
  certified: ["Certified", (study) => study.certified],
  paused: ["Paused", (study) => study.state === "paused"],
  stopped: [
    "Stopped without a certificate",
    (study) => !study.certified && !["measuring", "paused"].includes(study.state),
  ],
};

export function listView({ studies, next, role }, filter) {
  if (!studies.length) return nothing(role);
  const group = (study) => (study.state === "measuring" ? 0 : study.certified ? 1 : 2);
  const shown = studies.filter(FILTERS[filter][1]).sort((a, z) => group(a) - group(z));
  return [
    h(
      "div",
      { class: "bar head" },
      h("h1", { class: "say", tabindex: -1 }, ...sentence(studies)),
      role === "admin" && h("div", { class: "acts" }, createButton()),
    ),
    h(
      "div",
      { class: "filter", role: "group", "aria-label": "Show" },
      Object.entries(FILTERS).map(([key, [name, fits]]) =>
        h(
          "button",
          {
            "data-do": "filter",
            "data-filter": key,
            "data-key": key,
            "aria-pressed": String(key === filter),
          },
          `${name} ${studies.filter(fits).length}`,
        ),
      ),
    ),
    h(
      "section",
      { class: "panel", "aria-label": "Studies" },
      shown.length ? table(shown) : h("p", { class: "pad mut" }, "None at the moment."),
    ),
    next && h("p", null, h("button", { class: "btn", "data-do": "more-studies" }, "Show more")),
    h(
      "p",
      { class: "end" },
      "Bars: one segment for each objective in order of priority. Full: settled. Half: being settled. Empty: later.",
    ),
  ];
}

const createButton = () =>
  h("button", { class: "btn pri", "data-do": "create", "aria-haspopup": "dialog" }, "New study");

function sentence(studies) {
  const number = (fits, one, many) => {
    const n = studies.filter(fits).length;
    return n && `${count(n)} ${n === 1 ? one : many}`;
  };
  const rest = [
    number((study) => study.overdue > 0, "needs attention", "need attention"),
    number(FILTERS.certified[1], "is certified", "are certified"),
  ].filter(Boolean);
  return [
    b(number(FILTERS.measuring[1], "study is measuring.", "studies are measuring.") || "No study is measuring."),
    " ",
    h("span", { class: "q" }, rest.length > 0 && `${rest.join("; ")}.`),
  ];
}

function pill({ state, certified, called }) {
  const look = certified ? "ok" : ({ measuring: "on", paused: "paused" }[state] ?? "ended");
  return h("span", { class: `pill ${look}` }, called);
}

function table(studies) {
  const head = (text, look) => h("th", { scope: "col", role: "columnheader", class: look }, text);
  return h(
    "table",
    { class: "ls", role: "table" },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        head("Study, objectives in order"),
        head("State"),
        head("Answer"),
        head("Settled"),
        head("Can win", "num"),
        head("Results", "num"),
        head("Attention"),
        head("Last event", "num"),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      studies.map((study) =>
        h(
          "tr",
          { role: "row", "data-key": study.name },
          h(
            "th",
            { scope: "row", role: "rowheader" },
            h("a", { href: `#/study/${encodeURIComponent(study.name)}` }, study.name),
            h("span", { class: "s" }, study.objectives.join(" › ")),
          ),
          h("td", { role: "cell" }, pill(study)),
          h(
            "td",
            { role: "cell" },
            study.results === 0
              ? h("span", { class: "mut" }, study.state === "unreadable" ? "open it to see why" : "no results yet")
              : [b(study.answer), h("span", { class: "s" }, certainty(study))],
          ),
          h("td", { role: "cell" }, study.objectives.length > 0 && segments(study)),
          h(
            "td",
            { role: "cell", class: "num" },
            study.certified ? `1 of ${study.arms}` : `${study.candidates.length} of ${study.arms}`,
          ),
          h(
            "td",
            { role: "cell", class: "num" },
            count(study.results),
            study.budget != null && h("span", { class: "s" }, `budget ${count(study.budget)}`),
          ),
          h(
            "td",
            { role: "cell" },
            study.overdue > 0
              ? h("span", { class: "warnt" }, `${count(study.overdue)} overdue`)
              : h("span", { class: "mut wide" }, "–"),
          ),
          h("td", { role: "cell", class: "num mut" }, ago(study.changed)),
        ),
      ),
    ),
  );
}

const certainty = (study) =>
  study.certified
    ? "certified"
    : study.state === "measuring"
      ? "not yet certain"
      : study.state === "paused"
        ? "best guess"
        : "best guess, no certificate";

function segments({ objectives, settling, certified, results }) {
  const at = settling == null ? objectives.length : objectives.indexOf(settling);
  const words =
    settling == null
      ? certified
        ? "all that was needed"
        : "ended before"
      : `${at + 1} of ${objectives.length}: ${settling}`;
  const look = (i) =>
    !results || (settling == null && !certified) ? "k" : i < at ? "d" : i === at ? "n" : "k";
  return [
    h(
      "span",
      { class: "seg", "aria-hidden": "true" },
      objectives.map((_, i) => h("i", { class: look(i) })),
    ),
    h("span", { class: "s" }, words),
  ];
}

function nothing(role) {
  return h(
    "section",
    { class: "blank" },
    h("h1", { class: "say", tabindex: -1 }, "No studies yet."),
    h(
      "p",
      { class: "sub" },
      role === "admin"
        ? "Create one here, from Python, from the command line or through the API; it appears here at once."
        : "When somebody creates one, it appears here at once.",
    ),
    role === "admin" && h("p", null, createButton()),
    h("pre", null, "lexbandits study create question.toml"),
  );
}
