/**
 * What the before hooks, and the people whom they ask, decide about a call. What runs is what every one of them has seen: a
 * yes counts for the arguments that were shown and no others, and when a person or a hook gives others, each hook that has
 * not seen these decides again.
 */
import { StatewrightError } from "../../base/errors.ts";
import { fingerprint } from "../../base/ids.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import { parseWith } from "../../base/schema.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { parseArgs } from "../../tool/arguments/parse-args.ts";
import { jsonSchemaOf, modelToolOf } from "../../tool/definition/model-tool.ts";
import type { Tool, ToolCall, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import { type ApprovalAnswer, type ApprovalVerdict, approval, inDoubtKey } from "../../tool/policy/approval.ts";
import type { Expiry } from "../../tool/policy/interrupt.ts";
import {
  type AskOptions,
  asksAboutCalls,
  type BeforeToolDecision,
  type Middleware,
} from "../../tool/policy/middleware.ts";
import { resultOf, resultOfError, type ToolResult } from "../../tool/result.ts";
import { argsDigest, sameArgs } from "../journal/args-digest.ts";
import { isForResume } from "../session/preemption.ts";
import { hookRuntime } from "../session/scope.ts";
import { placeOf, type Session } from "../session/session.ts";
import { notAsJudged, rewrite, withoutHidden } from "./call-args.ts";
import { type CallAtWork, event, facts, hookFailed, hooks, isForProvider, shownArgs } from "./context.ts";

/** What comes after: an answer without running the tool, a question to a person, or the tool to run. */
export type Decided =
  | { readonly kind: "answer"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "run"; readonly tool: Tool<never, never> };

type Interrupt = Extract<BeforeToolDecision, { action: "interrupt" }>;

/** What a hook decided, or the answer that its failure means. */
type Decision = BeforeToolDecision | { readonly action: "answer"; readonly result: ToolResult };

/** A decision by which the tool is not run. */
type Final = Extract<Decision, { action: "answer" | "respond" | "deny" | "abort" }>;

/** How often hooks are asked about one call: arguments that never come to rest are not run. */
const mostRounds = 8;

/** What was decided about a call so far. */
interface Rounds {
  /** The arguments that each hook has let through or made, by its place in the list. */
  readonly seen: Map<number, unknown>;
  /** The hooks that have asked about those, and got a yes. */
  readonly asked: Set<number>;
  /** What people have said yes to: the question, and the arguments as they were or as the person changed them. */
  readonly yes: Set<string>;
  /** The hooks that have changed arguments, by name. */
  readonly changedBy: Set<string>;
}

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
  const reason = `The tool "${name}" runs only when a person has said yes, and nobody is asked here, so this call was not run.`;
  return answer(refuse(call, "confirm", reason));
}

/** Ask the before hooks, where there are some, about a call whose tool may be known by its spec only. */
export async function decideInRounds(call: CallAtWork, tool: Tool<never, never>): Promise<Decided> {
  const rounds: Rounds = { seen: new Map(), asked: new Set(), yes: new Set(), changedBy: new Set() };
  for (let round = 1; round <= mostRounds; round++) {
    const decided = await decideOnce(call, tool, rounds);
    if (decided !== "again") return decided;
  }
  if (rounds.yes.size > 0)
    return answer(
      refuse(call, "approval", "The arguments of this call changed after each approval, so it was not run."),
    );
  const names = [...rounds.changedBy].map((name) => `"${name}"`).join(" and ");
  const by = [...rounds.changedBy].at(-1) ?? "";
  return answer(refuse(call, by, `${names} go on changing the arguments of this call in turn, so it was not run.`));
}

