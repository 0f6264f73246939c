// What the summary says, arranged as the page shows it: objectives in order, and where each arm's way ends.

import { bound, digitsOf, given, inWords, number, withUnit } from "./words.js";

export function modelOf(summary) {
  const ended = summary.state === "finished" && summary.answer.reason.startsWith("ended by hand");
  const objectives = summary.objectives.map((objective, index) =>
    prepared(objective, index, summary.arms, ended),
  );
  const at = new Map(objectives.map((objective) => [objective.name, objective]));
  const finished = summary.state === "finished";
  const shown = finished ? summary.answer.certificate : summary.differences;
  const arms = summary.arms.map((arm) => ({
    ...arm,
    exit: exitOf(arm, summary, at, shown),
    ties: isClose(arm, shown),
  }));
  const rank = (arm) => (arm.state === "answer" ? -1 : arm.exit ? objectives.length - arm.exit.at : 0);
  arms.sort((a, z) => rank(a) - rank(z) || (z.exit?.after ?? 0) - (a.exit?.after ?? 0));
  for (const objective of objectives) place(objective, arms);
  return { ...summary, objectives, arms, finished, shown, settlingNow: at.get(summary.settling) ?? null };
}

function prepared(objective, index, arms, ended) {
  const means = arms.map((arm) => Math.abs(arm.objectives[objective.name].mean ?? 0));
  const digits =
    digitsOf(objective.tolerance, objective.resolution) ??
    Math.max(0, 3 - Math.ceil(Math.log10(Math.max(...means, 1))));
  const smaller = objective.direction === "minimize";
  return {
    ...objective,
    index,
    digits,
    smaller,
    state: ended ? "unclaimed" : objective.state,
    isTarget: objective.target != null,
    text: (value) => number(value, digits),
    atLeast: (value) => withUnit(bound(value, digits, "floor"), objective.unit),
    atMost: (value) => withUnit(bound(value, digits, "ceil"), objective.unit),
    full: (value) => withUnit(number(value, digits), objective.unit),
    rule: ruleOf(objective, smaller),
  };
}

function ruleOf(objective, smaller) {
  const unit = (value) => withUnit(given(value), objective.unit);
  if (objective.target != null) {
    const slack = objective.resolution > 0 ? `, told to within ${unit(objective.resolution)}` : "";
    return ["guardrail", `${smaller ? "at most" : "at least"} ${unit(objective.target)}${slack}`];
  }
  const what = [objective.unit, smaller ? "lower is better" : "higher is better"].filter(Boolean).join(", ");
  return [
    what,
    objective.tolerance > 0 ? `${unit(objective.tolerance)} does not matter` : "every difference matters",
  ];
}

// --- where an arm's way ends

/** Objective, results until then, and the reason in words; null for who is still in. */
function exitOf(arm, summary, at, shown) {
  if (arm.withdrawn != null) return { at: -1, kind: "withdrawn", after: null, why: arm.withdrawn };
  if (arm.left) {
    const objective = at.get(arm.left.objective);
    return { at: objective.index, kind: "out", after: arm.left.results, why: leftWords(arm, objective) };
  }
  if (summary.state !== "finished" || arm.name === summary.answer.arm) return null;
  const rows = shown.filter((row) => row.rival === arm.name);
  const last = rows.find((row) => /^(beats|beaten|misses)/.test(row.verdict));
  if (!last) return null;
  const objective = at.get(last.objective);
  return {
    at: objective.index,
    kind: "behind",
    after: null,
    why: certifiedWords(last, objective, summary.answer.arm, arm),
  };
}

/** Whether nothing that matters lies between an arm and the answer, on any objective. */
function isClose(arm, shown) {
  const rows = shown.filter((row) => row.rival === arm.name);
  return rows.length > 0 && rows.every((row) => /^(close|meets)/.test(row.verdict));
}

function leftWords(arm, objective) {
  const { rival, low, high } = arm.left;
  if (rival == null) return missesWords(arm, objective);
  const least = objective.smaller ? low : high == null ? null : -high;
  return least > 0 ? `worse than ${rival} by at least ${objective.atLeast(least)}` : `worse than ${rival}`;
}

function missesWords(arm, objective) {
  const { low, high } = arm.objectives[objective.name];
  return objective.smaller
    ? `certainly above the limit${low == null ? "" : `, at least ${objective.atLeast(low)}`}`
    : `certainly below the limit${high == null ? "" : `, at most ${objective.atMost(high)}`}`;
}

function certifiedWords(row, objective, answer, arm) {
  if (row.verdict.startsWith("misses")) return missesWords(arm, objective);
  if (row.verdict === "beaten") return `worse than ${row.by}`;
  const least = objective.smaller ? (row.high == null ? null : -row.high) : row.low;
  const by = row.difference == null ? "" : ` by ${objective.full(Math.abs(row.difference))}`;
  return `worse than ${answer}${by}${least > 0 ? `, at least ${objective.atLeast(least)}` : ""}`;
}

// --- the axis of an objective

/** Those whom an objective still concerns. */
export const reaches = (arm, objective) => !arm.exit || arm.exit.at >= objective.index;

function place(objective, arms) {
  const inside = arms.filter((arm) => reaches(arm, objective));
  const known = inside.map((arm) => arm.objectives[objective.name]).filter((value) => value.mean != null);
  const ends = known.flatMap(({ mean, low, high }) => [mean, low ?? mean, high ?? mean]);
  objective.entered = inside.length;
  objective.stayed = arms.filter((arm) => reaches(arm, objective) && arm.exit?.at !== objective.index).length;
  objective.band = bandOf(objective, inside);
  if (objective.isTarget) ends.push(objective.target);
  else if (objective.band) ends.push(...objective.band);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const most = Math.max(Math.abs(low), Math.abs(high)) >= 1000 ? 3 : 4; // long labels need room
  objective.axis = known.length ? axisOf(low, high, most) : null;
}

/** What does not matter, seen from the best; or what meets the target. An end that is open is infinite. */
function bandOf(objective, arms) {
  if (objective.isTarget)
    return objective.smaller ? [-Infinity, objective.target] : [objective.target, Infinity];
  const means = arms.map((arm) => arm.objectives[objective.name].mean).filter((mean) => mean != null);
  if (!means.length || !(objective.tolerance > 0)) return null;
  const best = objective.smaller ? Math.min(...means) : Math.max(...means);
  return objective.smaller ? [best, best + objective.tolerance] : [best - objective.tolerance, best];
}

/** An axis with at most `most` round ticks, and room at both ends. */
export function axisOf(low, high, most, before = 0.04, after = before) {
  const width = high - low || Math.abs(high) || 1;
  const [from, to] = [low - before * width, low + (1 + after) * width];
  const inside = (step) => Math.floor(to / step) - Math.ceil(from / step) + 1;
  const power = 10 ** Math.floor(Math.log10(width / most));
  const step = [1, 2, 5, 10, 20].map((factor) => factor * power).find((each) => inside(each) <= most);
  const ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to && ticks.length < 12; tick += step)
    ticks.push(tick);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const share = (value) => Math.min(100, Math.max(0, (100 * (value - from)) / (to - from)));
  return { from, to, ticks, digits, share, x: (value) => `${share(value).toFixed(2)}%` };
}

// --- counts in words

export const armsInWords = (n) => `${inWords(n)} ${n === 1 ? "arm" : "arms"}`;
