// What people do: each action is a form in the one dialog, which stays open until the service has agreed.

import { Problem, download, onceKey, request, studyPath } from "./api.js";
import { b, clockTime, drawn, h, viewer } from "./dom.js";

const dialog = document.getElementById("dialog");
const [WHO, LEASE] = ["lexbandits-who", "lexbandits-lease"];
const OUTCOMES = {
  counted: "Saved and counted.",
  waiting: "Saved. It counts as soon as an earlier trial of its pass is in.",
  repeated: "These values were saved before.",
  late: "Saved, but its time had run out: kept on record, not counted.",
  "after the end": "Saved on record. The study had ended; its answer stays.",
  failed: "Saved as failed.",
};

const withUnit = (value, unit) => (unit ? `${value}\u00a0${unit}` : `${value}`);

/** A field of a form: label, what is typed, what it is for; `only` of some choices of another field. */
function field({ name, label, value = "", hint, long, required, choices, mode, only }) {
  const common = {
    id: `f-${name}`,
    name,
    required,
    "aria-describedby": hint ? `h-${name}` : null,
    autocomplete: "off",
  };
  const input = choices
    ? h(
        "select",
        common,
        choices.map(([key, text]) => h("option", { value: key }, text)),
      )
    : long
      ? h("textarea", { ...common, rows: 3, maxlength: 2000 })
      : h("input", { ...common, type: "text", inputmode: mode, maxlength: 200 });
  if (value !== "") input.value = value;
  return h(
    "div",
    { class: "field", "data-only": only?.join(" ") },
    h("label", { for: `f-${name}` }, label),
    input,
    hint && h("p", { class: "hint", id: `h-${name}` }, hint),
  );
}

/** Show a form. `buttons`: text, look, and what to do with its values; an error stays in the dialog. */
export function openForm({ title, text, fields = [], buttons: given, done = !given.length }) {
  const buttons = given.filter(Boolean);
  const [first, more] = [false, true].map((later) => fields.filter((each) => !!each.later === later).map(field));
  const alert = h("p", { class: "alert", role: "alert" });
  const form = h(
    "form",
    { novalidate: true },
    h("h2", { id: "dialog-title", tabindex: -1 }, title),
    text && h("div", { class: "told" }, text),
    first,
    more.length > 0 && h("details", null, h("summary", null, "More settings"), more),
    alert,
    h(
      "div",
      { class: "acts" },
      h("button", { type: "button", class: "btn", "data-do": "close" }, done ? "Close" : "Cancel"),
      buttons.map(({ text: words, look }, i) =>
        h(
          "button",
          { type: i === buttons.length - 1 ? "submit" : "button", class: `btn ${look ?? ""}`, value: i },
          words,
        ),
      ),
    ),
  );
  const run = async (i) => {
    const values = Object.fromEntries(
      [...new FormData(form)].map(([key, value]) => [key, String(value).trim()]),
    );
    const missing = fields.find(({ name, required }) => required && !values[name]);
    alert.textContent = "";
    try {
      if (missing && !buttons[i].free) throw new Problem(422, `${missing.label} is needed.`);
      setBusy(form, true);
      await buttons[i].run(values);
    } catch (error) {
      alert.textContent = error.message;
      if (!(error instanceof Problem)) throw error;
    } finally {
      setBusy(form, false);
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(buttons.length - 1);
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[type=button][value]");
    if (button) run(Number(button.value));
  });
  const showWhatApplies = () => {
    for (const place of form.querySelectorAll("[data-only]")) {
      const [other, ...values] = place.dataset.only.split(" ");
      place.hidden = !values.includes(form.elements[other].value);
    }
  };
  form.addEventListener("change", showWhatApplies);
  form.addEventListener("input", () => {
    form.dataset.typed = "";
  });
  showWhatApplies();
  dialog.replaceChildren(form);
  if (!dialog.open) dialog.showModal();
  (form.querySelector("input, textarea, select") ?? form.querySelector("h2")).focus();
}

function setBusy(form, busy) {
  form.setAttribute("aria-busy", busy);
  for (const button of form.querySelectorAll("button")) button.disabled = busy;
}

