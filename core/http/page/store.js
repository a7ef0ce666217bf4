// What is known of the sessions, and what a row of the list says about one of them.

export const store = {
  sessions: new Map(), // by name: rows of the API
  requests: [],
  status: null,
  view: { page: "list", name: "", tab: "" },
};

export const requestsOf = (name) => store.requests.filter((request) => request.name === name);

const FAILED = new Set(["failed", "unconfirmed", "unreadable", "misconfigured"]);

// The kind of state, and its word: what colour and shape a session has everywhere.
export function stateOf(row) {
  if (requestsOf(row.name).some((request) => request.waits)) return ["asks", "needs an answer"];
  if (FAILED.has(row.outcome)) return ["bad", row.outcome];
  if (row.phase && row.phase !== "settled") return ["working", row.phase];
  if (row.hold?.kind === "failed") return ["bad", "failed"];
  if (row.hold?.kind === "paused") return ["paused", "paused"];
  if (row.running === null) return ["off", "unknown"];
  if (!row.running) {
    if (row.hold?.kind === "stopped" || row.status !== "running") return ["off", row.status ? "stopped" : "not started"];
    return ["bad", row.live === "foreign" ? "foreign session" : "ended"];
  }
  if (["permission", "question", "dialog"].includes(row.activity)) return ["asks", `waits: ${row.activity}`];
  if (row.activity === "busy") return ["working", "working"];
  if (row.activity === "idle") return ["idle", "idle"];
  if (row.activity === "starting") return ["working", "starting"];
  return ["off", "running"];
}

export function doing(row) {
  const [request] = requestsOf(row.name);
  if (request) return request.tool ? `${request.kind}: ${request.tool}` : request.kind;
  const plan = row.working?.plan ?? [];
  const now = plan.find((item) => item.state === "in progress");
  const [kind, word] = stateOf(row);
  if (kind === "bad" && row.detail) return row.detail;
  if (row.activity === "busy" && row.running) {
    if (row.working?.tool) return row.working.tool;
    if (now) return now.text;
  }
  const parts = [word];
  if (row.queued) parts.push(`${row.queued} waiting`);
  if (row.working?.limit) parts.push(row.working.limit.what);
  if (row.description) parts.push(row.description);
  return parts.join(" · ");
}

export const needsAnswer = (row) => stateOf(row)[0] === "asks";

export const wordsOf = (row) => [row.name, row.description, row.harness, row.cwd, ...stateOf(row)].join(" ").toLowerCase();

export const context = (working) => {
  const { used, size } = working?.context ?? {};
  return used ? { used, size, share: size ? used / size : null } : null;
};

export const cost = (working, which = "session") => working?.usage?.[which]?.costUsd ?? null;