async function decideOnce(call: CallAtWork, tool: Tool<never, never>, rounds: Rounds): Promise<Decided | "again"> {
  const list = hooks(call);
  const { seen, asked, yes, changedBy } = rounds;
  const hasSeen = ({ beforeTool }: Middleware, place: number): boolean =>
    beforeTool === undefined || (seen.has(place) && seen.get(place) === call.toolCall.args);
  for (const [place, middleware] of list.entries()) {
    if (hasSeen(middleware, place)) continue;
    const decision = await ask(call, tool, middleware, call.toolCall);
    const { aborted, reason } = call.scope.signal();
    if (aborted && isForResume(reason)) throw reason;
    if (aborted) {
      call.move("call.cancelled");
      return answer(resultOfError(ToolError.cancelled(), facts(call, 0)));
    }
    asked.delete(place);
    switch (decision?.action) {
      case "modify": {
        const { args } = call.toolCall;
        if (isForProvider(call)) {
          if (sameArgs(call.session.codec, args, decision.args)) break;
          return answer(refuse(call, middleware.name, `"${middleware.name}" wanted other arguments, ${runAsItIs}`));
        }
        const refused = rewrite(call, tool.spec, decision.args, middleware.name);
        if (refused !== undefined) return answer(refused);
        if (call.toolCall.args !== args) changedBy.add(middleware.name);
        break;
      }
      case "answer":
      case "respond":
      case "deny":
      case "abort":
        if (decision.action === "abort") call.move("call.cancelled");
        return answer(answerBy(call, middleware, decision));
      case "interrupt": {
        // A hook that stands before may refuse these arguments: nobody is asked for nothing.
        if (!list.slice(0, place).every(hasSeen)) return "again";
        const question = questionOf(middleware, decision, call);
        const { args } = call.toolCall;
        const digest = digestOf(call);
        if (digest === undefined || !yes.has(question + digest)) {
          const decided = consult(call, tool, decision);
          if (decided !== "yes") return decided;
          yes.add(question + digestOf(call));
          if (call.toolCall.args !== args) return "again";
        }
        asked.add(place);
      }
    }
    seen.set(place, call.toolCall.args);
  }
  if (!list.every(hasSeen)) return "again";
  // What cannot be told from others is no arguments that a later change could leave as they are.
  call.approved = asked.size === 0 ? undefined : (digestOf(call) ?? "");
  return letThrough(call, tool);
}

/**
 * What the before hooks say of arguments that a hook around the execution would put in place: the call's answer, or nothing
 * where all let them through as they are. Nobody can be asked then, so where one asks, the call is refused.
 */
export async function judge(
  call: CallAtWork,
  tool: Tool<never, never>,
  toolCall: ToolCall,
  by: string,
): Promise<ToolResult | undefined> {
  const gave = `"${by}" gave this call arguments`;
  for (const middleware of hooks(call)) {
    if (middleware.beforeTool === undefined) continue;
    const decision = await ask(call, tool, middleware, toolCall);
    const { aborted, reason } = call.scope.signal();
    if (aborted && isForResume(reason)) throw reason;
    if (aborted) return resultOfError(ToolError.cancelled(), facts(call, 0));
    switch (decision?.action) {
      case "modify":
        if (leaves(call, tool.spec, toolCall.args, decision.args)) continue;
        return notAsJudged(call, by, `${gave} that "${middleware.name}" would change, so it was not run.`);
      case "interrupt":
        return notAsJudged(call, by, `${gave} that "${middleware.name}" asks a person about, so it was not run.`);
      case "answer":
      case "respond":
      case "deny":
      case "abort":
        return answerBy(call, middleware, decision);
    }
  }
  return undefined;
}

/** Whether arguments that a hook gives are, once parsed, those that it was shown. */
function leaves({ session }: CallAtWork, spec: ToolSpec, shown: unknown, given: unknown): boolean {
  const parsed = parseArgs(spec, withoutHidden(spec, given));
  return parsed.ok && sameArgs(session.codec, parsed.value, shown);
}

/** The answer of a hook that does not let a call through. */
function answerBy(call: CallAtWork, middleware: Middleware, decision: Final): ToolResult {
  switch (decision.action) {
    case "answer":
      return decision.result;
    case "respond":
      return respond(call, decision.output);
    case "deny":
      return refuse(call, middleware.name, decision.reason, decision);
    case "abort":
      (call.session.within?.endedBy(middleware) ?? call.session.abort).abort(new Error(decision.reason));
      return resultOfError(new ToolError("cancelled", `The run was ended: ${decision.reason}`), facts(call, 0));
  }
}

function answer(result: ToolResult): Decided {
  return { kind: "answer", result };
}

function letThrough(call: CallAtWork, tool: Tool<never, never>): Decided {
  if (tool.spec.client !== true && !isForProvider(call))
    call.move(call.state() === "before" ? "call.allowed" : "call.decided");
  else if (call.state() === "before") call.move("call.asked");
  return { kind: "run", tool };
}

/** A hook's decision; what it threw, or gave that is none, as the answer that this means, if it means one. */
async function ask(
  call: CallAtWork,
  { spec }: Tool<never, never>,
  middleware: Middleware,
  toolCall: ToolCall,
): Promise<Decision | undefined> {
  let thrown: unknown;
  try {
    const decision = await middleware.beforeTool?.(
      { call: toolCall, tool: spec },
      hookRuntime(call.session, call.scope, call.key, middleware),
    );
    if (decision === undefined || isDecision(decision)) return decision;
    thrown = new TypeError(`it returned ${describeValue(decision)}, which is no decision`);
  } catch (error) {
    thrown = error;
  }
  const result = hookFailed(call, middleware, "beforeTool", thrown);
  return result === undefined ? undefined : { action: "answer", result };
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
): ToolResult {
  event(call, { type: "tool.denied", by, reason });
  const error = new ToolError("denied", reason, fail === true ? { disposition: "fail" } : {});
  const result = resultOfError(error, facts(call, 0));
  return terminate === true ? { ...result, terminate: true } : result;
}