/** Whoever leaves before the answer would not see a refusal; what was typed is lost at the second Escape only. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !dialog.open) return; // of two in a row, Chromium lets cancel stop only one
  const written = dialog.querySelector("form[data-typed]");
  if (!written && !dialog.querySelector("[aria-busy=true]")) return;
  event.preventDefault();
  if (written) {
    delete written.dataset.typed;
    written.querySelector(".alert").textContent = "Escape once more throws away what you typed.";
  }
});

export function closeDialog() {
  dialog.close();
}

/** A number as typed: a point or a comma for decimals, either minus sign, 2% for 0.02, nothing for missing. */
export function typed(text, label, isPercent = false) {
  let plain = text.replaceAll("−", "-").replaceAll(/[\s\u00a0\u202f]/g, "");
  if (plain === "") return null;
  const share = plain.endsWith("%") && !isPercent;
  plain = plain.replace(/%$/, "");
  if (/^[+-]?[1-9]\d{0,2},\d{3}$/.test(plain))
    throw new Problem(422, `${label}: “${text}” could be ${plain.replace(",", ".")} or ${plain.replace(",", "")}.`);
  const decimal = plain.lastIndexOf(",") > plain.lastIndexOf(".") && plain.indexOf(",") === plain.lastIndexOf(",");
  plain = decimal ? plain.replaceAll(".", "").replace(",", ".") : plain.replaceAll(",", "");
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain))
    throw new Problem(422, `${label}: a number, got “${text}”.`);
  const value = share ? Number((Number(plain) / 100).toPrecision(15)) : Number(plain);
  if (!Number.isFinite(value)) throw new Problem(422, `${label}: “${text}” is too large.`);
  return value;
}

/** A margin: a number, a percentage of a share as one, or one of the reference as the API takes it. */
export function amount(text, label, isShare, unit) {
  const isOfReference = text.endsWith("%") && !isShare && unit !== "%";
  const number = typed(text, label, isOfReference || unit === "%");
  return isOfReference ? `${number}%` : number;
}

/** What comes unasked waits until the dialog is free. */
function openWhenFree(form) {
  if (dialog.open) dialog.addEventListener("close", () => openWhenFree(form), { once: true });
  else openForm(form);
}

// --- the actions

