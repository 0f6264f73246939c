// A new study: its name and arms, then its objectives one by one, the most important first.

import { amount, closeDialog, openForm, typed } from "./actions.js";
import { Problem, request } from "./api.js";
import { h } from "./dom.js";

const KINDS = [
  ["auto", "any number"],
  ["gaussian", "a number on a bell curve (Gaussian)"],
  ["bounded", "a number between two bounds"],
  ["bernoulli", "yes or no, as 1 or 0"],
  ["finite_variance", "a number of any shape: approximate, or capped"],
  ["exact", "the same at every measurement"],
];
const linesOf = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
/** Without what was left empty. */
const said = (words) => Object.fromEntries(Object.entries(words).filter(([, word]) => word !== null && word !== ""));

/** Lines such as “old 50%” or “new 0% 10%” as the API takes them; null for none. */
function sharesOf(text) {
  const shares = linesOf(text).map((line) => {
    const [, arm, low, high] = line.match(/^(.+?)[\s:=]+([\d.,]+\s?%?)(?:\s+([\d.,]+\s?%?))?$/) ?? [];
    if (!arm) throw new Problem(422, `Share of the visitors: an arm and one or two shares, got “${line}”.`);
    const [least, most] = [low, high ?? ""].map((share) => typed(share, `Share of ${arm}`));
    return [arm, most === null ? least : [least, most]];
  });
  return shares.length ? Object.fromEntries(shares) : null;
}

export function createStudy(news) {
  openForm({
    title: "New study",
    text: "First the question: which of these?",
    fields: [
      { name: "name", label: "Name", required: true },
      {
        name: "arms",
        label: "Arms, one a line",
        long: true,
        required: true,
        hint: "Between equals the one listed first is the answer: begin with what is in use today.",
      },
      {
        name: "preregistered",
        label: "Margins, order and arms",
        choices: [
          ["true", "will stay: fewer results are needed"],
          ["false", "may change after looking: a change costs nothing"],
        ],
      },
      {
        name: "serve",
        label: "Each result is",
        later: true,
        choices: [
          ["false", "a measurement: as few as possible are made"],
          ["true", "a visitor: fewer of them see a worse arm"],
        ],
      },
      {
        name: "baseline",
        label: "The arm in use today",
        later: true,
        hint: "It stays unless another is shown to be better in something that matters. Empty: all are alike.",
      },
      {
        name: "traffic",
        label: "Visitors who take part",
        mode: "decimal",
        later: true,
        hint: "Such as 20%. The others see the arm in use today. Empty: all.",
      },
      {
        name: "warmup",
        label: "Time in which that share grows from nothing",
        later: true,
        hint: "Such as 12h, 2d. Empty: none.",
      },
      {
        name: "shares",
        label: "Share of the visitors who see an arm, one arm a line",
        long: true,
        later: true,
        hint: "At least “old 50%”, or at least and at most “new 0% 10%”. Empty: as measuring needs it.",
      },
      {
        name: "delta",
        label: "Wrong with probability at most (δ)",
        mode: "decimal",
        later: true,
        hint: "Empty: 5%.",
      },
      {
        name: "items",
        label: "Items to measure on, one a line",
        long: true,
        later: true,
        hint: "The answer is about this list: each item at most once per arm, in an order drawn at random. Empty: whoever measures chooses each time.",
      },
      {
        name: "max_arms",
        label: "Room for so many arms",
        mode: "numeric",
        later: true,
        hint: "If some may be added later. Empty: for these.",
      },
      { name: "budget", label: "Trials in all", mode: "numeric", later: true, hint: "Empty: no limit." },
      { name: "lease", label: "Time for one measurement", later: true, hint: "Such as 30s, 10m, 2h, 1d. Empty: 10m." },
    ],
    buttons: [
      {
        text: "Next: what matters",
        look: "pri",
        run: async ({ name, arms, preregistered, serve, baseline, delta, items, max_arms, budget, lease, ...visitors }) => {
          const listed = linesOf(arms);
          if (listed.length < 2) throw new Problem(422, "Two arms at least are needed.");
          if (baseline && !listed.includes(baseline))
            throw new Problem(422, `The arm in use today is none of the arms: ${baseline}`);
          const drawn = linesOf(items).map((item) => (/^-?\d{1,15}$/.test(item) ? Number(item) : item));
          const settings = said({
            baseline,
            serve: serve === "true" || null,
            delta: typed(delta, "δ"),
            max_arms: typed(max_arms, "Room for arms"),
            budget: typed(budget, "Trials in all"),
            lease,
            traffic: typed(visitors.traffic, "Visitors who take part"),
            warmup: visitors.warmup.trim(),
            shares: sharesOf(visitors.shares),
          });
          const question = { name, arms: listed, preregistered: preregistered === "true", ...settings, ...(drawn.length ? { items: drawn } : {}) };
          askObjective({ ...question, objectives: [] }, news);
        },
      },
    ],
  });
}

