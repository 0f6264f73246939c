// The ladder of objectives is the head of the arms' table; a row stops where its arm left, and says why.

import { b, h, s } from "./dom.js";
import { band, tick, whisker } from "./marks.js";
import { reaches } from "./model.js";
import { count, number, span } from "./words.js";

const TURN = 62; // percent of a rung at which arms leave
const RAIL = 40;

export function ladder(model) {
  const { objectives, arms } = model;
  const width = { style: `min-width:${126 + 156 + 190 * objectives.length}px` };
  return h(
    "section",
    { class: "panel", "aria-labelledby": "ladder-title", "data-key": "ladder" },
    h("h2", { class: "unseen", id: "ladder-title" }, "Objectives in order, and the arms"),
    h(
      "div",
      {
        class: "scroll",
        tabindex: objectives.length > 5 ? 0 : null,
        role: objectives.length > 5 ? "region" : null,
        "aria-label": objectives.length > 5 ? "Arms and objectives, scrolls sideways" : null,
      },
      h(
        "table",
        { class: "lad", role: "table", ...(objectives.length > 5 ? width : {}) },
        h(
          "colgroup",
          null,
          h("col", { class: "a" }),
          objectives.map(() => h("col")),
          h("col", { class: "n" }),
          h("col", { class: "x" }),
        ),
        h(
          "thead",
          { role: "rowgroup" },
          h(
            "tr",
            { role: "row" },
            h(
              "th",
              { scope: "col", role: "columnheader" },
              h("span", { class: "rt from wide" }, `${arms.length} arms`),
              "Arm",
            ),
            objectives.map((objective) => rung(model, objective)),
            h(
              "th",
              { scope: "col", role: "columnheader", class: "num" },
              h("span", { class: "rt to wide" }, railEnd(model)),
              "Measured",
            ),
            h("th", { role: "columnheader" }, h("span", { class: "unseen" }, "Details")),
          ),
        ),
        h(
          "tbody",
          { role: "rowgroup" },
          arms.map((arm) => row(model, arm)),
        ),
        h(
          "tfoot",
          { role: "rowgroup", "aria-hidden": "true" },
          h(
            "tr",
            { role: "row" },
            h("td", { role: "cell" }),
            objectives.map((objective) =>
              h(
                "td",
                { role: "cell", class: objective.state === "settling" ? "now" : null },
                foot(objective),
              ),
            ),
            h("td", { role: "cell" }),
            h("td", { role: "cell" }),
          ),
        ),
      ),
    ),
    legend(model),
  );
}

const railEnd = ({ answer, results }) =>
  results === 0 ? "" : answer.certified ? b(answer.arm) : `${answer.arm}?`;

// --- the head

function rung(model, objective) {
  const look = {
    settled: "done",
    enough: "done",
    settling: "now",
    later: "later",
    "not needed": "later",
    unclaimed: "later",
  }[objective.state];
  return h(
    "th",
    { scope: "col", role: "columnheader", class: `st ${look}`, "data-key": objective.name },
    h("div", { class: "rail", "aria-hidden": "true" }, strands(model, objective), upright(objective, look)),
    h("span", { class: "nm" }, objective.name),
    objective.rule.map((line) => h("span", { class: "rule" }, line)),
    h("span", { class: "stt" }, isDone(objective) && tick(), stateWords(model, objective)),
  );
}

const isDone = ({ state }) => state === "settled" || state === "enough";

function stateWords(model, { state, entered, stayed, index }) {
  const change =
    entered === stayed
      ? `${entered} ${entered === 1 ? "arm" : "arms"}`
      : `${entered} → ${stayed} ${stayed === 1 ? "arm" : "arms"}`;
  if (state === "settled") return `Settled: ${entered === stayed ? `all ${change} stay` : change}`;
  if (state === "enough")
    return `Enough for the answer${entered === stayed ? "" : `: ${entered - stayed} behind it`}`;
  if (state === "settling" && model.state !== "measuring") return `Not settled: ${change}`;
  if (state === "unclaimed") return "Nothing is claimed";
  if (state === "settling") return `Being settled: ${entered === stayed ? change : `${change} so far`}`;
  if (state === "not needed") return "Not needed";
  return index === model.settlingNow?.index + 1
    ? "Next, among those that stay"
    : index === model.objectives.length - 1
      ? "Last"
      : "Later";
}

