// What is certain at the end, and what is likely before it.

import { b, h, s } from "./dom.js";
import { panel } from "./figures.js";
import { about, aboutPercent, count, given, listed, percent, withUnit } from "./words.js";

// --- the certificate

export function certificate(model) {
  if (!model.finished || !model.answer.certified) return null;
  const { answer } = model;
  const rivals = model.arms.filter((arm) => arm.name !== answer.arm);
  const said = (arm) => {
    if (arm.exit?.kind === "withdrawn") return ["withdrawn; nothing is claimed"];
    const rows = answer.certificate.filter(
      (row) => row.rival === arm.name && row.objective !== model.objectives[arm.exit?.at]?.name,
    );
    const before = rows.filter((row) => /^(close|not worse)/.test(row.verdict)).map((row) => row.objective);
    const even = before.length
      ? `on ${listed(before)} ${answer.arm} is as good or better, within what matters`
      : "";
    if (!arm.exit)
      return [
        even || "no difference that matters was found",
        arm.ties && "; ties go to the arm listed first",
      ];
    return [b(model.objectives[arm.exit.at].name), `: ${arm.exit.why}`, even && `; ${even}`];
  };
  const silent = model.objectives.filter(({ state }) => state === "not needed").map(({ name }) => name);
  return panel(
    "certificate",
    "What the certificate says",
    null,
    h(
      "p",
      null,
      `With probability at least ${percent(1 - answer.delta)}, over everything this study looked at and whenever it looked:`,
    ),
    h(
      "table",
      { class: "mini cert" },
      h(
        "tbody",
        null,
        rivals.map((arm) =>
          h("tr", { "data-key": arm.name }, h("th", { scope: "row" }, arm.name), h("td", null, said(arm))),
        ),
        silent.length > 0 &&
          h(
            "tr",
            { class: "mut" },
            h("th", { scope: "row" }, silent.join(", ")),
            h("td", null, "nothing is claimed: it was not needed"),
          ),
      ),
    ),
    h(
      "p",
      { class: "hint" },
      "Rests on: noise as declared, items drawn anew in each pass, results lost for reasons that have nothing to do with their values.",
    ),
  );
}

// --- the forecast

export function forecastPanel(model, forecast) {
  if (!forecast || model.finished) return null;
  const units = new Map(model.objectives.map(({ name, unit }) => [name, unit]));
  const winners = Object.entries(forecast.winners)
    .sort((a, z) => z[1] - a[1])
    .filter(([, share], i) => share > 0 && i < 6);
  const changed = ({ setting, objective, now, then }) => {
    const unit = setting === "delta" ? "" : (units.get(objective) ?? "");
    return `${objective ?? ""} ${setting === "delta" ? "δ" : setting} ${given(now)} → ${withUnit(given(then), unit)}`.trim();
  };
  const shows = ({ saves, error }) => saves != null && Math.abs(saves) > Math.max(2 * (error ?? 0), 0.5);
  const saved = ({ saves }) => (saves > 0 ? `≈ ${about(saves)} results` : `costs ≈ ${about(-saves)}`);
  const relax = (forecast.relax ?? []).filter(shows);
  return panel(
    "forecast",
    "Forecast",
    `From ${count(forecast.runs)} runs of the rest of the study, drawn from what was measured.`,
    h(
      "div",
      { class: "fc" },
      h(
        "div",
        null,
        h("h3", null, "Who is likely to win"),
        h(
          "table",
          { class: "mini" },
          h(
            "tbody",
            null,
            winners.map(([arm, share]) =>
              h(
                "tr",
                { "data-key": arm },
                h("th", { scope: "row" }, arm),
                h(
                  "td",
                  { class: "grow" },
                  s(
                    "svg",
                    { class: "w", height: 8, "aria-hidden": "true" },
                    s("rect", { class: "trough", width: "100%", height: 8, rx: 1 }),
                    s("rect", { class: "fillbar", width: `${(100 * share).toFixed(1)}%`, height: 8, rx: 1 }),
                  ),
                ),
                h("td", { class: "num" }, share > 0 && share < 0.01 ? "< 1\u00a0%" : aboutPercent(share)),
              ),
            ),
          ),
        ),
      ),
      forecast.relax?.length > 0 &&
        h(
          "div",
          null,
          h("h3", null, "What a wider tolerance or resolution would save"),
          relax.length > 0 &&
            h(
              "table",
              { class: "mini" },
              h(
                "tbody",
                null,
                relax.map((change) =>
                  h(
                    "tr",
                    null,
                    h("th", { scope: "row" }, changed(change)),
                    h("td", { class: "num" }, saved(change)),
                  ),
                ),
              ),
            ),
          relax.length < forecast.relax.length &&
            h(
              "p",
              { class: "hint" },
              relax.length ? "The others: no difference that shows." : "Nothing that shows.",
            ),
        ),
    ),
  );
}
