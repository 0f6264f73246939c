// One study, from the sentence that answers down to who measures.

import { b, h } from "./dom.js";
import { deciding, race } from "./figures.js";
import { ladder } from "./ladder.js";
import { attention, pill } from "./marks.js";
import { armsInWords } from "./model.js";
import { certificate, forecastPanel } from "./outlook.js";
import { latest, workers } from "./record.js";
import {
  about,
  capital,
  clockTime,
  count,
  given,
  inWords,
  lasting,
  leaseWords,
  listed,
  now,
  percent,
  plural,
  withUnit,
} from "./words.js";

export function studyView(model, { trials, forecast, course, role, can }) {
  const phases = course?.phases ?? [];
  const quiet = [
    deciding(model),
    certificate(model),
    race(model, forecast, phases),
    forecastPanel(model, forecast),
    latest(model, phases),
  ].filter(Boolean);
  return [
    h(
      "section",
      { class: "head", "data-key": "head", "aria-label": "The answer" },
      h(
        "div",
        null,
        h(
          "h1",
          { tabindex: -1 },
          h("span", { class: "name" }, model.name),
          pill(model.state, model.answer.certified, model.answer.flags),
          h(
            "span",
            { class: "order" },
            model.objectives.map(({ name }, i) => [i > 0 && h("i", { "aria-hidden": "true" }, "›"), name]),
          ),
        ),
        h("p", { class: "say" }, sentence(model, forecast)),
        h("p", { class: "sub" }, under(model, role)),
      ),
      h("div", { class: "acts", role: "group", "aria-label": "Actions" }, buttons(model, role, can)),
    ),
    strip(model, forecast),
    ladder(model),
    h("div", { class: "two", "data-key": "figures" }, quiet),
    workers(model, trials, role),
    h(
      "p",
      { class: "end", "data-key": "end" },
      [
        `event ${count(model.seq)}`,
        `δ = ${model.delta}`,
        `lease ${leaseWords(model.lease)}`,
        `since ${clockTime(model.created)}`,
      ].join(" · "),
    ),
  ];
}

// --- the sentence

function sentence(model, forecast) {
  const { answer, state, settlingNow, arms } = model;
  const quiet = (...words) => h("span", { class: "q" }, ...words);
  if (model.finished && answer.certified)
    return [
      b(answer.arm),
      answer.said.length ? ` is certified, but ${answer.said.join("; ")}. ` : " is the answer. ",
      quiet(`${decided(model)} Wrong with probability at most ${percent(answer.delta)}.`),
    ];
  if (model.finished) {
    const why = answer.said.join("; ");
    return [
      b(answer.arm),
      " is the best guess, without a certificate. ",
      quiet(`${capital(why || answer.reason)}.`),
    ];
  }
  const offered = arms.filter((arm) => arm.exit?.kind !== "withdrawn").length;
  const among =
    answer.candidates.length === offered
      ? armsInWords(offered)
      : `${inWords(answer.candidates.length)} of ${armsInWords(offered)}`;
  if (model.results === 0 && state === "measuring") {
    return [
      "No results yet. ",
      settlingNow &&
        quiet(
          b(settlingNow.name),
          ` is settled first, among ${among}`,
          needed(forecast, model.objectives.length > 1 ? ", then the others in order" : ""),
        ),
    ];
  }
  const open = settlingNow && [
    b(settlingNow.name),
    ` ${state === "measuring" ? "is being settled" : "is not settled"} among ${among}`,
  ];
  if (state === "measuring")
    return [b(answer.arm), " is the answer so far, not yet certain. ", quiet(open, needed(forecast, ""))];
  const halt =
    {
      paused: `Paused${model.reason ? `: ${model.reason}` : ""}. `,
      "budget spent": `The budget of ${count(model.budget)} trials is spent. `,
      "items spent": `All ${count(model.items)} items are used. `,
    }[state] ?? `${capital(state)}. `;
  return [halt, b(answer.arm), " is the best guess, not certain. ", quiet(open, ".")];
}