/** The answer that a hook or a person gives in the tool's place. */
function respond(call: CallAtWork, output: unknown): ToolResult {
  try {
    return resultOf(output, facts(call, 0));
  } catch (thrown) {
    if (!isToolError(thrown)) throw thrown;
    return resultOfError(thrown, facts(call, 0));
  }
}

/** What a hook asks, apart from the arguments that it shows: one with another reason, or another time, is another question. */
function questionOf(
  { name }: Middleware,
  { key, payload, expiresMs, onExpire }: Interrupt,
  { toolCall }: CallAtWork,
): string {
  const shown = isPlainObject(payload) && payload["args"] === toolCall.args ? { ...payload, args: null } : payload;
  return JSON.stringify([name, key, shown, expiresMs, onExpire]);
}

function digestOf({ session, toolCall }: CallAtWork): string | undefined {
  return argsDigest(session.codec, toolCall.args);
}

const runAsItIs = "and the provider runs the call as it is.";

/** Put a question to people, or read their answer: yes, with the call's arguments as they are now, or how the call ends. */
export function consult(call: CallAtWork, tool: Tool<never, never>, asking: Interrupt): Decided | "yes" {
  const { key, payload } = asking;
  checkKey(call, key);
  call.questions += 1;
  const { id: task } = call.scope.task;
  // The graph has no such tool: that it is gone is no reason to ask anew.
  const of = isForProvider(call) ? call.block.name : JSON.stringify(modelToolOf(tool.spec));
  const asked = call.scope.consult({
    // Each question about a call has an answer of its own: a yes to the first hook is no yes to the second.
    id: call.questions === 1 ? `${task}:${call.key}` : `${task}/${call.questions}:${call.key}`,
    key,
    payload:
      isPlainObject(payload) && payload["args"] === call.toolCall.args
        ? { ...payload, args: shownArgs(call) }
        : payload,
    schema: jsonSchemaOf(approval),
    about: fingerprint(`${of} ${argsDigest(call.session.codec, call.toolCall.args)}`),
    ...(isForProvider(call) ? {} : { tool: tool.spec.name }),
    expiry: approvalExpiry(asking),
  });
  if (call.state() === "before") call.move("call.asked");
  if ("open" in asked) return { kind: "waiting", open: asked.open };
  const said = readApproval(asked.answer);
  if ("respond" in said) return answer(respond(call, said.respond));
  if (!said.approved) {
    const refused = asked.expired ? "This call was refused" : "A person refused this call";
    return answer(refuse(call, "approval", said.reason === undefined ? `${refused}.` : `${refused}: ${said.reason}`));
  }
  if (said.args === undefined) return "yes";
  if (isForProvider(call)) return answer(refuse(call, "approval", `A person wanted other arguments, ${runAsItIs}`));
  const refused = rewrite(call, tool.spec, said.args, "approval");
  return refused === undefined ? "yes" : answer(refused);
}

/** Throws `unknown_interrupt` for a key that the graph does not declare, or under which something else is asked. */
function checkKey({ session, scope, node, block }: CallAtWork, key: string): void {
  const { graph } = session.plan;
  const other =
    key === inDoubtKey ? "about calls in doubt" : node.registry.get(key)?.spec.client === true && "a tool's answer";
  if (!other && isDeclared(session, key)) return;
  throw new StatewrightError("unknown_interrupt", {
    what: other
      ? `middleware of the node "${scope.task.node}" asked "${key}", under which the engine asks ${other}`
      : `middleware of the node "${scope.task.node}" asked "${key}", which graph "${graph.name}" does not declare`,
    next: other ? "Ask under another key" : `Add it to the graph's interrupts: { ${key}: approval }`,
    place: placeOf(session, { node: scope.task.node, tool: block.name, callId: block.id }),
  });
}

/** Whether the graph declares a question, or one around it, whose middleware asks here too. */
function isDeclared(session: Session, key: string): boolean {
  for (let at: Session | undefined = session; at !== undefined; at = at.around?.session)
    if (Object.hasOwn(at.plan.graph.interrupts, key)) return true;
  return false;
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
