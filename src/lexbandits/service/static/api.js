// Requests to the service. The token lives in this tab only: sessionStorage, never an address or a cookie.

const KEPT = "lexbandits-token";
const PATIENCE = 30_000;

export class Problem extends Error {
  /** `status` is 0 when there was no answer at all; after how many seconds to ask again, if that was said. */
  constructor(status, detail, after = 0) {
    super(detail);
    Object.assign(this, { status, after });
  }
}

export const clock = { ahead: 0 }; // milliseconds by which the service's clock is ahead of this one

export const hasToken = () => sessionStorage.getItem(KEPT) !== null;
export const keepToken = (token) => sessionStorage.setItem(KEPT, token);
export const forgetToken = () => sessionStorage.removeItem(KEPT);

/** Null if that cannot be decoded. */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Take the token out of the address bar, where it would be copied along and kept in the history. */
export function takeToken() {
  const found = /^#token=([^&]+)/.exec(location.hash);
  if (!found) return false;
  keepToken(decoded(found[1]) ?? found[1]);
  history.replaceState(null, "", `${location.pathname}#/`);
  return true;
}

export const studyPath = (name, ...more) =>
  ["/api/studies", ...[name, ...more].map((part, i) => (i % 2 ? part : encodeURIComponent(part)))].join("/");

const unanswered = (error, words) =>
  new Problem(0, error.name === "TimeoutError" ? "no answer within 30 s" : words);

async function send(method, path, body, headers, signal = AbortSignal.timeout(PATIENCE)) {
  const token = sessionStorage.getItem(KEPT);
  const sent = { Accept: "application/json", ...headers };
  if (token) sent.Authorization = `Bearer ${token}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: sent,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    throw unanswered(error, "the service cannot be reached");
  }
  const date = Date.parse(answer.headers.get("date") ?? "");
  if (!Number.isNaN(date)) clock.ahead = Math.abs(date - Date.now()) < 2000 ? 0 : date - Date.now();
  if (!answer.ok && answer.status !== 304) {
    const words = await answer.json().catch(() => ({}));
    const after = Number(answer.headers.get("retry-after")) || 0;
    throw new Problem(answer.status, words.detail ?? answer.statusText, after);
  }
  return answer;
}

/** What is in an answer: a part of it is as good as none. */
const whole = (content) =>
  content.catch((error) => {
    throw unanswered(error, "the answer broke off");
  });

export async function request(method, path, body, headers) {
  const answer = await send(method, path, body, headers);
  return answer.status === 204 ? null : whole(answer.json());
}

/** What has changed since `tag`: null if nothing has. */
export async function poll(path, tag) {
  const answer = await send("GET", path, undefined, tag ? { "If-None-Match": tag } : {});
  if (answer.status === 304) return null;
  return { tag: answer.headers.get("etag"), content: await whole(answer.json()) };
}

/** An answer that must begin in time, but may take as long as it is. */
async function begun(path) {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(new DOMException("too late", "TimeoutError")), PATIENCE);
  try {
    return await send("GET", path, undefined, { Accept: "*/*" }, patience.signal);
  } finally {
    clearTimeout(timer);
  }
}

export async function download(path, name) {
  const answer = await begun(path);
  const url = URL.createObjectURL(await whole(answer.blob()));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A key under which a repeated request is done once. randomUUID exists on secure origins only. */
export function onceKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
