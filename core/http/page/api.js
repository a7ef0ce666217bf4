// What the page asks of the service. The key is in the storage of this origin, the cookie is out of every script's reach.

const HEADER = "X-The-Loop-Key";
const STORED = "the-loop-key";
let lock = () => {};

export class Refusal extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.remedy = error.remedy;
  }
  get told() {
    return this.remedy ? `${this.message}. ${this.remedy[0].toUpperCase()}${this.remedy.slice(1)}` : this.message;
  }
}

export class Unreachable extends Error {
  constructor() {
    super("The service does not answer");
    this.told = this.message;
  }
}

export const onLocked = (does) => { lock = does; };
export const hasKey = () => localStorage.getItem(STORED) !== null;
export const forget = () => localStorage.removeItem(STORED);

async function asked(path, options = {}) {
  const headers = { [HEADER]: localStorage.getItem(STORED) ?? "", ...options.headers };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, credentials: "same-origin", redirect: "error" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Unreachable();
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  const error = body.error ?? { code: "http", message: `The service answered ${answer.status}`, remedy: "" };
  if (answer.status === 401) lock();
  throw new Refusal(answer.status, error);
}

export async function get(path, query = {}, signal = undefined) {
  const parts = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null));
  const answer = await asked(`/api/v1${path}${parts.size ? `?${parts}` : ""}`, { signal });
  return answer.json();
}

const json = (body) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(body),
});

export const post = async (path, body) => (await asked(`/api/v1${path}`, json(body))).json();
export const own = async (path, body) => (await asked(path, json(body))).json();

export async function login(key) {
  const { key: made } = await own("/page/login", { key });
  localStorage.setItem(STORED, made);
}

// Yields the lines of a stream as they come, until it ends or is aborted.
export async function* lines(path, headers, signal) {
  const answer = await asked(path, { headers, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts;
  }
}

// Calls `does` with each event of the log from now on, and `state` with whether the stream is up; begins again by itself.
export async function follow(does, state, signal) {
  let last = null;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
      let id = null;
      for await (const line of lines("/api/v1/events?answers=true", headers, signal)) {
        state(true);
        if (line.startsWith("id: ")) id = line.slice(4);
        else if (line.startsWith("data: ") && id !== null) {
          last = id;
          does({ id, ...JSON.parse(line.slice(6)) });
        }
        if (line === "") {
          if (id !== null) last = id;
          id = null;
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === "invalid_value") last = null;
      if (error.status === 401) return;
    }
    state(false);
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}
