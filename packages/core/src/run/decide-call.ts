/**
 * What the before hooks, and the people whom they ask, decide about a call. A yes counts for the arguments that were shown
 * and no others: when a person gives others, or a hook changes them after a yes, all hooks decide again about the new ones.
 */
import { StatewrightError } from "../base/errors.ts";
import { fingerprint } from "../base/ids.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import { parseWith } from "../base/schema.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { type ApprovalAnswer, type ApprovalVerdict, approval, inDoubtKey } from "../tool/approval.ts";
import type { Expiry } from "../tool/interrupt.ts";
import { type AskOptions, asksAboutCalls, type BeforeToolDecision, type Middleware } from "../tool/middleware.ts";
import { jsonSchemaOf, modelToolOf } from "../tool/model-tool.ts";
import { resultOf, resultOfError, type ToolResult } from "../tool/result.ts";
import type { Tool } from "../tool/tool.ts";
import { isToolError, ToolError } from "../tool/tool-error.ts";
import { argsDigest } from "./args-digest.ts";
import { rewrite } from "./call-args.ts";
import { type CallAtWork, event, facts, hookFailed, hooks, shownArgs } from "./call-at-work.ts";
import { hookRuntime } from "./scope.ts";
import { placeOf } from "./session.ts";
import { isForResume } from "./stopped.ts";

/** What comes after: an answer without running the tool, a question to a person, or the tool to run. */
export type Decided =
  | { readonly kind: "answer"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "run"; readonly tool: Tool<never, never> };

type Interrupt = Extract<BeforeToolDecision, { action: "interrupt" }>;

/** How often all hooks decide about one call: arguments that change after each yes are not run. */
const mostRounds = 8;

/** Ask the before hooks, first to last, until they agree about arguments that stay as they are. */
export function decide(call: CallAtWork, tool: Tool<never, never>): Decided | Promise<Decided> {
  if (tool.spec.safety.confirm === "always" && call.node.unconfirmed === "deny" && !hooks(call).some(asksAboutCalls))
    return nobodyAsked(call, tool);
  const asks = hooks(call).some(({ beforeTool }) => beforeTool !== undefined);
  return asks ? decideInRounds(call, tool) : letThrough(call, tool);
}

/** A tool that came when its agent was made already. */
function nobodyAsked(call: CallAtWork, { spec: { name } }: Tool<never, never>): Decided {
  const { session, scope } = call;
  session.world.log("warn", `the tool "${name}" says confirm: "always", and no middleware of its agent asks anybody`, {
    callId: call.block.id,
    node: scope.task.node,
    next: "Add confirmTools() to the middleware of the agent",
  });
  return refuse(
    call,
    "confirm",
    `The tool "${name}" runs only when a person has said yes, and nobody is asked here, so this call was not run.`,
  );
}

async function decideInRounds(call: CallAtWork, tool: Tool<never, never>): Promise<Decided> {
  // What people have said yes to: the question, and the arguments as they were or as the person changed them.
  const yes = new Set<string>();
  for (let round = 1; round <= mostRounds; round++) {
    const decided = await decideOnce(call, tool, yes);
    if (decided !== "again") return decided;
  }
  return refuse(call, "approval", "The arguments of this call changed after each approval, so it was not run.");
}

async function decideOnce(call: CallAtWork, tool: Tool<never, never>, yes: Set<string>): Promise<Decided | "again"> {
  const said: string[] = [];
  for (const middleware of hooks(call)) {
    if (middleware.beforeTool === undefined) continue;
    const decision = await ask(call, tool, middleware);
    const { aborted, reason } = call.scope.signal();
    if (aborted && isForResume(reason)) throw reason;
    if (aborted) return cancel(call, ToolError.cancelled());
    if (decision === undefined) continue;
    switch (decision.action) {
      case "allow":
        continue;
      case "modify": {
        const refused = rewrite(call, tool.spec, decision.args, middleware.name);
        if (refused !== undefined) return { kind: "answer", result: refused };
        continue;
      }
      case "answer":
        return decision;
      case "respond":
        return respond(call, decision.output);
      case "deny":
        return refuse(call, middleware.name, decision.reason, decision);
      case "abort":
        (call.session.within?.endedBy(middleware) ?? call.session.abort).abort(new Error(decision.reason));
        return cancel(call, new ToolError("cancelled", `The run was ended: ${decision.reason}`));
      case "interrupt": {
        const question = questionOf(middleware, decision, call);
        const digest = digestOf(call);
        if (!yes.has(question + digest)) {
          const decided = consult(call, tool, decision);
          if (decided !== "yes") return decided;
          yes.add(question + digestOf(call));
          if (digestOf(call) !== digest) return "again";
        }
        said.push(digest);
      }
    }
  }
  const approved = said.length === 0 ? undefined : digestOf(call);
  if (said.some((digest) => digest !== approved)) return "again";
  call.approved = approved;
  return letThrough(call, tool);
}

function letThrough(call: CallAtWork, tool: Tool<never, never>): Decided {
  if (tool.spec.client !== true) call.move(call.state() === "before" ? "call.allowed" : "call.decided");
  else if (call.state() === "before") call.move("call.asked");
  return { kind: "run", tool };
}

/** A hook's decision; what it threw, or gave that is none, as the answer that this means, if it means one. */
async function ask(
  call: CallAtWork,
  { spec }: Tool<never, never>,
  middleware: Middleware,
): Promise<
  BeforeToolDecision | { readonly action: "answer"; readonly kind: "answer"; readonly result: ToolResult } | undefined