/** Of the study in view: to that one they stick, whatever is in view when the service answers. */
export function actionsFor(state, news, refresh) {
  const { page, route } = state;
  const model = page?.summary;
  const path = (...more) => studyPath(model.name, ...more);
  const isHere = () => state.route === route;
  const said = (text) => {
    news(text);
    if (!isHere()) return;
    dialog.close();
    refresh();
  };
  const failed = (what) => (error) => {
    const text = `${model.name}, ${what}: ${error.message}`;
    news(text);
    openWhenFree({ title: "It did not work.", text, buttons: [] });
  };
  const study = { model, path, isHere, said, news, refresh, failed };
  const closing = page?.closing && h("p", { class: "warnt" }, `${page.closing} Go on?`);

  const simple = (title, text, label, button, run, options = {}) =>
    openForm({
      title,
      text,
      fields: label ? [{ name: "reason", label, long: true, required: options.required }] : [],
      buttons: [{ text: button, look: options.look ?? "pri", run: async ({ reason = "" }) => run(reason) }],
    });

  const setState = (to, reason, words) =>
    request("POST", path("state"), { state: to, reason }).then(() => said(words));

  const saved = (format) =>
    download(`${path("export")}?format=${format}`, `${model.name}.${format}`).catch(failed("download"));

  return {
    pause: () =>
      simple(
        "Pause the study",
        "No trial is handed out until it is resumed; results of open trials still count.",
        "Why (others see it)",
        "Pause",
        (reason) => setState("paused", reason, "Paused."),
      ),
    resume: () =>
      simple("Resume the study", "Trials are handed out again.", null, "Resume", () =>
        setState("measuring", "", "Measuring again."),
      ),
    reopen: () =>
      simple(
        "Reopen the study",
        "It goes on measuring from where it ended. That is on record.",
        "Why",
        "Reopen",
        (reason) => setState("measuring", reason, "Reopened."),
        { required: true },
      ),
    end: () =>
      simple(
        "End without a certificate",
        [
          `The answer will be a best guess, ${model.answer.arm}, and nothing is certified. What was measured stays on record.`,
        ],
        "Why",
        "End the study",
        (reason) => setState("finished", reason, "Ended."),
        { required: true, look: "danger" },
      ),
    note: () =>
      simple(
        "Write a note",
        "For the record, with the time. It changes nothing.",
        "Note",
        "Save",
        (text) => request("POST", path("notes"), { text }).then(() => said("Note saved.")),
        { required: true },
      ),
    budget: () =>
      openForm({
        title: "Set the budget",
        text: `${model.handed_out} trials were handed out so far.`,
        fields: [
          {
            name: "budget",
            label: "Trials in all",
            mode: "numeric",
            value: model.budget ?? "",
            hint: "Empty: no limit.",
          },
        ],
        buttons: [
          {
            text: "Set",
            look: "pri",
            run: ({ budget }) =>
              request("PUT", path("budget"), { budget: typed(budget, "Trials in all") }).then(() =>
                said("Budget set."),
              ),
          },
        ],
      }),
    "add-arm": () =>
      openForm({
        title: "Add an arm",
        text: [
          `Room for ${model.max_arms} arms was left when the study was made; it has ${model.arms.length}.`,
          closing,
        ],
        fields: [{ name: "name", label: "Name", required: true }],
        buttons: [
          {
            text: "Add",
            look: "pri",
            run: ({ name }) => request("POST", path("arms"), { name }).then(() => said(`${name} added.`)),
          },
        ],
      }),
    amend: () =>
      openForm({
        title: "Change a margin",
        text: ["Allowed after looking, at the same confidence. It is on record.", closing],
        fields: [
          {
            name: "objective",
            label: "Objective",
            choices: model.objectives.filter(({ limit }) => limit === null).map(({ name, matters }) => [name, `${name}: now ${matters}`]),
          },
          {
            name: "margin",
            label: "Margin",
            mode: "decimal",
            hint: "How far below the best an answer may be, in the objective's unit. Empty: as it is.",
          },
          { name: "tie", label: "Tie", mode: "decimal", hint: "Arms this close to the best are never excluded. Empty: as it is, or half of the margin." },
        ],
        buttons: [
          {
            text: "Change",
            look: "pri",
            run: async ({ objective, margin, tie }) => {
              const { noise, bounds, unit } = model.objectives.find(({ name }) => name === objective);
              const isShare = noise === "bernoulli" || (bounds?.[0] >= 0 && bounds?.[1] <= 1);
              const words = {
                margin: amount(margin, "Margin", isShare, unit),
                tie: amount(tie, "Tie", isShare, unit),
              };
              const body = Object.fromEntries(Object.entries(words).filter(([, value]) => value !== null));
              if (!Object.keys(body).length)
                throw new Problem(422, "Give a margin, a tie, or both.");
              await request("PUT", path("objectives", objective), body);
              said(`${objective} changed.`);
            },
          },
        ],
      }),
    reorder: () =>
      openForm({
        title: "Change the order",
        text: [
          "Which objective comes first may change after looking, at the same confidence. It is on record.",
          closing,
        ],
        fields: model.objectives.map(({ name }, i) => ({
          name: `o${i}`,
          label: `Priority ${i + 1}`,
          value: name,
          choices: model.objectives.map((each) => [each.name, each.name]),
        })),
        buttons: [
          {
            text: "Change",
            look: "pri",
            run: async (values) => {
              const objectives = model.objectives.map((_, i) => values[`o${i}`]);
              const twice = objectives.find((name, i) => objectives.indexOf(name) < i);
              if (twice !== undefined) throw new Problem(422, `${twice} is there twice.`);
              await request("PUT", path("order"), { objectives });
              said("Order changed.");
            },
          },
        ],
      }),
    "show-items": async () => {
      try {
        const { html } = await request("GET", `${path("items")}?format=html`);
        if (isHere()) openWhenFree({ title: "Every item", text: drawn(html), buttons: [] });
      } catch (error) {
        failed("table of items")(error);
      }
    },
    "export-items": () =>
      download(`${path("items")}?format=csv`, `${model.name}-items.csv`).catch(failed("download")),
    retry: () =>
      simple(
        "Ask again for what is missing",
        "Places of this list that failed or ran out are handed out again. It is on record and is reported as a diagnostic, as what looked bad could be chosen.",
        null,
        "Ask again",
        () => request("POST", path("retry")).then(({ places }) => said(`Asked again: ${places}.`)),
      ),
    "export-trials": () => saved("csv"),
    "export-events": () => saved("jsonl"),
    verify: async () => {
      news("Checking the record.");
      try {
        const found = await request("GET", path("verification"));
        const title = found.ok ? "The record holds." : "The record does not hold.";
        if (isHere()) openWhenFree({ title, text: checked(found), buttons: [] });
      } catch (error) {
        failed("check of the record")(error);
      }
    },
    arm: ({ arm }) => armDialog(study, arm, closing),
    report: () => download(path("report"), `${model.name}.html`).catch(failed("report")),
    measure: () => measureByHand(study),
    enter: ({ trial, ...words }) => enterResult(study, { id: trial, ...words }),
    correct: (trial) => correctResult(study, trial),
    compare: () => compareWith(study),
    release: ({ trial }) =>
      simple(
        "Give back the trial",
        "Only if nobody has begun it: it will be handed out again as another, and a result of this one is refused from then on.",
        null,
        "Give back",
        () => request("DELETE", path("trials", trial, "lease")).then(() => said("Given back.")),
      ),
    close: closeDialog,
  };
}