function circle(objective, look, x, y) {
  return [
    s("circle", { class: `step ${look}`, cx: x, cy: y, r: 10.5 }),
    s("text", { class: `stepn ${look}`, x, y: y + 4, "text-anchor": "middle" }, String(objective.index + 1)),
  ];
}

/** One strand per arm that came this far; it ends where the arm left. */
function strands(model, objective) {
  const came = model.arms.filter((arm) => reaches(arm, objective));
  const apart = Math.min(4, 20 / Math.max(1, model.arms.length - 1));
  const line = (y, from, to, look) =>
    s("line", { class: `strand ${look}`, x1: `${from}%`, x2: `${to}%`, y1: y, y2: y });
  const drawn = came.map((arm, i) => {
    const y = 10 + apart * i;
    const leaves = arm.exit?.at === objective.index;
    if (leaves) {
      return [
        line(y, 0, TURN, "out"),
        s("line", { class: "strand out", x1: `${TURN}%`, x2: `${TURN}%`, y1: y - 2.5, y2: y + 2.5 }),
      ];
    }
    if (isDone(objective)) return line(y, 0, 100, "in");
    if (objective.state === "settling") return [line(y, 0, TURN, "in"), line(y, TURN, 100, "later")];
    return line(y, 0, 100, model.finished ? "in dash" : "later");
  });
  const look = isDone(objective) ? "done" : objective.state === "settling" ? "now" : "later";
  return s("svg", { class: "w wide", height: RAIL }, drawn, circle(objective, look, 23, 20));
}

function upright(objective, look) {
  return s(
    "svg",
    { class: "only", width: 22, height: "100%" },
    s("line", {
      class: `strand ${look === "done" ? "in" : "later"} thick`,
      x1: 11,
      x2: 11,
      y1: 20,
      y2: "100%",
    }),
    circle(objective, look, 11, 11),
  );
}

// --- a row

function row(model, arm) {
  const look = arm.state === "answer" && model.results > 0 ? "ans" : arm.exit ? "out" : null;
  return h(
    "tr",
    { role: "row", class: look, "data-key": arm.name },
    h(
      "th",
      { scope: "row", role: "rowheader", class: "arm", title: arm.name.length > 40 ? arm.name : null },
      b(arm.name),
      h("span", { class: arm.state === "answer" && model.results > 0 ? "is" : null }, standing(model, arm)),
      arm.exit?.kind === "withdrawn" && h("p", { class: "why" }, arm.exit.why),
    ),
    model.objectives.map((objective) => cell(model, arm, objective)),
    h("td", { role: "cell", class: "num" }, count(arm.results), h("span", { class: "s" }, troubles(arm))),
    h(
      "td",
      { role: "cell", class: "act" },
      h(
        "button",
        {
          class: "btn sm",
          "data-do": "arm",
          "data-arm": arm.name,
          "aria-label": `${arm.name}: details and actions`,
          "aria-haspopup": "dialog",
        },
        "···",
      ),
    ),
  );
}

function standing(model, arm) {
  if (arm.state === "answer" && model.results > 0)
    return model.answer.certified
      ? "the answer"
      : model.state === "measuring"
        ? "answer so far"
        : "best guess";
  if (!arm.exit)
    return !model.finished || !model.answer.certified
      ? "candidate"
      : arm.ties
        ? "ties with the answer"
        : "not better";
  if (arm.exit.kind === "withdrawn") return "withdrawn";
  if (arm.exit.kind === "behind") return "behind the answer";
  return arm.exit.after == null ? "out" : `out after ${count(arm.exit.after)}`;
}

function troubles(arm) {
  const lost = arm.failed + arm.expired;
  return [
    arm.open > 0 && `${count(arm.open)} open`,
    arm.failed > 0 && `${count(arm.failed)} failed`,
    lost > arm.failed && `${count(arm.expired)} missing`,
    arm.late > 0 && `${count(arm.late)} late`,
  ]
    .filter(Boolean)
    .join(", ");
}

