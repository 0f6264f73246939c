// The page: which view, how often to look, what to say when the service is away.

import {
  Problem,
  decoded,
  forgetToken,
  hasToken,
  keepToken,
  poll,
  request,
  studyPath,
  takeToken,
} from "./api.js";
import { actionsFor, buttonsFor, closeDialog } from "./actions.js";
import { createStudy } from "./create.js";
import { ago, b, clockTime, count, drawn, h, lasting, show } from "./dom.js";
import { listView } from "./list.js";
import { latest, workers } from "./record.js";

const [OFTEN, SELDOM, HIDDEN, LONGEST] = [2000, 5000, 60_000, 60_000]; // milliseconds between two looks
const EVERY = { forecast: 60_000, course: 5000 }; // what takes the service long
const OPEN_TRIALS = 100;

const $ = (id) => document.getElementById(id);
/** Of a study before anything of it is known. */
const unknown = () => ({
  page: null,
  tag: null,
  trials: [],
  asked: {},
  trouble: null,
  failures: 0,
});
const state = {
  route: null,
  role: null,
  filter: "all",
  pages: 1,
  list: null,
  ...unknown(),
  since: null,
  seen: null,
  nextAt: 0,
};
let timer = 0;
let looking = false;

// --- where we are

const routeOf = () => {
  const found = /^#\/study\/(.+)$/.exec(location.hash);
  return { study: found ? decoded(found[1]) : null };
};

function moved() {
  if (location.hash === "#view" && state.route) {
    history.replaceState(
      null,
      "",
      state.route?.study == null ? "#/" : `#/study/${encodeURIComponent(state.route.study)}`,
    );
    $("view").focus();
    return;
  }
  if (takeToken()) state.role = null;
  const first = state.route === null;
  Object.assign(state, {
    route: routeOf(),
    ...unknown(),
    news: null,
  });
  closeDialog();
  draw();
  if (!first) {
    scrollTo(0, 0);
    focusView();
  }
  refresh();
}

// --- looking

/** One request at a time; a wish to look that comes meanwhile is granted right after. */
async function refresh() {
  clearTimeout(timer);
  if (looking) {
    looking = "again";
    return;
  }
  looking = true;
  const { route } = state;
  try {
    if (hasToken()) await look(route);
    if (route === state.route)
      Object.assign(state, { trouble: null, failures: 0, since: null, seen: Date.now() });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (route === state.route)
      Object.assign(state, {
        trouble: error,
        failures: state.failures + 1,
        since: state.since ?? Date.now(),
      });
  } finally {
    const again = looking === "again";
    looking = false;
    try {
      draw();
    } finally {
      schedule(again && !state.trouble ? 0 : pace());
    }
  }
}

function pace() {
  if (!hasToken() || [401, 403, 404].includes(state.trouble?.status)) return HIDDEN;
  if (state.trouble) return Math.min(LONGEST, OFTEN * 2 ** Math.min(5, state.failures - 1));
  if (document.hidden) return HIDDEN;
  return state.page?.summary.state === "measuring" ? OFTEN : SELDOM;
}

function schedule(wait) {
  state.nextAt = Date.now() + wait;
  clearTimeout(timer);
  timer = setTimeout(refresh, wait);
}

async function look(route) {
  if (!state.role) state.role = (await request("GET", "/api/studies?limit=1")).role;
  await (route.study == null ? lookAtAll(route) : lookAtStudy(route));
}

async function lookAtAll(route) {
  const studies = [];
  let next = "";
  for (let page = 0; page < state.pages && next !== null; page++) {
    const found = await request("GET", `/api/studies?limit=100&after=${encodeURIComponent(next)}`);
    studies.push(...found.studies);
    next = found.next;
    state.role = found.role;
  }
  if (route === state.route) state.list = { studies, next, role: state.role };
}

async function lookAtStudy(route) {
  const found = await poll(studyPath(route.study, "fragments"), state.tag);
  if (found && route === state.route) {
    const { summary } = found.content;
    const trials =
      summary.open > 0
        ? (await request("GET", `${studyPath(route.study, "trials")}?state=open&limit=${OPEN_TRIALS}`)).trials
        : [];
    if (route !== state.route) return;
    tellNews(state.page?.summary, summary);
    Object.assign(state, { page: found.content, tag: found.tag, trials });
  }
  for (const what of state.page?.wanted ?? []) think(route, what);
}

