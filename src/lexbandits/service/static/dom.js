// Elements, times, and how a drawn tree takes the place of another without losing focus.

import { clock } from "./api.js";

const GAP = "\u00a0"; // a unit never stands on a line of its own

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child != null && child !== false && child !== ""),
  );
  return element;
}

/** An element; text in it is only ever text. */
export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const b = (...children) => h("b", null, ...children);

export const viewer = { role: null };
const ROLES = ["read", "write", "admin"];

/** A fragment that the service has drawn, and escaped: without what this role may not do, with its times. */
export function drawn(markup) {
  const template = document.createElement("template");
  template.innerHTML = markup;
  for (const element of template.content.querySelectorAll("[data-may]"))
    if (ROLES.indexOf(viewer.role) < ROLES.indexOf(element.dataset.may)) element.remove();
  for (const time of template.content.querySelectorAll("time[data-time]")) TIMES[time.dataset.time](time);
  return [...template.content.childNodes];
}

// --- times

const TIMES = {
  clock: (time) => time.append(clockTime(time.dateTime)),
  ago: (time) => time.append(ago(time.dateTime)),
  left: (time) => {
    const left = Date.parse(time.dateTime) - now();
    if (left <= 0) time.className = "warnt";
    time.append(left > 0 ? `${lasting(left)} left` : `overdue by ${lasting(-left)}`);
  },
};

export const now = () => Date.now() + clock.ahead;

export function lasting(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 90) return `${seconds}${GAP}s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)}${GAP}min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)}${GAP}h`;
  return `${Math.round(seconds / 86400)}${GAP}days`;
}

export const ago = (iso) => (iso ? `${lasting(now() - Date.parse(iso))} ago` : "never");

export function clockTime(iso) {
  const time = new Date(iso);
  const hours = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (time.toDateString() === new Date(now()).toDateString()) return hours;
  return `${time.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${hours}`;
}

// --- one tree in the place of another

/** Make the children of `place` look like `children`; elements that stay the same keep focus and openness. */
export function show(place, ...children) {
  const wanted = document.createElement("div");
  fill(wanted, null, children);
  morphChildren(place, wanted);
}

const keyOf = (node) => (node.nodeType === 1 ? node.getAttribute("data-key") : null);

function alike(a, z) {
  return a.nodeType === z.nodeType && a.nodeName === z.nodeName && keyOf(a) === keyOf(z);
}

function morphChildren(from, to) {
  const kept = new Set([...to.childNodes].map(keyOf));
  for (const node of [...from.childNodes]) if (!kept.has(keyOf(node))) node.remove();
  let next = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    let match = next;
    while (match && !alike(match, wanted)) match = match.nextSibling;
    if (!match) {
      from.insertBefore(wanted, next);
      continue;
    }
    if (match === next) next = next.nextSibling;
    else if (keyOf(wanted) === null) {
      while (next !== match) next = drop(next);
      next = match.nextSibling;
    } else from.insertBefore(match, next);
    morph(match, wanted);
  }
  while (next) next = drop(next);
}

function drop(node) {
  const following = node.nextSibling;
  node.remove();
  return following;
}

function morph(from, to) {
  if (from.nodeType !== 1) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  morphChildren(from, to);
  if ("value" in to && from.matches("input, select") && from !== document.activeElement) from.value = to.value;
}
