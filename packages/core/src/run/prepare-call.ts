/** The first half of a tool call: from received to the decision of the before hooks. */
import { StatewrightError } from "../base/errors.ts";
import { fingerprint } from "../base/ids.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import { issuesText, parseWith } from "../base/schema.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import type { Expiry } from "../define/interrupt.ts";
import type { ToolCallBlock } from "../model/message.ts";
import { type ApprovalAnswer, approval } from "../tool/approval.ts";
import type { AskOptions, BeforeToolDecision } from "../tool/middleware.ts";
import { jsonSchemaOf, modelToolOf, parseArgs, takesNothing } from "../tool/model-tool.ts";
import { resultOf, resultOfError, type ToolResult } from "../tool/result.ts";
import type { Tool, ToolSpec } from "../tool/tool.ts";
import { ToolError } from "../tool/tool-error.ts";
import { argsDigest } from "./args-digest.ts";
import { type CallAtWork, event, facts, hookFailed, hooks } from "./call-at-work.ts";
import { hookRuntime } from "./scope.ts";
import { placeOf } from "./session.ts";
import { isForResume } from "./stopped.ts";

/** What comes after: an answer without running the tool, a question to a person, or the tool to run. */
export type Prepared =
  | { readonly kind: "answer"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "run"; readonly tool: Tool<never, never> };

/** Resolve the tool, read the arguments, ask the before hooks. Throws `tool_failed` where unfit calls fail the run. */
export async function prepare(call: CallAtWork): Promise<Prepared> {
  const { block, node, scope } = call;
  const { aborted, reason } = scope.signal();
  if (aborted && isForResume(reason)) throw reason;
  if (aborted) {
    call.move("call.cancelled");
    return { kind: "answer", result: resultOfError(ToolError.cancelled(), facts(call, 0)) };
  }
  if (call.cut)
    return reject(
      call,
      "cut_off",
      ToolError.invalidArgs(
        "The message was cut off at the length limit, so this call was not run. Send it again, in a shorter message.",
      ),
    );
  const tool = node.registry.get(block.name);
  if (tool === undefined) {
    const names = node.registry.names().map((name) => `"${name}"`);
    return reject(
      call,
      "unknown",
      ToolError.notFound(`There is no tool "${block.name}". Tools are ${names.join(", ")}.`),
    );
  }
  call.move("call.resolved");
  const args = readArgs(call, tool.spec, block);
  if (args instanceof ToolError) return reject(call, "invalid_args", args);
  call.move("call.validated");
  call.move("call.admitted");
  call.toolCall = deepFreeze({ id: block.id, name: tool.spec.name, args: args.value });
  call.move("call.started");
  event(call, { type: "tool.started", args: call.toolCall.args });
  call.move("call.checking");
  return decide(call, tool);
}

function reject(call: CallAtWork, reason: string, error: ToolError): Prepared {
  call.move("call.rejected");
  event(call, { type: "tool.rejected", reason });
  if (call.node.onInvalidCall === "fail") {
    throw new StatewrightError("tool_failed", {
      what: `the call "${call.block.id}" of "${call.block.name}" was refused: ${error.message}`,
      next: 'Let the model mend such calls with onInvalidCall: "repair", or mend the instructions',
      place: placeOf(call.session, { node: call.scope.task.node, tool: call.block.name, callId: call.block.id }),
    });
  }
  return { kind: "answer", result: resultOfError(error, facts(call, 0)) };
}

function readArgs(call: CallAtWork, spec: ToolSpec, block: ToolCallBlock): { readonly value: unknown } | ToolError {
  const nothingSent = block.raw?.trim() === "" && takesNothing(spec);
  if (block.raw !== undefined && !nothingSent)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" are not valid JSON. Send one JSON object.`);
  const parsed = parseArgs(spec, nothingSent ? {} : withoutHidden(call, spec, block.args));
  if (parsed.ok) return { value: parsed.value };
  return ToolError.invalidArgs(`The arguments of "${spec.name}" do not fit: ${issuesText(parsed.issues)}.`, {
    details: parsed.issues,
  });
}

/** A hidden name that was forged, by the model or in changed arguments, is dropped before parsing; the real value wins. */
function withoutHidden(call: CallAtWork, spec: ToolSpec, args: unknown): unknown {
  if (!isPlainObject(args)) return args;
  const forged = Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name));
  if (forged.length === 0) return args;
  event(call, { type: "tool.forged_arg_stripped", keys: forged });
  return Object.fromEntries(Object.entries(args).filter(([name]) => !forged.includes(name)));
}