/** What takes the service seconds: seldom, and beside the polls; it is in the fragments then. */
async function think(route, what) {
  const { asked } = state;
  if (Date.now() - (asked[what] ?? 0) < EVERY[what]) return;
  asked[what] = Date.now();
  try {
    await request("GET", studyPath(route.study, what));
    if (route === state.route) refresh();
  } catch (error) {
    if (!(error instanceof Problem)) throw error; // a refusal is for the next time
  }
}

const news = (text) => {
  $("news").textContent = text;
};

/** Say aloud what matters and nothing else: a screen reader must not read every poll. */
function tellNews(before, after) {
  if (!before) return;
  if (before.state !== after.state)
    news(
      after.answer.certified
        ? `${after.answer.arm} is the answer, certified.`
        : `The study is now: ${after.state}.`,
    );
  else if (before.answer.arm !== after.answer.arm) news(`The answer so far is now ${after.answer.arm}.`);
  else if (before.settling !== after.settling) news(`Now being settled: ${after.settling}.`);
}

// --- drawing

/** Whose place another view takes, the focus goes to that one. */
function draw() {
  const view = $("view");
  const heading = view.querySelector("h1");
  const within = view.contains(document.activeElement);
  drawAll();
  if (within && !view.contains(document.activeElement) && !heading?.isConnected) focusView();
}

function focusView() {
  const view = $("view");
  (view.querySelector("#token") ?? view.querySelector("h1") ?? view).focus({ preventScroll: true });
}

function drawAll() {
  const { route, trouble, page, list } = state;
  document.title =
    route?.study == null
      ? "Studies: lexbandits"
      : `${route.study}${page ? `, ${page.summary.called.toLowerCase()}` : ""}: lexbandits`;
  show($("top"), top());
  show($("notice"), notice());
  if (!hasToken() || trouble?.status === 401) return drawSignIn();
  if (trouble?.status === 404)
    return show(
      $("view"),
      blank(
        "There is no such study.",
        "It may have been deleted, or its name is another.",
        h("a", { class: "btn", href: "#/" }, "All studies"),
      ),
    );
  if (route.study == null) return list ? show($("view"), listView(list, state.filter)) : drawWaiting();
  return page ? show($("view"), studyView(state)) : drawWaiting();
}

function studyView({ page, trials, role }) {
  const { summary, fragments, turns } = page;
  return [
    h(
      "section",
      { class: "head", "data-key": "head", "aria-label": "The answer" },
      h("div", null, drawn(fragments.head)),
      h("div", { class: "acts", role: "group", "aria-label": "Actions" }, buttonsFor(summary, role)),
    ),
    drawn(fragments.strip),
    drawn(fragments.ladder),
    h("div", { class: "two", "data-key": "figures" }, drawn(fragments.figures), latest(summary, turns)),
    drawn(fragments.stories),
    workers(summary, trials, role),
    h(
      "p",
      { class: "end", "data-key": "end" },
      [
        `event ${count(summary.seq)}`,
        `δ = ${summary.delta}`,
        `lease ${summary.lease}`,
        `since ${clockTime(summary.created)}`,
      ].join(" · "),
    ),
  ];
}

const blank = (title, text, ...more) =>
  h(
    "section",
    { class: "blank", "data-key": title },
    h("h1", { class: "say", tabindex: -1 }, title),
    h("p", { class: "sub" }, text),
    h("p", null, more),
  );

function drawWaiting() {
  const { trouble } = state;
  if (trouble)
    return show(
      $("view"),
      blank(
        trouble.status ? "The service refused." : "The service cannot be reached.",
        `${trouble.message}.`,
        h("button", { class: "btn", "data-do": "retry" }, "Try again"),
      ),
    );
  const bar = (height) => h("div", { class: "bone", style: `height:${height}px` });
  return show(
    $("view"),
    h(
      "section",
      { "aria-busy": "true", class: "waiting", "data-key": "waiting" },
      h("h1", { class: "unseen", tabindex: -1 }, "Loading"),
      bar(60),
      bar(72),
      bar(380),
      bar(220),
    ),
  );
}

