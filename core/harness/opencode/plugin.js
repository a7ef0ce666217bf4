// Reporter of the-loop inside OpenCode's terminal program, written for one instance of one session (a TUI plugin).
// It must never hold up or break the harness. It tells by files in the spool what happens in the conversation that the
// terminal shows: one JSON object a file, in Claude Code's names of events. It answers two kinds of permission by
// itself (our own tools, and reading our own folder), and hands over what a person answers in a chat.
import fs from "node:fs"
import { spawn } from "node:child_process"

const own = "@own@"
own.resumes = process.env.THE_LOOP_OPENCODE_SESSION ?? ""
const FINISHED = (message) => Boolean(message.time?.completed) && !["tool-calls", "unknown"].includes(message.finish ?? "")
const LONGEST = 8 << 20 // characters of a text in a report

let last = 0n
let session = "" // the conversation that the terminal shows
let ready = false
let turn = "" // the running turn: the id of the message that began it
let over = null // its latest answer, once the model has finished
let failure = null // what the harness says of the running turn's error
let silent = false // the running turn was ended in the terminal
let deaf = false // no line of the terminal has the focus
let written = "" // what the status file holds
const children = new Map() // conversations of subagents -> their parent
const made = new Set() // conversations that this process began
const roles = new Map() // message -> "user" or "assistant"
const texts = new Map() // message -> its parts' texts, by part
const waiting = new Map() // messages of people that no turn has taken yet -> text
const tools = new Map() // tool calls that run -> name
const asked = new Map() // open requests -> the agent that waits, and the client that asks a person

// The first process that loads this file is the session's. A program that the agent starts inherits our variables.
function claimed() {
  try {
    fs.writeFileSync(own.claim, String(process.pid), { flag: "wx", mode: 0o600 })
    return true
  } catch {
    try {
      return fs.readFileSync(own.claim, "utf8") === String(process.pid)
    } catch {
      return false
    }
  }
}

function quietly(step) {
  try {
    return step()
  } catch {
    return undefined // the session's folder is gone: whoever ended the session wants no reports
  }
}

function report(event, payload) {
  const now = BigInt(Date.now()) * 1000000n
  last = now > last ? now : last + 1n
  const name = `${last}-${process.pid}-${event}`
  const temporary = `${own.spool}/.${name}.tmp`
  quietly(() => {
    fs.writeFileSync(temporary, JSON.stringify({ hook_event_name: event, session_id: session, ...payload }), { mode: 0o600 })
    fs.renameSync(temporary, `${own.spool}/${name}.json`)
    poke()
  })
  return name
}

function poke() {
  const pipe = fs.openSync(own.poke, fs.constants.O_RDWR | fs.constants.O_NONBLOCK)
  try {
    fs.writeSync(pipe, ".")
  } catch {
    // it is full: the service has enough to read
  } finally {
    fs.closeSync(pipe)
  }
}

// The marker that keeps others from typing: while a dialog is open, and while no line of the terminal reads. That is so
// for a moment when a conversation begins, and what is typed then is lost without a trace.
function mark() {
  const agents = [...(deaf ? ["main"] : []), ...[...asked.values()].map((each) => each.agent)].map((each) => `+${each}\n`).join("")
  quietly(() => (agents ? fs.writeFileSync(own.asking, agents, { mode: 0o600 }) : fs.rmSync(own.asking, { force: true })))
}

const textOf = (message) => [...(texts.get(message)?.values() ?? [])].join("\n").slice(0, LONGEST)
const ofAgent = (id) => (id === session ? {} : { agent_id: id })

function enter(id, source) {
  if (id === session && ready) return
  if (id !== session) {
    turn = ""
    over = failure = null
    silent = false
    waiting.clear()
    tools.clear()
  }
  session = id
  ready = true
  report("SessionStart", { source })
}

const sourceOf = (id) => (!made.has(id) ? "resume" : session ? "clear" : "startup")

function ended() {
  if (!turn) return
  const answer = over ? textOf(over) : ""
  if (failure && !silent) report("StopFailure", { prompt_id: turn, ...failure })
  else report("Stop", { prompt_id: turn, last_assistant_message: silent ? "" : answer, cut_off: silent })
  turn = ""
  over = failure = null
  silent = false
  tools.clear()
}