const checked = ({ events, trials, problems, sha256 }) => [
  h("p", null, `${events} events and ${trials} trials were replayed from nothing.`),
  problems.length > 0 &&
    h(
      "ul",
      null,
      problems.slice(0, 20).map((problem) => h("li", null, problem)),
    ),
  h("p", null, "SHA-256 of the events, as in the report: ", h("code", { class: "mono" }, sha256)),
];

async function compareWith({ model, failed }) {
  try {
    const { studies } = await request("GET", "/api/studies?limit=100");
    const others = studies.map(({ name }) => name).filter((name) => name !== model.name);
    openForm({
      title: "Compare with another",
      text: others.length ? null : "There is no other study yet.",
      fields: others.length ? [{ name: "other", label: "Study", choices: others.map((name) => [name, name]) }] : [],
      buttons: others.length
        ? [
            {
              text: "Compare",
              look: "pri",
              run: async ({ other }) => {
                location.hash = `#/compare?${new URLSearchParams({ first: model.name, second: other })}`;
              },
            },
          ]
        : [],
    });
  } catch (error) {
    failed("list of studies")(error);
  }
}

function armDialog({ model, path, said }, name, closing) {
  const arm = model.arms.find((each) => each.name === name);
  const settings = Object.entries(arm.fields).map(([key, value]) => `${key} = ${value}`);
  const counts = ["results", "open", "failed", "expired", "late"].map((word) => `${arm[word]} ${word}`);
  const story = document.querySelector(`.arms li[data-key="${CSS.escape(name)}"]`);
  const text = [
    settings.length > 0 && h("p", { class: "mono" }, settings.join(", ")),
    story && h("p", null, [...story.cloneNode(true).childNodes]),
    h("p", null, counts.join(", ")),
  ];
  const change = (words, more) => ({ title: name, text: [text, h("p", null, words), closing], done: true, ...more });
  if (viewer.role !== "admin") {
    openForm({ title: name, text, buttons: [] });
  } else if (arm.withdrawn != null) {
    const run = () =>
      request("DELETE", path("arms", name, "withdrawal")).then(() => said(`${name} is back in.`));
    openForm(change("", { buttons: [{ text: "Bring back", look: "pri", run }] }));
  } else {
    const run = ({ reason }) =>
      request("POST", path("arms", name, "withdrawal"), { reason }).then(() => said(`${name} withdrawn.`));
    openForm(
      change("Withdrawing takes it out of the question; arms that only it had beaten come back.", {
        fields: [{ name: "reason", label: "Why withdraw it", long: true, required: true }],
        buttons: [{ text: "Withdraw", look: "danger", run }],
      }),
    );
  }
}

// --- measuring by hand

const remembered = () => ({ worker: localStorage.getItem(WHO), lease: localStorage.getItem(LEASE) ?? "" });

/** Who measures is asked once; then each result is one dialog. */
function measureByHand(study) {
  const { worker, lease } = remembered();
  if (worker) return askForTrial(study, onceKey());
  openForm({
    title: "Measure by hand",
    text: "The study says which arm to measure, on which item. A result counts if it is entered in time.",
    fields: [
      {
        name: "worker",
        label: "Who measures",
        required: true,
        hint: "Your name or your bench; shown beside the trial. This browser will remember it.",
      },
      {
        name: "lease",
        label: "Time for one measurement",
        value: lease,
        choices: [
          ["", `as the study says: ${study.model.lease}`],
          ["1h", "1 hour"],
          ["1d", "1 day"],
          ["7d", "7 days"],
          ["30d", "30 days"],
        ],
      },
    ],
    buttons: [
      {
        text: "Ask for a trial",
        look: "pri",
        run: async (chosen) => {
          localStorage.setItem(WHO, chosen.worker);
          localStorage.setItem(LEASE, chosen.lease);
          await askForTrial(study, onceKey());
        },
      },
    ],
  });
}

