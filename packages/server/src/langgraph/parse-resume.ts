/** Value of `command.resume` as answers by the id of the interrupt. */
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import { createInputProblem } from "./create-problem.ts";
import { isRecord } from "./is-record.ts";
import { decisionTypes, type PendingCall, type WireInterrupt } from "./to-wire-interrupts.ts";

/** Answers by the id of the interrupt. */
export type WireAnswers = Record<string, unknown>;

const pointer = "/command/resume";

/**
 * Reads a resume value: one value for the only interrupt, `{ decisions }` for approvals, values by the id of the
 * interrupt, or results by the id of a tool call. Throws a problem for a value that fits none of the open interrupts.
 */
export function parseResume(value: unknown, open: readonly WireInterrupt[]): WireAnswers {
  if (open.length === 0) throw createNotWaitingProblem();
  const byId = isRecord(value) ? parseAnswersById(value, open) : undefined;
  if (byId !== undefined) return byId;
  const [only, ...others] = selectAddressees(value, open);
  if (only === undefined || others.length > 0) throw createAmbiguityProblem(open);
  return parseAnswer(value, only);
}

function createNotWaitingProblem(): RequestProblem {
  const detail = "The thread waits for no answer: its interrupts have answers, or it never had one.";
  return new RequestProblem(createProblem("already_answered", { detail }));
}

/** `{ decisions }` can only mean the approvals, also beside other interrupts. */
function selectAddressees(value: unknown, open: readonly WireInterrupt[]): readonly WireInterrupt[] {
  if (!isRecord(value) || value["decisions"] === undefined) return open;
  const approvals = open.filter(({ kind }) => kind === "approvals");
  return approvals.length === 0 ? open : approvals;
}

function createAmbiguityProblem(open: readonly WireInterrupt[]): RequestProblem {
  const ids = open.map(({ id }) => JSON.stringify(id)).join(", ");
  return createInputProblem(pointer, `expected values by the id of the interrupt, because several are open: ${ids}`);
}

/** Returns answers if each key names an open interrupt or a tool call that waits; undefined for another object. */
function parseAnswersById(
  value: Readonly<Record<string, unknown>>,
  open: readonly WireInterrupt[],
): WireAnswers | undefined {
  const keys = Object.keys(value);
  if (keys.length === 0) return undefined;
  const answers: WireAnswers = {};
  for (const key of keys) {
    const found = findAnswers(key, value[key], open);
    if (found === undefined) return keys.some((other) => isKnownKey(other, open)) ? refuseKey(key, open) : undefined;
    Object.assign(answers, found);
  }
  return answers;
}

function isKnownKey(key: string, open: readonly WireInterrupt[]): boolean {
  return findAnswers(key, undefined, open, { isCheck: true }) !== undefined;
}

function refuseKey(key: string, open: readonly WireInterrupt[]): never {
  const ids = open.map(({ id }) => JSON.stringify(id)).join(", ");
  throw createInputProblem(`${pointer}/${key}`, `expected the id of an open interrupt: ${ids}`);
}

/** Finds what a key names: an interrupt of the wire, one approval of several, or a tool call. */
function findAnswers(
  key: string,
  value: unknown,
  open: readonly WireInterrupt[],
  { isCheck = false }: { readonly isCheck?: boolean } = {},
): WireAnswers | undefined {
  for (const wire of open) {
    const call = findCall(key, wire);
    if (wire.id !== key && call === undefined) continue;
    if (isCheck) return {};
    const isOneOfSeveral = call !== undefined && wire.kind === "approvals" && !isBatch(value);
    return isOneOfSeveral ? { [call.interrupt]: toApprovalAnswer(value, call) } : parseAnswer(value, wire);
  }
  return undefined;
}

function findCall(key: string, wire: WireInterrupt): PendingCall | undefined {
  const calls = wire.kind === "approvals" ? wire.calls : wire.kind === "client-tool" ? [wire.call] : [];
  return calls.find(({ interrupt, callId }) => interrupt === key || callId === key);
}

function isBatch(value: unknown): boolean {
  return isRecord(value) && value["decisions"] !== undefined;
}

function parseAnswer(value: unknown, wire: WireInterrupt): WireAnswers {
  switch (wire.kind) {
    case "approvals":
      return parseDecisions(value, wire.calls);
    case "client-tool":
      return { [wire.id]: unwrapToolResult(value, wire.call) };
    case "other":
      return { [wire.id]: value };
  }
}

/** Results of client tools come as they are, or by the id of the call; `{ error }` is a failure of the tool. */
function unwrapToolResult(value: unknown, { callId }: PendingCall): unknown {
  const result = isRecord(value) && Object.hasOwn(value, callId) ? value[callId] : value;
  if (!isRecord(result) || Object.keys(result).length !== 1 || typeof result["error"] !== "string") return result;
  return { isError: true, content: result["error"] };
}

function parseDecisions(value: unknown, calls: readonly PendingCall[]): WireAnswers {
  const decisions = isRecord(value) && value["decisions"] !== undefined ? value["decisions"] : value;
  if (isRecord(decisions) && decisions !== value) return parseDecisionsById(decisions, calls);
  const list = Array.isArray(decisions) ? decisions : [decisions];
  if (list.length !== calls.length)
    throw createInputProblem(
      `${pointer}/decisions`,
      `expected ${calls.length} decisions, one for each action request, got ${list.length}`,
    );
  return Object.fromEntries(calls.map((call, index) => [call.interrupt, toApprovalAnswer(list[index], call)]));
}

function parseDecisionsById(decisions: Readonly<Record<string, unknown>>, calls: readonly PendingCall[]): WireAnswers {
  return Object.fromEntries(
    Object.entries(decisions).map(([key, decision]) => {
      const call = calls.find(({ interrupt, callId }) => interrupt === key || callId === key);
      if (call === undefined)
        throw createInputProblem(`${pointer}/decisions/${key}`, "expected the id of an open approval or of its call");
      return [call.interrupt, toApprovalAnswer(decision, call)];
    }),
  );
}

/** Converts a decision to the answer of an approval. Answers of Statewright pass unchanged, and are checked later. */
function toApprovalAnswer(decision: unknown, call: PendingCall): unknown {
  if (!isRecord(decision) || decision["type"] === undefined) return decision;
  const message = decision["message"] ?? decision["content"] ?? decision["reason"];
  const reason = typeof message === "string" ? message : undefined;
  switch (decision["type"]) {
    case "approve":
      return { approved: true };
    case "reject":
      return { approved: false, ...(reason === undefined ? {} : { reason }) };
    case "edit":
      return { approved: true, args: parseEditedArgs(decision, call) };
    case "respond":
      return { respond: reason ?? "" };
    default:
      throw createInputProblem(`${pointer}/decisions`, `expected a type of decision: ${decisionTypes.join(", ")}`);
  }
}

/** The tool of a call cannot be changed: its approval is about this tool. */
function parseEditedArgs(decision: Readonly<Record<string, unknown>>, { tool }: PendingCall): unknown {
  const action = decision["edited_action"] ?? decision["editedAction"];
  if (!isRecord(action) || !isRecord(action["args"]))
    throw createInputProblem(`${pointer}/decisions`, "expected edited_action with name and args");
  if (action["name"] !== undefined && action["name"] !== tool)
    throw createInputProblem(
      `${pointer}/decisions`,
      `expected edited arguments for the tool "${tool}", got another tool`,
    );
  return action["args"];
}