function needed(forecast, otherwise) {
  if (!forecast) return `${otherwise}.`;
  const { low, median, high } = forecast.results;
  return [
    "; about ",
    b(`${about(median)} more ${plural(Math.round(median), "result")}`),
    ` should end the study (${about(low)} to ${about(high)}).`,
  ];
}

/** Who was decided where, in one sentence. */
function decided(model) {
  const parts = model.objectives
    .map((objective) => {
      const n = model.arms.filter((arm) => arm.exit?.at === objective.index).length;
      if (n === 0) return null;
      return objective.isTarget
        ? `${inWords(n)} ${plural(n, "misses", "miss")} the limit on ${objective.name}`
        : `${inWords(n)} ${plural(n, "is", "are")} worse on ${objective.name}`;
    })
    .filter(Boolean);
  const others = model.arms.filter((arm) => !arm.exit && arm.state !== "answer");
  const ties = others.filter((arm) => arm.ties).length;
  if (ties > 0) parts.push(`${inWords(ties)} ${plural(ties, "ties", "tie")} with it`);
  if (others.length > ties)
    parts.push(
      `${inWords(others.length - ties)} ${plural(others.length - ties, "is", "are")} not better by more than what matters`,
    );
  return parts.length ? `Of the others ${listed(parts)}.` : "There was no other.";
}

function under(model, role) {
  const { finished, state, answer } = model;
  if (finished) {
    const unused = model.objectives
      .filter((objective) => objective.state === "not needed")
      .map(({ name }) => name);
    return [
      `${count(model.results)} results in ${lasting(Date.parse(model.ended) - Date.parse(model.created))}. `,
      unused.length > 0 && [b(listed(unused)), ` ${plural(unused.length, "was", "were")} not needed.`],
    ];
  }
  if (model.results === 0)
    return role === "read"
      ? "Workers that ask for trials will appear below."
      : "Start workers with lexbandits run, ask from your own code, or measure by hand.";
  if (state === "budget spent") return "A larger budget lets the study go on.";
  if (state === "items spent") return "Every item was measured once; a certificate would need more of them.";
  if (answer.said.length) return attention(capital(answer.said.join("; ")), ".");
  return mostDepends(model);
}

/** The candidate whose difference is open and nearest to being decided either way. */
function mostDepends(model) {
  const objective = model.settlingNow;
  if (!objective) return "";
  const open = model.shown.filter(
    (row) => row.objective === objective.name && row.verdict === "open" && row.difference != null,
  );
  if (!open.length) return "";
  if (objective.isTarget)
    return [
      `Open on ${objective.name}: `,
      b(listed(open.map((row) => row.rival).slice(0, 4))),
      open.length > 4 && ` and ${inWords(open.length - 4)} more`,
      ".",
    ];
  const [row] = open.sort((a, z) => z.high - z.low - (a.high - a.low));
  const ahead = objective.smaller ? row.difference < 0 : row.difference > 0;
  return [
    "Most open: ",
    b(row.rival),
    ` is ${objective.full(Math.abs(row.difference))} ${ahead ? "worse" : "better"} than ${model.leader} on ${objective.name}, and `,
    `${withUnit(given(objective.tolerance), objective.unit)} does not matter.`,
  ];
}

// --- what one may do