async function askForTrial(study, key, before) {
  const { path, isHere, refresh, failed } = study;
  const { worker, lease } = remembered();
  const nothing = (text) => openForm({ title: before ?? "Nothing to measure now.", text, buttons: [] });
  try {
    const body = { n: 1, worker, ...(lease ? { lease } : {}) };
    const handed = await request("POST", path("trials"), body, { "Idempotency-Key": key });
    if (!isHere()) return;
    refresh();
    if (handed.trials.length) enterResult(study, handed.trials[0], before);
    else nothing(handed.reason ?? `Nothing to measure: ${handed.state}.`);
  } catch (error) {
    if (error.status === 409) nothing(error.message);
    else failed("a trial to measure")(error);
  }
}

function valueHint({ noise, bounds, unit, direction, limit }) {
  const range =
    noise === "bernoulli"
      ? "0 or 1"
      : bounds
        ? `from ${bounds[0]} to ${withUnit(bounds[1], unit)}`
        : unit
          ? `in ${unit}`
          : "a number";
  const aim = limit === null ? `${direction === "minimize" ? "lower" : "higher"} is better` : `limit ${limit}`;
  return `${range}; ${aim}. Empty if not measured.`;
}

const valueFields = (objectives, values = []) =>
  objectives.map((objective, i) => ({
    name: `v${i}`,
    label: withUnit(objective.name, objective.unit && `(${objective.unit})`),
    mode: "decimal",
    value: values[i] ?? "",
    hint: valueHint(objective),
  }));

function valuesOf(objectives, entered, otherwise) {
  const told = objectives.map(({ name, unit }, i) => [name, typed(entered[`v${i}`], name, unit === "%")]);
  if (told.every(([, value]) => value === null)) throw new Problem(422, `Give at least one value${otherwise}.`);
  return { values: Object.fromEntries(told) };
}

const itemWords = (item) => `item ${typeof item === "string" ? item.replace(/^item /, "") : JSON.stringify(item)}`;

function enterResult(study, trial, before) {
  const { model, path, isHere, news, refresh } = study;
  const { objectives } = model;
  const save = (body) => request("PUT", path("trials", trial.id, "result"), body);
  const after = ({ outcome }, next) => {
    const words = OUTCOMES[outcome] ?? `Saved: ${outcome}.`;
    news(words);
    if (!isHere()) return;
    refresh();
    if (next) return askForTrial(study, onceKey(), words);
    openForm({ title: words, text: [b(trial.arm), `, ${itemWords(trial.item)}`], buttons: [] });
  };
  const saveValues = async (entered, next) =>
    after(await save(valuesOf(objectives, entered, ", or say that it could not be measured")), next);
  openForm({
    title: "Enter a result",
    text: [
      before && h("p", null, before),
      h("p", null, "Measure ", b(trial.arm), ` on ${itemWords(trial.item)}, before ${clockTime(trial.until)}.`),
    ],
    fields: [...valueFields(objectives), { name: "failed", label: "If it could not be measured: why" }],
    buttons: [
      {
        text: "Could not be measured",
        run: async ({ failed }) => {
          if (!failed) throw new Problem(422, "Say why it could not be measured.");
          after(await save({ failed }));
        },
      },
      { text: "Save result", run: (entered) => saveValues(entered) },
      remembered().worker && {
        text: "Save, then the next",
        look: "pri",
        run: (entered) => saveValues(entered, true),
      },
    ],
  });
}

function correctResult({ model, path, said }, { trial, arm, item, ...data }) {
  const { objectives } = model;
  openForm({
    title: "Correct a result",
    text: [
      b(arm),
      `, ${item}. Other values count while their pass is not complete; later they are noted beside the result, which stays.`,
    ],
    fields: [
      ...valueFields(objectives, objectives.map((_, i) => data[`v${i}`])),
      { name: "reason", label: "Why", long: true, required: true },
    ],
    buttons: [
      {
        text: "Correct",
        look: "pri",
        run: async ({ reason, ...entered }) => {
          const body = { ...valuesOf(objectives, entered, ""), reason };
          const { outcome } = await request("PUT", path("trials", trial, "correction"), body);
          said(outcome === "corrected" ? "Corrected." : "Too late to count: noted beside the result.");
        },
      },
    ],
  });
}