function drawSignIn() {
  const refused = state.trouble?.status === 401 && hasToken();
  const place = $("view");
  if (!place.querySelector("#signin")) {
    place.replaceChildren(
      h(
        "section",
        { class: "blank", "data-key": "signin" },
        h("h1", { class: "say", tabindex: -1 }, "Which token do you have?"),
        h(
          "p",
          { class: "sub" },
          "The address that lexbandits serve prints at its start has one in it. Otherwise an administrator makes one: ",
          h("code", null, "lexbandits token create NAME --role read"),
          ".",
        ),
        h(
          "form",
          { id: "signin" },
          h(
            "div",
            { class: "field" },
            h("label", { for: "token" }, "Token"),
            h("input", {
              id: "token",
              name: "token",
              type: "password",
              autocomplete: "off",
              spellcheck: "false",
              "aria-describedby": "token-alert",
              placeholder: "lb_…",
            }),
          ),
          h("p", { class: "alert", role: "alert", id: "token-alert" }),
          h("button", { class: "btn pri" }, "Open"),
          h("p", { class: "hint" }, "It is kept in this tab until you close it."),
        ),
      ),
    );
  }
  if (refused) {
    $("token-alert").textContent = "This token is not known here, or it was revoked.";
    forgetToken();
  }
}

function top() {
  const { route, page, role, trouble } = state;
  const live = !hasToken()
    ? null
    : trouble
      ? h("span", { class: "warnt" }, "Not connected")
      : page?.summary.ended
        ? `Ended ${clockTime(page.summary.ended)}`
        : [
            h("span", { class: "pulse", "aria-hidden": "true" }),
            "Live",
            h("span", { class: "hide" }, page ? `, changed ${ago(page.summary.changed)}` : ""),
          ];
  return h(
    "nav",
    { class: "wrap", "aria-label": "Where you are" },
    h("a", { href: "#/" }, b("lexbandits")),
    h("span", { "aria-hidden": "true" }, "/"),
    h("a", { href: "#/", "aria-current": route?.study == null ? "page" : null }, "Studies"),
    route?.study != null && [
      h("span", { "aria-hidden": "true" }, "/"),
      h("b", { class: "here", "aria-current": "page" }, route.study),
    ],
    h("span", { class: "sp" }),
    h("span", { class: "live" }, live),
    role &&
      hasToken() &&
      h(
        "span",
        { class: "who" },
        `${role} access`,
        h("button", { class: "link", "data-do": "leave" }, "Leave"),
      ),
  );
}

function notice() {
  const { trouble, since, page, list, seen } = state;
  if (!trouble || trouble.status === 401 || trouble.status === 404 || !(page || list)) return null;
  const what = trouble.status
    ? `The service refused: ${trouble.message}.`
    : `Not connected for ${lasting(Date.now() - since)}: ${trouble.message}.`;
  return h(
    "div",
    { class: "notice", role: "alert" },
    h(
      "div",
      { class: "wrap" },
      h("span", { class: "warnt" }, `${what} What you see is from ${seen ? clockTime(seen) : "before"}.`),
      h("button", { class: "btn sm", "data-do": "retry" }, "Try now"),
    ),
  );
}

// --- what people do here

const here = {
  retry: () => refresh(),
  filter: ({ filter }) => {
    state.filter = filter;
    draw();
  },
  create: () => createStudy(news),
  "more-studies": () => {
    state.pages += 1;
    refresh();
  },
  leave: () => {
    forgetToken();
    Object.assign(state, { role: null, list: null, ...unknown() });
    draw();
    $("token")?.focus();
  },
};

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!event.target.closest("details.menu > summary")) menu.open = false;
  }
  const button = event.target.closest("[data-do]");
  if (!button) return;
  const act = here[button.dataset.do] ?? actionsFor(state, news, refresh)[button.dataset.do];
  act?.(button.dataset);
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "signin") return;
  event.preventDefault();
  const token = event.target.elements.token.value.trim();
  if (!token) return;
  keepToken(token);
  Object.assign(state, { role: null, list: null, ...unknown() });
  draw();
  refresh();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
addEventListener("online", refresh);
addEventListener("hashchange", moved);
setInterval(() => {
  if (!document.hidden && state.page && hasToken()) draw();
}, 5000); // times pass without a change
moved();