> {
  let thrown: unknown;
  try {
    const decision = await middleware.beforeTool?.(
      { call: call.toolCall, tool: spec },
      hookRuntime(call.session, call.scope, call.key, middleware),
    );
    if (decision === undefined || isDecision(decision)) return decision;
    thrown = new TypeError(`it returned ${describeValue(decision)}, which is no decision`);
  } catch (error) {
    thrown = error;
  }
  const result = hookFailed(call, middleware, "beforeTool", thrown);
  return result === undefined ? undefined : { action: "answer", kind: "answer", result };
}

/** What `allow`, `modify`, `deny`, `respond`, `abort` and `interruptFor` make: anything else is no decision. */
function isDecision(decision: unknown): boolean {
  if (!isPlainObject(decision)) return false;
  switch (decision["action"]) {
    case "allow":
    case "modify":
    case "respond":
      return true;
    case "deny":
    case "abort":
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

function refuse(
  call: CallAtWork,
  by: string,
  reason: string,
  { terminate, fail }: { readonly terminate?: boolean; readonly fail?: boolean } = {},
): Decided {
  event(call, { type: "tool.denied", by, reason });
  const error = new ToolError("denied", reason, fail === true ? { disposition: "fail" } : {});
  const result = resultOfError(error, facts(call, 0));
  return { kind: "answer", result: terminate === true ? { ...result, terminate: true } : result };
}

/** The answer that a hook or a person gives in the tool's place. */
function respond(call: CallAtWork, output: unknown): Decided {
  try {
    return { kind: "answer", result: resultOf(output, facts(call, 0)) };
  } catch (thrown) {
    if (!isToolError(thrown)) throw thrown;
    return { kind: "answer", result: resultOfError(thrown, facts(call, 0)) };
  }
}

function cancel(call: CallAtWork, error: ToolError): Decided {
  call.move("call.cancelled");
  return { kind: "answer", result: resultOfError(error, facts(call, 0)) };
}

/** What a hook asks, apart from the arguments that it shows: a question with another reason is another question. */
function questionOf({ name }: Middleware, { key, payload }: Interrupt, { toolCall }: CallAtWork): string {
  const shown = isPlainObject(payload) && payload["args"] === toolCall.args ? { ...payload, args: null } : payload;
  return JSON.stringify([name, key, shown]);
}

function digestOf({ session, toolCall }: CallAtWork): string {
  return argsDigest(session.codec, toolCall.args) ?? "";
}

/** Put a question to people, or read their answer: yes, with the call's arguments as they are now, or how the call ends. */
function consult(call: CallAtWork, tool: Tool<never, never>, asking: Interrupt): Decided | "yes" {
  const { key, payload } = asking;
  checkKey(call, key);
  call.questions += 1;
  const { id: task } = call.scope.task;
  const asked = call.scope.consult({
    // Each question about a call has an answer of its own: a yes to the first hook is no yes to the second.
    id: call.questions === 1 ? `${task}:${call.key}` : `${task}/${call.questions}:${call.key}`,
    key,
    payload:
      isPlainObject(payload) && payload["args"] === call.toolCall.args
        ? { ...payload, args: shownArgs(call) }
        : payload,
    schema: jsonSchemaOf(approval),
    about: fingerprint(
      `${JSON.stringify(modelToolOf(tool.spec))} ${argsDigest(call.session.codec, call.toolCall.args)}`,
    ),
    tool: tool.spec.name,
    expiry: approvalExpiry(asking),
  });
  if (call.state() === "before") call.move("call.asked");
  if ("open" in asked) return { kind: "waiting", open: asked.open };
  const answer = readApproval(asked.answer);
  if ("respond" in answer) return respond(call, answer.respond);
  if (!answer.approved) {
    const refused = asked.expired ? "This call was refused" : "A person refused this call";
    return refuse(call, "approval", answer.reason === undefined ? `${refused}.` : `${refused}: ${answer.reason}`);
  }
  if (answer.args === undefined) return "yes";
  const refused = rewrite(call, tool.spec, answer.args, "approval");
  return refused === undefined ? "yes" : { kind: "answer", result: refused };
}

/** Throws `unknown_interrupt` for a key that the graph does not declare, or under which something else is asked. */
function checkKey({ session, scope, node, block }: CallAtWork, key: string): void {
  const { graph } = session.plan;
  const other =
    key === inDoubtKey ? "about calls in doubt" : node.registry.get(key)?.spec.client === true && "a tool's answer";
  if (!other && Object.hasOwn(graph.interrupts, key)) return;
  throw new StatewrightError("unknown_interrupt", {
    what: other
      ? `middleware of the node "${scope.task.node}" asked "${key}", under which the engine asks ${other}`
      : `middleware of the node "${scope.task.node}" asked "${key}", which graph "${graph.name}" does not declare`,
    next: other ? "Ask under another key" : `Add it to the graph's interrupts: { ${key}: approval }`,
    place: placeOf(session, { node: scope.task.node, tool: block.name, callId: block.id }),
  });
}

/** What a person is taken to have said who did not answer in time. */
function approvalExpiry({ expiresMs, onExpire = "deny" }: AskOptions): Expiry | undefined {
  if (expiresMs === undefined) return undefined;
  const answer: ApprovalAnswer = onExpire === "allow" ? true : { approved: false, reason: "nobody answered in time" };
  return { ms: expiresMs, answer: { value: answer } };
}

/** Anything but a clear yes or an answer in the tool's place is a no. */
function readApproval(answer: unknown): ApprovalVerdict | { readonly respond: string } {
  const parsed = parseWith(approval, answer);
  if (!parsed.ok) return { approved: false, reason: "the answer was not understood" };
  return typeof parsed.value === "boolean" ? { approved: parsed.value } : parsed.value;
}