function buttons(model, role, can) {
  const may = { write: role !== "read", admin: role === "admin" };
  const button = (action, text, look = "") =>
    h(
      "button",
      { class: `btn ${look}`, "data-do": action, "data-key": action, "aria-haspopup": "dialog" },
      text,
    );
  const over = model.finished;
  const more = [
    may.write && ["note", "Write a note"],
    may.admin && ["add-arm", "Add an arm"],
    may.admin && !over && ["amend", "Change a tolerance"],
    may.admin && !over && model.objectives.length > 1 && ["reorder", "Change the order"],
    may.admin && model.state !== "budget spent" && ["budget", "Set the budget"],
    can.export && ["export-trials", "Download the trials"],
    can.export && ["export-events", "Download the record"],
    can.verification && ["verify", "Check the record"],
    may.admin && !over && ["end", "End without a certificate"],
  ].filter(Boolean);
  return [
    may.write &&
      !over &&
      model.state === "measuring" &&
      button("measure", "Measure by hand", can.report ? "" : "pri"),
    may.admin && model.state === "paused" && button("resume", "Resume"),
    may.admin && model.state === "measuring" && button("pause", "Pause"),
    may.admin && model.state === "budget spent" && button("budget", "Set the budget", "pri"),
    may.admin && over && button("reopen", "Reopen"),
    more.length > 0 &&
      h(
        "details",
        { class: "menu", "data-key": "more" },
        h("summary", null, "More"),
        h(
          "div",
          null,
          more.map(([action, text]) => button(action, text, "plain")),
        ),
      ),
    can.report && h("button", { class: "btn pri", "data-do": "report", "data-key": "report" }, "Report"),
  ];
}

// --- the strip

function strip(model, forecast) {
  const lost = model.failed + model.expired;
  const silent = model.workers.filter((worker) => worker.until && Date.parse(worker.until) <= now());
  const busy = model.workers.filter((worker) => worker.open > 0).length;
  const worst = model.arms.reduce((a, z) => (z.failed > a.failed ? z : a), model.arms[0]);
  const strained = worst.failed >= 3 && worst.failed > 0.02 * worst.results;
  const whose =
    model.failed === 0
      ? ""
      : model.failed > worst.failed
        ? ` (${count(worst.failed)} on ${worst.name})`
        : ` (${worst.name})`;
  const losses = [
    model.failed > 0 && `${count(model.failed)} failed${whose}`,
    model.expired > 0 && `${count(model.expired)} ran out`,
  ]
    .filter(Boolean)
    .join(", ");
  const failures = strained ? attention(losses) : losses;
  const tiles = [
    [
      "Results",
      count(model.results),
      [`${count(model.open)} open`, model.waiting > 0 && `${count(model.waiting)} wait`]
        .filter(Boolean)
        .join(", "),
    ],
    forecast &&
      !model.finished && [
        "Still needed, forecast",
        `≈ ${about(forecast.results.median)}`,
        `${about(forecast.results.low)}–${about(forecast.results.high)} in 8 of 10 runs`,
      ],
    model.budget != null
      ? [
          "Budget left",
          count(Math.max(0, model.budget - model.handed_out)),
          `of ${count(model.budget)} trials`,
        ]
      : !forecast && ["Handed out", count(model.handed_out), "trials, no limit set"],
    [
      "Wrong with probability",
      model.finished && !model.answer.certified ? "–" : `≤ ${percent(model.delta)}`,
      model.answer.certified
        ? "for the whole study"
        : model.finished
          ? "nothing is certified"
          : "when it is certified",
    ],
    model.finished
      ? ["Workers", count(model.workers.length), "measured"]
      : [
          "Workers",
          [count(busy), h("small", null, ` of ${count(model.workers.length)} measuring`)],
          silent.length > 0
            ? attention(
                silent.length > 2
                  ? `${count(silent.length)} silent`
                  : `${listed(silent.map(({ name }) => name))} silent`,
              )
            : "",
          silent.length > 0,
        ],
    !model.finished && [
      "Overdue",
      count(model.overdue),
      model.overdue > 0
        ? attention(
            model.waiting > 0
              ? `${plural(model.overdue, "holds", "hold")} back ${count(model.waiting)}`
              : "leases ran out",
          )
        : "no lease ran out",
      model.overdue > 0,
    ],
    ["Late", count(model.late), model.late > 0 ? "kept, not counted" : "all in time"],
    ["Missing", count(lost), lost === 0 ? "none failed" : failures, strained],
  ].filter(Boolean);
  return h(
    "dl",
    { class: "strip", "data-key": "strip" },
    tiles.map(([name, value, more, strained]) =>
      h(
        "div",
        { class: strained ? "att" : null, "data-key": name },
        h("dt", null, name),
        h("dd", { class: "v" }, value),
        h("dd", { class: "n" }, more),
      ),
    ),
  );
}
