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
import { actionsFor, closeDialog } from "./actions.js";
import { createStudy } from "./create.js";
import { ago, b, clockTime, drawn, h, lasting, show, viewer } from "./dom.js";

const [OFTEN, SELDOM, HIDDEN, LONGEST] = [2000, 5000, 60_000, 60_000]; // milliseconds between two looks
const EVERY = { forecast: 60_000, course: 5000 }; // what takes the service long
const PAUSE = 250; // milliseconds after which what is typed is searched for

const $ = (id) => document.getElementById(id);
/** Of a study before anything of it is known. */
const unknown = () => ({
  page: null,
  tag: null,
  asked: {},
  trouble: null,
  failures: 0,
});
const state = {
  route: null,
  ...unknown(),
  since: null,
  seen: null,
  nextAt: 0,
};
let timer = 0;
let looking = false;

// --- where we are

/** All that a view shows is in its address, which can be shared: the study, what is searched for, which page. */
const routeOf = () => {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const found = /^\/study\/([^/]+)(\/trials)?$/.exec(path);
  const study = found ? decoded(found[1]) : null;
  const asked = query && `?${new URLSearchParams(query)}`;
  const from = study == null
    ? path === "/compare"
      ? "/api/fragments/comparison"
      : "/api/fragments/studies"
    : studyPath(study, found[2] ? "fragments/trials" : "fragments");
  return { study, path, hash: location.hash, from, asked };
};

function moved() {
  if (location.hash === "#view" && state.route) {
    history.replaceState(null, "", state.route.hash || "#/");
    $("view").focus();
    return;
  }
  if (takeToken()) viewer.role = null;
  const before = state.route;
  const route = routeOf();
  if (before?.path === route.path) {
    Object.assign(state, { route, tag: null, trouble: null }); // the same view, of other rows
    refresh();
    return;
  }
  Object.assign(state, { route, ...unknown() });
  closeDialog();
  draw();
  if (before) {
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
  return state.page?.summary?.state === "measuring" ? OFTEN : SELDOM;
}

function schedule(wait) {
  state.nextAt = Date.now() + wait;
  clearTimeout(timer);
  timer = setTimeout(refresh, wait);
}

async function look(route) {
  if (!viewer.role) viewer.role = (await request("GET", "/api/studies?limit=1")).role;
  const found = await poll(`${route.from}${route.asked}`, state.tag);
  if (found && route === state.route) {
    tellNews(state.page?.summary, found.content.summary);
    Object.assign(state, { page: found.content, tag: found.tag });
  }
  for (const what of state.page?.wanted ?? []) analyse(route, what);
}

/** What takes the service seconds: seldom, and beside the polls; it is in the fragments then. */
async function analyse(route, what) {
  const { asked } = state;
  if (Date.now() - (asked[what] ?? 0) < EVERY[what]) return;
  asked[what] = Date.now();
  try {
    await request("GET", studyPath(route.study, what));
    if (route === state.route) refresh();
  } catch (error) {
    if (!(error instanceof Problem)) throw error; // a refusal is for the next time
    if (error.after) asked[what] = Date.now() + Math.min(error.after * 1000 - EVERY[what], 0);
  }
}

const news = (text) => {
  $("news").textContent = text;
};

/** Say aloud what matters and nothing else: a screen reader must not read every poll. */
function tellNews(before, after) {
  if (!before || !after) return;
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
  const { route, trouble, page } = state;
  const called = page?.wanted ? `${route.study}, ${page.summary.badge.toLowerCase()}` : page?.title;
  document.title = `${called ?? route?.study ?? "Studies"}: lexbandits`;
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
  return page ? show($("view"), drawn(Object.values(page.fragments).join(""))) : drawWaiting();
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
  const { route, page, trouble } = state;
  const live = !hasToken() || trouble?.status === 404
    ? null
    : trouble
      ? h("span", { class: "warnt" }, trouble.status ? "Refused" : "Not connected")
      : page?.summary?.ended
        ? `Ended ${clockTime(page.summary.ended)}`
        : [
            h("span", { class: "pulse", "aria-hidden": "true" }),
            "Live",
            h("span", { class: "hide" }, page?.summary ? `, changed ${ago(page.summary.changed)}` : ""),
          ];
  return h(
    "nav",
    { class: "wrap", "aria-label": "Where you are" },
    h("a", { href: "#/" }, b("lexbandits")),
    h("span", { "aria-hidden": "true" }, "/"),
    h("a", { href: "#/", "aria-current": route?.study == null ? "page" : null }, "Studies"),
    route?.study != null && [
      h("span", { "aria-hidden": "true" }, "/"),
      h("a", { class: "here", href: `#/study/${encodeURIComponent(route.study)}`, "aria-current": "page" }, b(route.study)),
    ],
    h("span", { class: "sp" }),
    h("span", { class: "live" }, live),
    viewer.role &&
      hasToken() &&
      h(
        "span",
        { class: "who" },
        `${viewer.role} access`,
        h("button", { class: "link", "data-do": "leave" }, "Leave"),
      ),
  );
}

function notice() {
  const { trouble, since, page, seen } = state;
  if (!trouble || trouble.status === 401 || trouble.status === 404 || !page) return null;
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
  create: () => createStudy(news),
  leave: () => {
    forgetToken();
    viewer.role = null;
    Object.assign(state, unknown());
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
/** What a view is asked for is in its address. */
function ask(words, replaced) {
  const query = new URLSearchParams(Object.entries(words).filter(([, word]) => word !== ""));
  const hash = `#${state.route.path || "/"}${query.size ? `?${query}` : ""}`;
  if (!replaced) location.hash = hash;
  else {
    history.replaceState(null, "", hash);
    moved();
  }
}
document.addEventListener("change", (event) => {
  const form = event.target.closest("#filters");
  if (form) ask(Object.fromEntries(new FormData(form)));
});
let typing = 0;
document.addEventListener("input", (event) => {
  if (event.target.id !== "search") return;
  clearTimeout(typing);
  const others = new URLSearchParams(state.route.asked);
  typing = setTimeout(() => ask({ search: event.target.value.trim(), show: others.get("show") ?? "" }, true), PAUSE);
});
document.addEventListener("submit", (event) => {
  if (event.target.method !== "dialog") event.preventDefault();
  if (event.target.id !== "signin") return;
  const token = event.target.elements.token.value.trim();
  if (!token) return;
  keepToken(token);
  viewer.role = null;
  Object.assign(state, unknown());
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