function askObjective(question, news) {
  const place = question.objectives.length + 1;
  const more = (values) => ({ ...question, objectives: [...question.objectives, objectiveOf(values)] });
  openForm({
    title: `${question.name}: objective ${place}`,
    text: [
      place > 1 && h("p", null, `So far: ${question.objectives.map(({ name }) => name).join(" › ")}`),
      h("p", null, place === 1 ? "What matters most?" : "What matters next, among arms that tie before?"),
    ],
    fields: [
      { name: "name", label: "Name", required: true },
      {
        name: "direction",
        label: "Which is better",
        choices: [
          ["maximize", "higher"],
          ["minimize", "lower"],
        ],
      },
      { name: "unit", label: "Unit", hint: "Empty if it has none." },
      {
        name: "margin",
        label: "Margin",
        mode: "decimal",
        hint: "How far below the best an answer may be: in the unit, or as 2%. This is what is certified. Empty beside a limit.",
      },
      {
        name: "tie",
        label: "Tie",
        mode: "decimal",
        later: true,
        hint: "Arms this close to the best are never excluded for it. Empty: half of the margin.",
      },
      {
        name: "reference",
        label: "Percent of what",
        later: true,
        hint: "best, an arm or a number. Empty: of the best, and of a share between 0 and 1 in points.",
      },
      {
        name: "limit",
        label: "Limit",
        mode: "decimal",
        hint: "Instead of a margin, if every arm that meets it is as good: at least, or at most if lower is better. Certified as written.",
      },
      {
        name: "slack",
        label: "Slack",
        mode: "decimal",
        later: true,
        hint: "Beside a limit: an arm inside it by so much is never excluded by it. Empty: a tenth of the limit.",
      },
      { name: "noise", label: "One measurement is", choices: KINDS },
      { name: "low", label: "Lower bound", mode: "decimal", only: ["noise", "bounded"] },
      {
        name: "high",
        label: "Upper bound",
        mode: "decimal",
        only: ["noise", "bounded"],
        hint: "What lies beyond is refused: cut it off there, as a timeout does, and it is about the mean of what is left.",
      },
      {
        name: "cap",
        label: "Cap",
        mode: "decimal",
        only: ["noise", "finite_variance"],
        hint: "What lies above counts as this much, and the answer is about the mean of that. Empty: the answer is approximate, never certified.",
      },
      {
        name: "floor",
        label: "Floor",
        mode: "decimal",
        only: ["noise", "finite_variance"],
        hint: "What lies below counts as this much, if there is a cap. Empty: 0, and less is refused.",
      },
      {
        name: "if_missing",
        label: "A value that is missing",
        only: ["noise", "bounded", "bernoulli"],
        choices: [
          ["", "is left out, and the answer says so"],
          ["worst", "counts as the worst it could have been"],
        ],
      },
    ],
    buttons: [
      { text: "One more objective", run: async (values) => askObjective(more(values), news) },
      {
        text: "Create the study",
        look: "pri",
        run: async (values) => send(more(values), news),
      },
    ],
  });
}

async function send(question, news) {
  try {
    const { name } = await request("POST", "/api/studies", question);
    closeDialog();
    news(`${name} created.`);
    location.hash = `#/study/${encodeURIComponent(name)}`;
  } catch (error) {
    if (error.status !== 409) throw error;
    askAnotherName(question, error.message, news);
  }
}

function askAnotherName(question, why, news) {
  openForm({
    title: "Another name is needed",
    text: why,
    fields: [{ name: "name", label: "Name", value: question.name, required: true }],
    buttons: [
      {
        text: "Create the study",
        look: "pri",
        run: ({ name }) => send({ ...question, name }, news),
      },
    ],
  });
}

/** In the words of the API, from what was typed. */
function objectiveOf({ name, direction, unit, noise, if_missing, ...entered }) {
  const whose = entered.reference.trim();
  const isNamed = /[^\d\s.,+−-]/.test(whose);
  const numbers = ["limit", "slack", "low", "high", "cap", "floor", ...(isNamed ? [] : ["reference"])];
  const [limit, slack, low, high, cap, floor, number] = numbers.map((key) =>
    typed(entered[key], key[0].toUpperCase() + key.slice(1), unit === "%"),
  );
  const reference = isNamed ? whose : number;
  if (noise === "bounded" && (low === null || high === null))
    throw new Problem(422, "A number between two bounds needs both of them.");
  const cut = noise === "finite_variance" ? said({ cap, floor }) : {};
  if ("floor" in cut && !("cap" in cut)) throw new Problem(422, "A floor needs a cap.");
  const [lowest, highest] = "cap" in cut ? [floor ?? 0, cap] : [low, high];
  const isBounded = noise === "bounded" || "cap" in cut;
  const isShare = !isNamed && (noise === "bernoulli" || (isBounded && lowest >= 0 && highest <= 1));
  const margin = amount(entered.margin, "Margin", isShare, unit);
  const tie = amount(entered.tie, "Tie", isShare, unit);
  return {
    name,
    direction,
    unit,
    noise: noise === "bounded" ? [noise, low, high] : noise,
    ...cut,
    ...said({ margin, tie, slack }),
    ...(reference === null ? {} : { reference }),
    ...(if_missing && ["bounded", "bernoulli"].includes(noise) ? { if_missing } : {}),
    ...(limit === null ? {} : { [direction === "minimize" ? "at_most" : "at_least"]: limit }),
  };
}