function cell(model, arm, objective) {
  const value = arm.objectives[objective.name];
  const past = !reaches(arm, objective);
  const leaves = arm.exit?.at === objective.index;
  const common = { role: "cell", "data-l": objective.name };
  if (past) {
    return h(
      "td",
      { ...common, class: "past" },
      h(
        "div",
        { class: "cell" },
        h("span", { class: "m" }, objective.text(value.mean)),
        h("span", { class: "unseen" }, "no longer counts"),
      ),
    );
  }
  return h(
    "td",
    { ...common, class: objective.state === "settling" ? "now" : null },
    h(
      "div",
      { class: "cell" },
      h("span", { class: "m" }, objective.text(value.mean)),
      h(
        "span",
        { class: "r" },
        value.mean == null
          ? h("span", { class: "unseen" }, "not measured")
          : span(value.low, value.high, objective.digits),
      ),
      plot(model, arm, objective, value, leaves),
    ),
    leaves && h("p", { class: "why" }, b(arm.exit.kind === "behind" ? "Behind: " : "Out: "), arm.exit.why),
  );
}

function plot(model, arm, objective, value, leaves) {
  const { axis, state } = objective;
  if (!axis) return null;
  const provisional = !isDone(objective) && state !== "settling";
  const look = leaves ? "out" : provisional ? "later" : "in";
  const tall = leaves ? [-9, 43] : [-9, 240];
  const limit =
    objective.isTarget &&
    s("line", {
      class: "limit",
      x1: axis.x(objective.target),
      x2: axis.x(objective.target),
      y1: tall[0],
      y2: tall[0] + tall[1],
    });
  return s(
    "svg",
    { class: "w", height: 34, "aria-hidden": "true" },
    objective.band && band(axis, objective.band, ...tall, provisional ? "prov" : "band"),
    limit,
    s("line", { class: "grid", x1: 0, x2: "100%", y1: 17, y2: 17 }),
    whisker(axis, value, 17, look, arm.state === "answer" && !provisional),
  );
}

// --- the foot

function foot({ axis }) {
  if (!axis) return null;
  const ends = [axis.ticks[0], ...axis.ticks.slice(1)];
  return h(
    "div",
    { class: "cell" },
    s(
      "svg",
      { class: "w", height: 22 },
      s("line", { class: "ax", x1: 0, x2: "100%", y1: 0.5, y2: 0.5 }),
      ends.map((value) => [
        s("line", { class: "ax", x1: axis.x(value), x2: axis.x(value), y1: 0, y2: 4 }),
        s("text", { x: axis.x(value), y: 16, "text-anchor": "middle" }, number(value, axis.digits)),
      ]),
    ),
  );
}

function legend(model) {
  const sample = (...shapes) => s("svg", { width: 34, height: 12, "aria-hidden": "true" }, shapes);
  const drawn = (look) =>
    sample(
      s("line", { class: `mark ${look}`, x1: 1, x2: 33, y1: 6, y2: 6 }),
      [1, 33].map((x) => s("line", { class: `mark ${look}`, x1: x, x2: x, y1: 2, y2: 10 })),
      s("circle", { class: `dot ${look}`, cx: 17, cy: 6, r: 4 }),
    );
  const box = (look) =>
    s(
      "svg",
      { width: 22, height: 12, "aria-hidden": "true" },
      s("rect", { class: look, x: 0.5, y: 0.5, width: 21, height: 11 }),
    );
  const later = model.objectives.some((each) => !isDone(each) && each.state !== "settling");
  return h(
    "div",
    { class: "foot" },
    h("span", null, drawn("in"), "mean and interval, valid at all times"),
    h("span", null, box("band"), "what does not matter, from the best; or within the limit"),
    h("span", null, drawn("out"), model.finished ? "out, or not needed" : "out, or not deciding yet"),
    later && h("span", null, box("prov"), "the same, if all stay that are in now"),
    model.arms.some((arm) => arm.exit) && h("span", null, box("pastbox"), "no longer counts"),
    h(
      "p",
      null,
      "Arms are compared by their differences on the same items: an arm can be out although its interval here still touches the band.",
    ),
  );
}
