// Shapes that stand for states; colour only repeats what they and their words say.

import { h, s } from "./dom.js";

const icon = (size, box, ...shapes) =>
  s(
    "svg",
    { width: size, height: size, viewBox: `0 0 ${box} ${box}`, "aria-hidden": "true", class: "ic" },
    shapes,
  );

const stroke = (d, width) => s("path", { d, fill: "none", stroke: "currentColor", "stroke-width": width });

export const tick = () => icon(12, 12, stroke("M2 6.4 4.8 9.2 10 3.4", 1.8));
export const warning = () =>
  icon(
    13,
    13,
    s("path", {
      d: "M6.5 1 12.3 11.6H.7z",
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.3,
      "stroke-linejoin": "round",
    }),
    stroke("M6.5 4.8v3.2M6.5 9.3v1", 1.3),
  );
const half = () =>
  icon(
    11,
    11,
    s("circle", { cx: 5.5, cy: 5.5, r: 4.6, fill: "none", stroke: "currentColor", "stroke-width": 1.4 }),
    s("path", { d: "M5.5 .9a4.6 4.6 0 0 1 0 9.2z", fill: "currentColor" }),
  );
const bars = () => icon(10, 10, stroke("M3 1v8M7 1v8", 2));
const square = () =>
  icon(
    10,
    10,
    s("rect", {
      x: 1.5,
      y: 1.5,
      width: 7,
      height: 7,
      fill: "none",
      stroke: "currentColor",
      "stroke-width": 1.5,
    }),
  );

/** The state of a study: shape and word. */
export function pill(state, certified, flags) {
  const sure = flags.length ? "Certified, with flags" : "Certified";
  if (state === "finished" && certified) return h("span", { class: "pill ok" }, tick(), sure);
  if (state === "finished") return h("span", { class: "pill" }, square(), "Ended, no certificate");
  if (state === "measuring") return h("span", { class: "pill on" }, half(), "Measuring");
  if (state === "paused") return h("span", { class: "pill" }, bars(), "Paused");
  return h("span", { class: "pill" }, square(), state.charAt(0).toUpperCase() + state.slice(1));
}

export const attention = (...words) => h("span", { class: "warnt" }, warning(), ...words);

/** A mean with its interval on an axis; `look` is in, later or out. */
export function whisker(axis, { mean, low, high }, y, look, ringed = false) {
  if (!axis || mean == null) return [];
  const line = { class: `mark ${look}` };
  const known = [low ?? axis.from, high ?? axis.to];
  const cap = (value) =>
    value != null &&
    value >= axis.from &&
    value <= axis.to &&
    s("line", { ...line, x1: axis.x(value), x2: axis.x(value), y1: y - 4, y2: y + 4 });
  return [
    s("line", { ...line, x1: axis.x(known[0]), x2: axis.x(known[1]), y1: y, y2: y }),
    cap(low),
    cap(high),
    s("circle", { class: `dot ${look}`, cx: axis.x(mean), cy: y, r: 4 }),
    ringed && s("circle", { class: "halo", cx: axis.x(mean), cy: y, r: 7 }),
  ];
}

/** A band on an axis from `top` down; ends beyond the axis are cut. */
export function band(axis, [low, high], top, height, style = "band") {
  const [from, to] = [axis.share(low), axis.share(high)];
  return s("rect", {
    class: style,
    x: `${from.toFixed(2)}%`,
    width: `${Math.max(0.4, to - from).toFixed(2)}%`,
    y: top,
    height,
  });
}
