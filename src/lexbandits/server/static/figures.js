// What decides now, and who left when.

import { h, s } from "./dom.js";
import { band, whisker } from "./marks.js";
import { axisOf } from "./model.js";
import { about, count, given, number, withUnit } from "./words.js";

const ROW = 32;

export function panel(key, title, hint, ...body) {
  return h(
    "section",
    { class: "panel", "data-key": key, "aria-labelledby": `${key}-title` },
    h("header", null, h("h2", { id: `${key}-title` }, title), hint && h("p", { class: "hint" }, hint)),
    h("div", { class: "pad" }, body),
  );
}

/** A table whose middle column is a drawing on a common axis. */
function figure(name, heads, rows, axis, draw, under, words) {
  return h(
    "table",
    { class: `fig ${name}`, role: "table" },
    h("colgroup", null, h("col", { class: "who" }), h("col"), h("col", { class: "said" })),
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        h("th", { scope: "col", role: "columnheader" }, h("span", { class: "unseen" }, "Arm")),
        h("th", { scope: "col", role: "columnheader" }, heads),
        h("th", { scope: "col", role: "columnheader" }, h("span", { class: "unseen" }, words)),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      rows.map((row) =>
        h(
          "tr",
          { role: "row", class: row.look, "data-key": row.name },
          h("th", { scope: "row", role: "rowheader", title: row.name }, row.name),
          h(
            "td",
            { role: "cell" },
            s("svg", { class: "w", height: ROW, role: "img", "aria-label": row.label }, draw(row)),
          ),
          h("td", { role: "cell", class: "said" }, row.said),
        ),
      ),
    ),
    h(
      "tfoot",
      { role: "rowgroup", "aria-hidden": "true" },
      h(
        "tr",
        { role: "row" },
        h("td", { role: "cell" }),
        h(
          "td",
          { role: "cell" },
          s(
            "svg",
            { class: "w", height: 22 },
            s("line", { class: "ax", x1: 0, x2: "100%", y1: 0.5, y2: 0.5 }),
            under,
          ),
        ),
        h("td", { role: "cell" }),
      ),
    ),
  );
}

const ticks = (axis, text, kept = null) =>
  axis.ticks.map((value, i) => [
    s("line", { class: "ax", x1: axis.x(value), x2: axis.x(value), y1: 0, y2: 4 }),
    s("text", { class: i % 2 && value !== kept ? "nr" : null, x: axis.x(value), y: 16, "text-anchor": "middle" }, text(value)),
  ]);

const upright = (axis, value, look) =>
  s("line", { class: look, x1: axis.x(value), x2: axis.x(value), y1: 0, y2: ROW });

// --- what decides now

const VERDICTS = {
  open: "open",
  close: "ties",
  "not worse": "not better",
  beats: "out",
  "meets the target": "meets it",
  "misses the target": "out",
};
const verdictOf = (verdict) => (verdict === "beaten" ? "out" : (VERDICTS[verdict] ?? verdict));

const headline = ({ state }) => (state === "measuring" ? "What decides now" : "What is still open");

export function deciding(model) {
  const objective = model.settlingNow;
  if (!objective || model.results === 0) return null;
  return objective.isTarget ? decidingByTarget(model, objective) : decidingByDifferences(model, objective);
}

function decidingByTarget(model, objective) {
  const { target, resolution, smaller } = objective;
  const far = smaller ? target + resolution : target - resolution;
  const known = new Map(
    model.shown.filter((row) => row.objective === objective.name).map((row) => [row.rival, row.verdict]),
  );
  const rows = model.arms
    .filter((arm) => arm.exit?.kind !== "withdrawn")
    .map((arm) => {
      const value = arm.objectives[objective.name];
      const seen = known.get(arm.name) ?? leaderVerdict(value, objective, far);
      const said = arm.exit ? "out" : verdictOf(seen);
      return {
        ...value,
        name: arm.name,
        look: arm.exit ? "gone" : null,
        said: [h("span", { class: "v" }, objective.text(value.mean)), " ", said],
        label: `${arm.name}: ${objective.full(value.mean)}, ${said}`,
      };
    });
  const ends = rows.flatMap(({ mean, low, high }) => [mean, low, high]).filter((end) => end != null);
  const axis = axisOf(Math.min(...ends, target, far), Math.max(...ends, target, far), 4);
  const [better, worse] = smaller ? [0, 1] : [1, 0];
  const heads = h(
    "div",
    { class: "ends" },
    ["← ", " →"].map((arrow, side) =>
      h(
        "span",
        null,
        side === 0 && arrow,
        side === better ? "within the limit" : side === worse ? "beyond it" : "",
        side === 1 && arrow,
      ),
    ),
  );
  return panel(
    "deciding",
    `${headline(model)}: ${objective.name}, against the limit`,
    `An arm leaves once its whole interval is ${smaller ? "above" : "below"} ${withUnit(given(target), objective.unit)}. It stays once all of it is ${smaller ? "below" : "above"} the dashed line (limit and resolution, ${withUnit(given(far), objective.unit)}).`,
    figure(
      "d3",
      heads,
      rows,
      axis,
      (row) => [
        band(axis, objective.band, 0, ROW),
        upright(axis, target, "limit"),
        upright(axis, far, "limit dash"),
        s("line", { class: "grid", x1: 0, x2: "100%", y1: ROW / 2, y2: ROW / 2 }),
        whisker(axis, row, ROW / 2, row.look ? "out" : "in"),
      ],
      ticks(axis, (value) => number(value, axis.digits)),
      "Mean, and where it stands",
    ),
  );
}

