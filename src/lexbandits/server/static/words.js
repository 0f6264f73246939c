// Numbers and times as people read them.

import { clock } from "./api.js";

const THIN = "\u00a0"; // a unit never stands on a line of its own
const EXACT = 12; // digits: all that was given, none of what binary fractions add
const SMALL = [
  "no",
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
];

const formats = new Map();
function format(digits) {
  if (!formats.has(digits)) {
    const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
    formats.set(digits, new Intl.NumberFormat("en", options));
  }
  return formats.get(digits);
}

const minus = (text) => text.replaceAll("-", "−");

export function number(value, digits = 0) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-7)) return minus(value.toExponential(2));
  const text = minus(format(digits).format(value));
  return /[1-9]/.test(text) ? text : text.replace("−", "");
}

/** A bound: rounded away from what it bounds, so that no more is claimed than was proven. */
export function bound(value, digits, rounded) {
  if (value == null) return "–";
  const exact = value * 10 ** digits;
  const near = Math.round(exact);
  const safe = Math.abs(exact - near) <= 1e-6 ? near : Math[rounded](exact);
  return number(safe / 10 ** digits, digits);
}

export const count = (value) => number(value, 0);
export const withUnit = (text, unit) => (unit ? `${text}${THIN}${unit}` : text);
const percentTo = (share, digits) => `${Number((100 * share).toPrecision(digits))}${THIN}%`;
export const percent = (share) => percentTo(share, EXACT);
export const inWords = (n) => SMALL[n] ?? count(n);
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const plural = (n, one, many = `${one}s`) => (n === 1 ? one : many);

/** As a person would write a number that was given: no digits that say nothing. */
export const given = (value) => minus(String(Number(value.toPrecision(EXACT))));

export function span(low, high, digits) {
  if (low == null && high == null) return "not known yet";
  const [from, to] = [bound(low, digits, "floor"), bound(high, digits, "ceil")];
  if (low == null) return `up to ${to}`;
  if (high == null) return `from ${from}`;
  return low < 0 ? `${from} to ${to}` : `${from}–${to}`;
}

/** One more digit than what matters has. */
export function digitsOf(...steps) {
  const finest = Math.min(...steps.filter((step) => step > 0));
  return Number.isFinite(finest) ? Math.min(8, Math.max(0, Math.ceil(-Math.log10(finest) - 1e-9) + 1)) : null;
}

/** To two digits, for what is only known roughly. */
export const about = (value) => count(Number(value.toPrecision(2)));
export const aboutPercent = (share) => percentTo(share, 2);

export function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

export const now = () => Date.now() + clock.ahead;

export function lasting(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 90) return `${seconds}${THIN}s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)}${THIN}min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)}${THIN}h`;
  return `${Math.round(seconds / 86400)}${THIN}days`;
}

export const ago = (iso) => (iso ? `${lasting(now() - Date.parse(iso))} ago` : "never");

export function clockTime(iso) {
  const time = new Date(iso);
  const hours = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (time.toDateString() === new Date(now()).toDateString()) return hours;
  return `${time.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${hours}`;
}

export const leaseWords = (lease) =>
  lease.replace(
    /^(\d+(?:\.\d+)?)([a-z]+)$/,
    (_, n, unit) => `${n}${THIN}${{ m: "min", d: n === "1" ? "day" : "days" }[unit] ?? unit}`,
  );