async function decide(call: CallAtWork, tool: Tool<never, never>): Promise<Prepared> {
  for (const middleware of hooks(call)) {
    let decision: BeforeToolDecision | undefined;
    try {
      decision = await middleware.beforeTool?.(
        { call: call.toolCall, tool: tool.spec },
        hookRuntime(call.session, call.scope),
      );
    } catch (thrown) {
      const result = hookFailed(call, middleware, "beforeTool", thrown);
      if (result !== undefined) return { kind: "answer", result };
    }
    if (decision !== undefined && !isDecision(decision)) {
      const cause = new TypeError(`it returned ${describeValue(decision)}, which is no decision`);
      const result = hookFailed(call, middleware, "beforeTool", cause);
      if (result !== undefined) return { kind: "answer", result };
      continue;
    }
    if (decision === undefined || decision.action === "allow") continue;
    if (decision.action === "modify") {
      const refused = rewrite(call, tool.spec, decision.args, middleware.name);
      if (refused !== undefined) return { kind: "answer", result: refused };
      continue;
    }
    const ended = act(call, tool, decision);
    if (ended.kind !== "run") return ended;
  }
  if (call.state() === "before") call.move("call.allowed");
  return { kind: "run", tool };
}

/** What `allow`, `modify`, `deny`, `respond` and `interruptFor` make: anything else is no decision. */
function isDecision(decision: unknown): boolean {
  if (!isPlainObject(decision)) return false;
  switch (decision["action"]) {
    case "allow":
    case "modify":
    case "respond":
      return true;
    case "deny":
      return typeof decision["reason"] === "string";
    case "interrupt":
      return typeof decision["key"] === "string" && mayExpire(decision);
    default:
      return false;
  }
}

function mayExpire({ expiresMs, onExpire }: Readonly<Record<string, unknown>>): boolean {
  const isTime = expiresMs === undefined || (typeof expiresMs === "number" && expiresMs > 0 && expiresMs < Infinity);
  return isTime && (onExpire === undefined || onExpire === "deny" || (onExpire === "allow" && expiresMs !== undefined));
}

/** What a person is taken to have said who did not answer in time. */
function approvalExpiry({ expiresMs, onExpire = "deny" }: AskOptions): Expiry | undefined {
  if (expiresMs === undefined) return undefined;
  const answer: ApprovalAnswer = onExpire === "allow" ? true : { approved: false, reason: "nobody answered in time" };
  return { ms: expiresMs, answer: { value: answer } };
}

function act(
  call: CallAtWork,
  tool: Tool<never, never>,
  decision: Exclude<BeforeToolDecision, { action: "allow" | "modify" }>,
): Prepared {
  if (decision.action === "respond") return { kind: "answer", result: resultOf(decision.output, facts(call, 0)) };
  if (decision.action === "deny") {
    const result = resultOfError(new ToolError("denied", decision.reason), facts(call, 0));
    return { kind: "answer", result: decision.terminate === true ? { ...result, terminate: true } : result };
  }
  call.questions += 1;
  const { id: task } = call.scope.task;
  const asked = call.scope.consult({
    // Each question about a call has an answer of its own: a yes to the first hook is no yes to the second.
    id: call.questions === 1 ? `${task}:${call.block.id}` : `${task}/${call.questions}:${call.block.id}`,
    key: decision.key,
    payload: decision.payload,
    schema: jsonSchemaOf(approval),
    about: fingerprint(
      `${JSON.stringify(modelToolOf(tool.spec))} ${argsDigest(call.session.codec, call.toolCall.args)}`,
    ),
    expiry: approvalExpiry(decision),
  });
  if (call.state() === "before") call.move("call.asked");
  if ("open" in asked) return { kind: "waiting", open: asked.open };
  const verdict = readApproval(asked.answer);
  if (!verdict.approved) {
    const refused = asked.expired ? "This call was refused" : "A person refused this call";
    const reason = verdict.reason === undefined ? `${refused}.` : `${refused}: ${verdict.reason}`;
    return { kind: "answer", result: resultOfError(new ToolError("denied", reason), facts(call, 0)) };
  }
  if (verdict.args !== undefined) {
    const refused = rewrite(call, tool.spec, verdict.args, "approval");
    if (refused !== undefined) return { kind: "answer", result: refused };
  }
  if (call.state() === "waitingHuman") call.move("call.decided");
  return { kind: "run", tool };
}

/** Anything but a clear yes is a no. */
function readApproval(answer: unknown): Exclude<ApprovalAnswer, boolean> {
  const parsed = parseWith(approval, answer);
  if (!parsed.ok) return { approved: false, reason: "the answer was not understood" };
  return typeof parsed.value === "boolean" ? { approved: parsed.value } : parsed.value;
}

/** Put other arguments in place, parsed like the first ones; gives the call's answer when they do not fit. */
export function rewrite(call: CallAtWork, spec: ToolSpec, args: unknown, by: string): ToolResult | undefined {
  const parsed = parseArgs(spec, withoutHidden(call, spec, args));
  if (!parsed.ok) {
    const text = `The arguments that "${by}" put in place do not fit: ${issuesText(parsed.issues)}.`;
    return resultOfError(ToolError.invalidArgs(text), facts(call, 0));
  }
  call.toolCall = deepFreeze({ ...call.toolCall, args: parsed.value });
  event(call, { type: "tool.args_rewritten", by, args: call.toolCall.args });
  return undefined;
}