function said(message, text) {
  waiting.set(message, text)
  report("UserPromptSubmit", { prompt: text, prompt_id: turn || message })
  if (!turn) turn = message
}

// The model works on the messages up to this one: those that came in the middle of a turn begin the next one, or join.
function takes(message) {
  const taken = [...waiting.keys()].filter((each) => each <= message)
  if (turn && message !== turn && over) {
    ended()
    turn = message
    for (const each of taken) report("UserPromptSubmit", { prompt: waiting.get(each), prompt_id: turn })
  }
  if (!turn) turn = message
  for (const each of taken) waiting.delete(each)
}

function onMessage({ info }) {
  const fresh = !roles.has(info.id)
  roles.set(info.id, info.role)
  if (info.role === "user") {
    if (info.sessionID !== session && !children.has(info.sessionID)) enter(info.sessionID, sourceOf(info.sessionID))
    return
  }
  if (info.sessionID !== session) return
  if (fresh && info.parentID && !info.error && !info.time?.completed) takes(info.parentID)
  if (!turn || info.parentID < turn) return // news of a turn that is over: a failed one's message is written once more
  if (FINISHED(info) && !info.summary) over = info.id // what a compaction has written is no answer
  if (info.error) failed(info.error)
}

function failed(error) {
  if (!turn) return
  if (error.name === "MessageAbortedError") silent = true
  else failure = { error: String(error.name ?? "error"), message: String(error.data?.message ?? ""), status: error.data?.statusCode }
}

function onPart({ part }) {
  if (part.sessionID !== session) return
  if (part.type === "tool") return onTool(part)
  if (part.type !== "text" || part.synthetic || part.ignored) return
  const parts = texts.get(part.messageID) ?? new Map()
  const first = parts.size === 0
  texts.set(part.messageID, parts.set(part.id, part.text))
  if (roles.get(part.messageID) === "user" && first) said(part.messageID, part.text)
}

// An interruption ends the turn before its tool: what comes of that tool afterwards is no work. Nor is a question, which
// may have been reported as a dialog before its tool runs.
function onTool({ callID, tool, state }) {
  if (!turn) return
  const over = state.status === "completed" || state.status === "error"
  if (!over && state.status === "running" && !tools.has(callID)) {
    tools.set(callID, tool)
    quietly(() => fs.writeFileSync(own.tool, "\n", { mode: 0o600 }))
    if (tool !== "question") report("PreToolUse", { tool_name: tool, tool_input: state.input ?? {}, prompt_id: turn })
  } else if (over && tools.delete(callID)) {
    report("PostToolUse", { tool_name: tool, prompt_id: turn })
  }
}

// What needs nobody: our own tools, and reading what was too long to paste, in our folder.
function isOurs(request) {
  const patterns = request.patterns ?? []
  if (request.permission.startsWith(own.tools)) return true
  const inside = (pattern) => pattern.startsWith(`${own.folder}/`) && !pattern.includes("..")
  return request.permission === "external_directory" && patterns.length > 0 && patterns.every(inside)
}

function onPermission(api, request) {
  if (isOurs(request)) return void api.client.permission.reply({ requestID: request.id, reply: "once" }).catch(() => {})
  const given = { ...request.metadata, patterns: request.patterns }
  const settle = (decision) => {
    const reply = decision.behavior === "allow" ? "once" : "reject"
    return api.client.permission.reply({ requestID: request.id, reply, ...(reply === "reject" ? { message: decision.message } : {}) })
  }
  ask(request, { tool_name: request.permission, tool_input: given }, settle)
}

function onQuestion(api, request) {
  const questions = request.questions.map((each) => ({ ...each, multiSelect: Boolean(each.multiple) }))
  const settle = (decision) => {
    if (decision.behavior !== "allow") return api.client.question.reject({ requestID: request.id })
    const given = decision.updatedInput?.answers ?? {}
    const chosen = ({ question, options, multiSelect }) => {
      const words = String(given[question] ?? "")
      const labels = options.map((option) => option.label)
      if (labels.includes(words) || !multiSelect) return [words]
      const several = words.split(", ")
      return several.every((each) => labels.includes(each)) ? several : [words]
    }
    return api.client.question.reply({ requestID: request.id, answers: questions.map(chosen) })
  }
  ask(request, { tool_name: "AskUserQuestion", tool_input: { questions } }, settle)
}