function leaderVerdict({ low, high }, { target, smaller }, far) {
  if (low == null || high == null) return "open";
  if (smaller ? low > target : high < target) return "misses the target";
  return (smaller ? high <= far && low <= target : low >= far && high >= target)
    ? "meets the target"
    : "open";
}

function decidingByDifferences(model, objective) {
  const { tolerance, resolution, smaller } = objective;
  const reach = tolerance + resolution;
  const standing = new Map(model.arms.map((arm) => [arm.name, arm]));
  const flipped = (value) => (value == null ? null : -value);
  const seen = model.shown.filter((row) => row.objective === objective.name);
  const rows = seen
    .map((row) => {
      const gone = Boolean(standing.get(row.rival)?.exit);
      const said = gone ? "out" : verdictOf(row.verdict);
      const difference = flipped(row.difference);
      const text = `${difference > 0 ? "+" : ""}${objective.text(difference)}`;
      return {
        name: row.rival,
        look: gone ? "gone" : null,
        mean: difference,
        low: flipped(row.high),
        high: flipped(row.low),
        said: [h("span", { class: "v" }, text), " ", said],
        label: `${row.rival} less ${model.leader}: ${text}, ${said}`,
      };
    })
    .sort((a, z) => Boolean(a.look) - Boolean(z.look) || (smaller ? a.mean - z.mean : z.mean - a.mean));
  const ends = rows
    .flatMap(({ look, mean, low, high }) => (look ? [mean] : [mean, low, high]))
    .filter((end) => end != null);
  const axis = axisOf(Math.min(...ends, -reach), Math.max(...ends, reach), 4);
  const leader = {
    name: model.leader,
    look: "lead",
    said: "reference",
    label: `${model.leader}: the others are compared with it`,
  };
  const worse = ["worse", h("span", { class: "than" }, ` than ${model.leader}`)];
  const unit = (value) => withUnit(given(value), objective.unit);
  const heads = h(
    "div",
    { class: "ends" },
    h("span", null, "← ", smaller ? "better" : worse),
    h("span", null, smaller ? worse : "better", " →"),
  );
  return panel(
    "deciding",
    `${headline(model)}: ${objective.name}, against ${model.leader}`,
    `Differences on the same items. An arm is out once its whole interval is worse by more than ${unit(tolerance)} (shaded: does not matter); it ties once all of it lies between the dashed lines (with the resolution, ${unit(reach)}).`,
    figure(
      "d3",
      heads,
      [leader, ...rows],
      axis,
      (row) => [
        band(axis, [-tolerance, tolerance], 0, ROW),
        upright(axis, -reach, "limit dash"),
        upright(axis, reach, "limit dash"),
        upright(axis, 0, "zero"),
        s("line", { class: "grid", x1: 0, x2: "100%", y1: ROW / 2, y2: ROW / 2 }),
        row.look === "lead"
          ? s("rect", {
              class: "lead",
              x: axis.x(0),
              y: ROW / 2 - 4.5,
              width: 9,
              height: 9,
              transform: "translate(-4.5 0)",
            })
          : whisker(axis, row, ROW / 2, row.look ? "out" : "in"),
      ],
      ticks(
        axis,
        (value) => `${value > 0 ? "+" : ""}${number(Math.abs(value) < 1e-12 ? 0 : value, axis.digits)}`,
      ),
      "Difference, and where it stands",
    ),
  );
}

// --- who left when

