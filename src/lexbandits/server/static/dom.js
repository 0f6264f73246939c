// Elements, and how a drawn tree takes the place of another without losing focus. Text is only ever text.

const SVG = "http://www.w3.org/2000/svg";

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

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export const b = (...children) => h("b", null, ...children);

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
}