// Report the dialog, then let the client wait for a person's answer in a chat. Whoever answers here is first.
function ask(request, payload, settle) {
  const about = { ...ofAgent(request.sessionID), ...payload, prompt_id: turn }
  const open = { agent: request.sessionID === session ? "main" : request.sessionID, client: null, tool: payload.tool_name }
  asked.set(request.id, open)
  mark()
  const name = report("PermissionRequest", about)
  if (!quietly(() => fs.statSync(own.service).isSocket())) return
  const client = spawn(own.python, ["-I", "-S", own.client, own.service, own.instance, name], { stdio: ["pipe", "pipe", "ignore"] })
  open.client = client
  let said = ""
  client.on("error", () => {})
  client.stdin.on("error", () => {})
  client.stdout.on("data", (chunk) => (said += chunk))
  client.on("close", () => {
    if (!asked.has(request.id)) return
    const decision = quietly(() => JSON.parse(said).hookSpecificOutput.decision)
    if (decision) settle(decision).catch(() => {}) // the dialog stays open at the terminal
  })
  client.stdin.end(JSON.stringify({ hook_event_name: "PermissionRequest", session_id: session, ...about }))
}

function onAnswered({ requestID }) {
  const open = asked.get(requestID)
  if (!open) return
  asked.delete(requestID)
  open.client?.kill()
  mark()
  if (turn) report("Answered", { ...(open.agent === "main" ? {} : { agent_id: open.agent }), tool_name: open.tool, prompt_id: turn })
}

function onStatus({ sessionID, status }) {
  if (sessionID !== session || status.type !== "idle") return
  ended()
}

// What the terminal shows, and what its own state says of it: a second source beside the events.
function look(api) {
  const shown = api.route.current
  const id = shown.name === "session" ? (shown.params?.sessionID ?? "") : ""
  const reads = api.renderer.currentFocusedRenderable != null
  if (!ready) {
    if (reads && (!own.resumes || id === own.resumes)) enter(id, own.resumes ? "resume" : "startup")
  } else if (id && id !== session && !children.has(id)) {
    enter(id, sourceOf(id))
  }
  if (!ready) return
  if (deaf === reads) {
    deaf = !reads
    mark()
  }
  const state = session ? api.state.session.status(session) : undefined
  const asks = session ? api.state.session.permission(session).length + api.state.session.question(session).length : 0
  const status = asks ? "waiting" : !state || state.type === "idle" ? "idle" : "busy"
  const retry = state?.type === "retry" ? { attempt: state.attempt, message: state.message } : undefined
  const model = limitOf(api)
  const text = JSON.stringify({ status, sessionId: session, pid: process.pid, retry, contextSize: model })
  if (text === written) return
  written = text
  quietly(() => {
    fs.writeFileSync(`${own.status}.tmp`, text, { mode: 0o600 })
    fs.renameSync(`${own.status}.tmp`, own.status)
  })
}

// The size of the context of the conversation's model, in tokens; undefined where the harness knows none.
function limitOf(api) {
  const latest = [...(session ? api.state.session.messages(session) : [])].reverse().find((each) => each.role === "assistant")
  const provider = latest && api.state.provider.find((each) => each.id === latest.providerID)
  return provider?.models?.[latest.modelID]?.limit?.context || undefined
}

function start(api) {
  const on = (type, step) => api.event.on(type, (event) => quietly(() => step(event.properties)))
  on("session.created", ({ info }) => {
    if (info.parentID) return children.set(info.id, info.parentID)
    made.add(info.id)
    deaf = true
    mark()
  })
  on("message.updated", onMessage)
  on("message.part.updated", onPart)
  on("session.status", onStatus)
  on("session.error", ({ sessionID, error }) => sessionID === session && error && failed(error))
  on("permission.asked", (request) => onPermission(api, request))
  on("question.asked", (request) => onQuestion(api, request))
  for (const type of ["permission.replied", "question.replied", "question.rejected"]) on(type, onAnswered)
  let asked_to_end = false
  for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.prependListener(signal, () => (asked_to_end = true))
  const timer = setInterval(() => quietly(() => look(api)), 100)
  api.lifecycle.onDispose(() => {
    clearInterval(timer)
    report("SessionEnd", { reason: asked_to_end ? "other" : "prompt_input_exit" })
  })
}

export default {
  id: "the-loop",
  tui: async (api) => {
    if (claimed()) start(api)
  },
}