export function race(model, forecast, phases) {
  if (model.results === 0) return null;
  const end = forecast && !model.finished ? forecast.results : null;
  const last = model.results + (end ? Math.min(end.high, 20 * model.results) : 0);
  const axis = axisOf(0, last, 4, 0, 0.03);
  axis.ticks = [
    ...axis.ticks.filter((value) => value <= last && Math.abs(value - model.results) > 0.12 * last),
    model.results,
  ].sort((a, z) => a - z);
  const rows = model.arms.map((arm) => {
    const stop = arm.exit
      ? (arm.exit.after ?? (arm.exit.kind === "withdrawn" ? null : model.results))
      : model.results;
    const on = arm.exit && arm.exit.at >= 0 ? model.objectives[arm.exit.at].name : null;
    const said =
      arm.exit?.kind === "withdrawn"
        ? "withdrawn"
        : on
          ? [h("span", { class: "v" }, count(stop)), ` on ${on}`]
          : arm.state === "answer"
            ? model.answer.certified
              ? "the answer"
              : model.state === "measuring"
                ? "answer so far"
                : "best guess"
            : "";
    return {
      name: arm.name,
      look: arm.exit ? "gone" : arm.state === "answer" ? "first" : null,
      stop,
      said,
      gone: Boolean(arm.exit),
      label: arm.exit
        ? `${arm.name}: ${arm.exit.kind} ${stop == null ? "" : `after ${count(stop)} results`}`
        : `${arm.name}: still in after ${count(model.results)} results`,
    };
  });
  const spans = phases.map((phase, i) => ({
    ...phase,
    index: model.objectives.findIndex(({ name }) => name === phase.objective),
    until: i === phases.length - 1 ? model.results : phase.until,
  }));
  const draw = ({ stop, gone, look }) => {
    const y = ROW / 2;
    return [
      spans.map(({ since, until }, i) =>
        band(axis, [since, until], 0, ROW, i % 2 ? "phase odd" : "phase"),
      ),
      end && band(axis, [model.results + end.low, model.results + end.high], 0, ROW, "band pale"),
      end && upright(axis, model.results + end.median, "limit"),
      upright(axis, model.results, "zero"),
      stop != null &&
        s("line", { class: `mark ${gone ? "out" : "in"}`, x1: axis.x(0), x2: axis.x(stop), y1: y, y2: y }),
      end &&
        !gone &&
        s("line", {
          class: "mark later dash",
          x1: axis.x(stop),
          x2: axis.x(model.results + end.median),
          y1: y,
          y2: y,
        }),
      gone
        ? stop != null &&
          s("line", { class: "mark out", x1: axis.x(stop), x2: axis.x(stop), y1: y - 5, y2: y + 5 })
        : s("circle", { class: "dot in", cx: axis.x(stop), cy: y, r: 4 }),
      look === "first" && s("circle", { class: "halo", cx: axis.x(stop), cy: y, r: 7 }),
    ];
  };
  const hint = end
    ? `Results counted, from the first to now, and on to the end that is likely. Shaded: between ${about(end.low)} and ${about(end.high)} more.`
    : model.finished
      ? "Results counted, of all arms together, until the end."
      : "Results counted, of all arms together, from the first to now.";
  return panel(
    "race",
    "Who left when",
    hint,
    figure(
      "d3",
      phaseNames(spans, axis, end && model.results + end.median),
      rows,
      axis,
      draw,
      ticks(
        axis,
        (value) => (value === model.results ? `${count(value)}${model.finished ? "" : " now"}` : count(value)),
        model.results,
      ),
      "When it left",
    ),
  );
}

/** Above the lines: what was being settled, where there is room for its name. */
function phaseNames(spans, axis, end) {
  const room = ({ since, until }) => axis.share(until) - axis.share(since);
  const told = spans.map(({ objective, since, until }) => `${objective} from ${count(since)} to ${count(until)}`);
  const shown = spans.filter((span) => room(span) >= 18);
  return s(
    "svg",
    {
      class: "w names",
      height: 18,
      role: "img",
      "aria-label": told.length ? `Being settled, in results: ${told.join(", ")}` : "Results",
    },
    shown.map(({ index, objective, since, until }) =>
      s(
        "svg",
        { x: axis.x(since), width: `${room({ since, until }).toFixed(2)}%`, height: 18 },
        s("text", { x: 2, y: 13 }, `${index + 1} ${objective}`),
      ),
    ),
    end && s("text", { class: "now", x: axis.x(end), y: 13, "text-anchor": "middle" }, "likely end"),
  );
}
