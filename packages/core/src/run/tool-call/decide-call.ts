/**
 * Decisions of `beforeTool` hooks and people about a tool call. The executed arguments are the arguments that every
 * hook has seen: an approval covers only the shown arguments, and after a change of arguments each hook decides
 * again.
 */
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { fingerprint } from "../../base/ids.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import { parseWith } from "../../base/schema.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { omitHiddenArgs, parseArgs } from "../../tool/arguments/parse-args.ts";
import { toJsonSchema, toModelTool } from "../../tool/definition/model-tool.ts";
import type { Tool, ToolCall, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import {
  type ApprovalAnswer,
  type ApprovalVerdict,
  approval,
  approveKey,
  inDoubtKey,
} from "../../tool/policy/approval.ts";
import { deny, interrupt } from "../../tool/policy/decide.ts";
import type { Expiry } from "../../tool/policy/interrupt.ts";
import {
  type AskOptions,
  type BeforeToolDecision,
  canRequestApproval,
  type Middleware,
} from "../../tool/policy/middleware.ts";
import { type ToolResult, toErrorResult, toResult } from "../../tool/result.ts";
import { digestArgs, isSameArgs } from "../journal/args-digest.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { isSuspension } from "../session/preemption.ts";
import type { Session } from "../session/session.ts";
import { denyChangedCall, rewriteArgs } from "./call-args.ts";
import {
  emitCallEvent,
  getResultFields,
  handleHookError,
  isProviderCall,
  listCallMiddleware,
  redactCallArgs,
  type ToolCallContext,
} from "./context.ts";

/** Next action for a call: an answer without running the tool, an open interrupt, or the tool to run. */
export type CallDecision =
  | { readonly kind: "answer"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "run"; readonly tool: Tool<never, never> };

type InterruptDecision = Extract<BeforeToolDecision, { action: "interrupt" }>;

/** Decision of a hook, or the answer for a failed hook. */
type HookDecision = BeforeToolDecision | { readonly action: "answer"; readonly result: ToolResult };

/** Decision without a tool execution. */
type FinalDecision = Extract<HookDecision, { action: "answer" | "respond" | "deny" | "abort" }>;

/** Maximum rounds of hooks for a single call: a call whose arguments still change after this limit is not run. */
const maxRounds = 8;

/** State of the decision about a single call. */
interface Rounds {
  /** Arguments that each hook accepted or produced, by hook index. */
  readonly seenArgs: Map<number, unknown>;
  /** Indices of hooks whose interrupt about these arguments was approved. */
  readonly approvedHooks: Set<number>;
  /** Approvals: interrupt identity with the digest of the arguments, as shown or as changed by the person. */
  readonly approvals: Set<string>;
  /** Names of the hooks that changed arguments. */
  readonly changedBy: Set<string>;
}

/** Calls the `beforeTool` hooks, first to last, until all hooks accept the same arguments. */
export function decideCall(call: ToolCallContext, tool: Tool<never, never>): CallDecision | Promise<CallDecision> {
  if (
    tool.spec.safety.confirm === "always" &&
    call.node.unconfirmed === "deny" &&
    !listCallMiddleware(call).some(canRequestApproval)
  )
    return denyUnconfirmed(call, tool);
  const hasBeforeHook = listReviewers(call, tool).some(({ beforeTool }) => beforeTool !== undefined);
  return hasBeforeHook ? decideInRounds(call, tool) : allowCall(call, tool);
}

/** Lists the middleware of the call, and the tool's own `needsApproval` as the last hook. */
function listReviewers(call: ToolCallContext, { spec }: Tool<never, never>): readonly Middleware[] {
  const middleware = listCallMiddleware(call);
  const { needsApproval } = spec.execution;
  if (needsApproval === undefined || isProviderCall(call)) return middleware;
  return [...middleware, createApprovalHook(call, spec, needsApproval)];
}

function createApprovalHook(
  { scope }: ToolCallContext,
  { name }: ToolSpec,
  needsApproval: NonNullable<ToolSpec["execution"]["needsApproval"]>,
): Middleware {
  return {
    name,
    beforeTool: async ({ call }) => {
      let reason: string | undefined;
      try {
        reason = await needsApproval(call.args as never);
      } catch (cause) {
        throw ToolError.failed(`This call was not run: needsApproval of "${name}" failed: ${describeThrown(cause)}`);
      }
      if (reason === undefined) return undefined;
      if (isDeclared(scope.session, approveKey)) return interrupt(call, reason);
      return deny(`${reason}. The call requires the approval of a person, and no approval is set up here.`);
    },
  };
}

/**
 * Denies a tool with `confirm: "always"` that was registered after its agent was created, in an agent without
 * approval middleware.
 */
function denyUnconfirmed(call: ToolCallContext, { spec: { name } }: Tool<never, never>): CallDecision {
  const { env, scope } = call;
  env.world.log(
    "warn",
    `the tool "${name}" has confirm: "always", and its agent has no middleware that asks for approval`,
    {
      callId: call.block.id,
      node: scope.task.node,
      next: "Add confirmTools() to the middleware of the agent",
    },
  );
  const reason = `The tool "${name}" requires the approval of a person, and no approval is set up here, so this call was not run.`;
  return toAnswer(denyCall(call, "confirm", reason));
}

/** Runs rounds of `beforeTool` hooks. Of a provider-executed tool only the spec may be known. */
export async function decideInRounds(call: ToolCallContext, tool: Tool<never, never>): Promise<CallDecision> {
  const rounds: Rounds = { seenArgs: new Map(), approvedHooks: new Set(), approvals: new Set(), changedBy: new Set() };
  for (let round = 1; round <= maxRounds; round++) {
    const decided = await decideRound(call, tool, rounds);
    if (decided !== "again") return decided;
  }
  if (rounds.approvals.size > 0)
    return toAnswer(
      denyCall(call, "approval", "The arguments of this call changed after each approval, so it was not run."),
    );
  const names = [...rounds.changedBy].map((name) => `"${name}"`).join(" and ");
  const by = [...rounds.changedBy].at(-1) ?? "";
  return toAnswer(denyCall(call, by, `${names} keep changing the arguments of this call in turn, so it was not run.`));
}

async function decideRound(
  call: ToolCallContext,
  tool: Tool<never, never>,
  rounds: Rounds,
): Promise<CallDecision | "again"> {
  const list = listReviewers(call, tool);
  const { seenArgs, approvedHooks, approvals, changedBy } = rounds;
  const hasSeen = ({ beforeTool }: Middleware, index: number): boolean =>
    beforeTool === undefined || (seenArgs.has(index) && seenArgs.get(index) === call.toolCall.args);
  for (const [index, middleware] of list.entries()) {
    if (hasSeen(middleware, index)) continue;
    const decision = await callBeforeTool(call, tool, middleware, call.toolCall);
    const { aborted, reason } = call.scope.getSignal();
    if (aborted && isSuspension(reason)) throw reason;
    if (aborted) {
      call.transition("call.cancelled");
      return toAnswer(toErrorResult(ToolError.cancelled(), getResultFields(call, 0)));
    }
    approvedHooks.delete(index);
    switch (decision?.action) {
      case "modify": {
        const { args } = call.toolCall;
        if (isProviderCall(call)) {
          if (isSameArgs(call.env.codec, args, decision.args)) break;
          return toAnswer(
            denyCall(call, middleware.name, `"${middleware.name}" changed the arguments, ${unchangedNote}`),
          );
        }
        const refused = rewriteArgs(call, tool.spec, decision.args, middleware.name);
        if (refused !== undefined) return toAnswer(refused);
        if (call.toolCall.args !== args) changedBy.add(middleware.name);
        break;
      }
      case "answer":
      case "respond":
      case "deny":
      case "abort":
        if (decision.action === "abort") call.transition("call.cancelled");
        return toAnswer(toCallResult(call, middleware, decision));
      case "interrupt": {
        // An earlier hook may deny these arguments: raise no interrupt before all earlier hooks have seen the
        // arguments.
        if (!list.slice(0, index).every(hasSeen)) return "again";
        const identity = getInterruptIdentity(middleware, decision, call);
        const { args } = call.toolCall;
        const digest = digestCallArgs(call);
        if (digest === undefined || !approvals.has(identity + digest)) {
          const decided = consultPerson(call, tool, decision);
          if (decided !== "yes") return decided;
          approvals.add(identity + digestCallArgs(call));
          if (call.toolCall.args !== args) return "again";
        }
        approvedHooks.add(index);
      }
    }
    seenArgs.set(index, call.toolCall.args);
  }
  if (!list.every(hasSeen)) return "again";
  // Arguments without a digest cannot be compared: the empty digest refuses every later change.
  call.approvedDigest = approvedHooks.size === 0 ? undefined : (digestCallArgs(call) ?? "");
  return allowCall(call, tool);
}

/**
 * Calls the `beforeTool` hooks for arguments that a hook around the execution wants to set. Returns the error result
 * of the call, or undefined when all hooks accept the arguments unchanged. No interrupt is possible at this stage:
 * the call of a hook that raises an interrupt is denied.
 */
export async function reviewArgs(
  call: ToolCallContext,
  tool: Tool<never, never>,
  toolCall: ToolCall,
  by: string,
): Promise<ToolResult | undefined> {
  const subject = `"${by}" changed the arguments of this call to values`;
  for (const middleware of listReviewers(call, tool)) {
    if (middleware.beforeTool === undefined) continue;
    const decision = await callBeforeTool(call, tool, middleware, toolCall);
    const { aborted, reason } = call.scope.getSignal();
    if (aborted && isSuspension(reason)) throw reason;
    if (aborted) return toErrorResult(ToolError.cancelled(), getResultFields(call, 0));
    switch (decision?.action) {
      case "modify":
        if (isUnchanged(call, tool.spec, toolCall.args, decision.args)) continue;
        return denyChangedCall(call, by, `${subject} that "${middleware.name}" would change, so it was not run.`);
      case "interrupt":
        return denyChangedCall(
          call,
          by,
          `${subject} that "${middleware.name}" asks a person about, so it was not run.`,
        );
      case "answer":
      case "respond":
      case "deny":
      case "abort":
        return toCallResult(call, middleware, decision);
    }
  }
  return undefined;
}

/** True when the arguments of a hook, once parsed, equal the shown arguments. */
function isUnchanged({ env }: ToolCallContext, spec: ToolSpec, shown: unknown, proposed: unknown): boolean {
  const parsed = parseArgs(spec, omitHiddenArgs(spec, proposed));
  return parsed.ok && isSameArgs(env.codec, parsed.value, shown);
}

/** Returns the answer for a hook that does not allow the call. */
function toCallResult(call: ToolCallContext, middleware: Middleware, decision: FinalDecision): ToolResult {
  switch (decision.action) {
    case "answer":
      return decision.result;
    case "respond":
      return respond(call, decision.output);
    case "deny":
      return denyCall(call, middleware.name, decision.reason, decision);
    case "abort":
      (call.position.nesting?.getHookController(middleware) ?? call.signals.abort).abort(new Error(decision.reason));
      return toErrorResult(
        new ToolError("cancelled", `The run was ended: ${decision.reason}`),
        getResultFields(call, 0),
      );
  }
}

function toAnswer(result: ToolResult): CallDecision {
  return { kind: "answer", result };
}

function allowCall(call: ToolCallContext, tool: Tool<never, never>): CallDecision {
  if (tool.spec.client !== true && !isProviderCall(call))
    call.transition(call.getState() === "before" ? "call.allowed" : "call.decided");
  else if (call.getState() === "before") call.transition("call.interrupted");
  return { kind: "run", tool };
}

/** Calls `beforeTool`. An error or an invalid return value becomes an answer, unless the middleware is optional. */
async function callBeforeTool(
  call: ToolCallContext,
  { spec }: Tool<never, never>,
  middleware: Middleware,
  toolCall: ToolCall,
): Promise<HookDecision | undefined> {
  let thrown: unknown;
  try {
    const decision = await middleware.beforeTool?.(
      { call: toolCall, tool: spec },
      createHookRuntime(call, call.scope, call.key, { middleware }),
    );
    if (decision === undefined) return undefined;
    if (isDecision(decision)) return decision;
    thrown = new TypeError(
      `expected a decision (allow, modify, deny, respond, abort or an interrupt), got ${describeValue(decision)}`,
    );
  } catch (error) {
    thrown = error;
  }
  const result = handleHookError(call, middleware, "beforeTool", thrown);
  return result === undefined ? undefined : { action: "answer", result };
}

/** True for the decisions that `allow`, `modify`, `deny`, `respond`, `abort` and `interruptFor` create. */
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
      return typeof decision["key"] === "string" && hasValidExpiry(decision);
    default:
      return false;
  }
}

function hasValidExpiry({ expiresMs, onExpire }: Readonly<Record<string, unknown>>): boolean {
  const isTime = expiresMs === undefined || (typeof expiresMs === "number" && expiresMs > 0 && expiresMs < Infinity);
  return isTime && (onExpire === undefined || onExpire === "deny" || (onExpire === "allow" && expiresMs !== undefined));
}

function denyCall(
  call: ToolCallContext,
  by: string,
  reason: string,
  { terminate, fail }: { readonly terminate?: boolean; readonly fail?: boolean } = {},
): ToolResult {
  emitCallEvent(call, { type: "tool.denied", by, reason });
  const error = new ToolError("denied", reason, fail === true ? { disposition: "fail" } : {});
  const result = toErrorResult(error, getResultFields(call, 0));
  return terminate === true ? { ...result, terminate: true } : result;
}

/** Creates the answer of a hook or a person in place of the tool result. */
function respond(call: ToolCallContext, output: unknown): ToolResult {
  try {
    return toResult(output, getResultFields(call, 0));
  } catch (thrown) {
    if (!isToolError(thrown)) throw thrown;
    return toErrorResult(thrown, getResultFields(call, 0));
  }
}

/**
 * Returns the identity of a hook's interrupt without the shown arguments. Another reason or expiry makes another
 * interrupt.
 */
function getInterruptIdentity(
  { name }: Middleware,
  { key, payload, expiresMs, onExpire }: InterruptDecision,
  { toolCall }: ToolCallContext,
): string {
  const shown = isPlainObject(payload) && payload["args"] === toolCall.args ? { ...payload, args: null } : payload;
  return JSON.stringify([name, key, shown, expiresMs, onExpire]);
}

function digestCallArgs({ env, toolCall }: ToolCallContext): string | undefined {
  return digestArgs(env.codec, toolCall.args);
}

const unchangedNote = "but the provider can run the call only unchanged.";

/**
 * Raises an interrupt, or reads its answer: "yes" for the current arguments of the call, otherwise the end of the
 * call.
 */
export function consultPerson(
  call: ToolCallContext,
  tool: Tool<never, never>,
  interrupt: InterruptDecision,
): CallDecision | "yes" {
  const { key, payload } = interrupt;
  checkInterruptKey(call, key);
  call.interruptCount += 1;
  const { id: task } = call.scope.task;
  // A provider tool is never registered in the graph: a missing tool is no reason for a new interrupt.
  const toolIdentity = isProviderCall(call) ? call.block.name : JSON.stringify(toModelTool(tool.spec));
  const reply = call.scope.consult({
    // Each interrupt about a call has its own answer: an approval for the first hook does not approve the second
    // hook.
    id: call.interruptCount === 1 ? `${task}:${call.key}` : `${task}/${call.interruptCount}:${call.key}`,
    key,
    payload:
      isPlainObject(payload) && payload["args"] === call.toolCall.args
        ? { ...payload, args: redactCallArgs(call) }
        : payload,
    schema: toJsonSchema(approval),
    about: fingerprint(`${toolIdentity} ${digestArgs(call.env.codec, call.toolCall.args)}`),
    ...(isProviderCall(call) ? {} : { tool: tool.spec.name }),
    expiry: createApprovalExpiry(interrupt),
  });
  if (call.getState() === "before") call.transition("call.interrupted");
  if ("open" in reply) return { kind: "waiting", open: reply.open };
  const verdict = parseApproval(reply.answer);
  if ("respond" in verdict) return toAnswer(respond(call, verdict.respond));
  if (!verdict.approved) {
    const refused = reply.expired ? "This call was denied" : "A person denied this call";
    return toAnswer(
      denyCall(call, "approval", verdict.reason === undefined ? `${refused}.` : `${refused}: ${verdict.reason}`),
    );
  }
  if (verdict.args === undefined) return "yes";
  if (isProviderCall(call))
    return toAnswer(denyCall(call, "approval", `A person changed the arguments, ${unchangedNote}`));
  const refused = rewriteArgs(call, tool.spec, verdict.args, "approval");
  return refused === undefined ? "yes" : toAnswer(refused);
}

/** Throws `unknown_interrupt` for a key that the graph does not declare, or that is reserved for another interrupt. */
function checkInterruptKey({ position, scope, node, block }: ToolCallContext, key: string): void {
  const { graph } = position.plan;
  const reservedFor =
    key === inDoubtKey ? "calls in doubt" : node.registry.get(key)?.spec.client === true && "a tool's answer";
  if (!reservedFor && isDeclared(scope.session, key)) return;
  throw new StatewrightError("unknown_interrupt", {
    what: reservedFor
      ? `middleware of the node "${scope.task.node}" raised the interrupt "${key}", which is reserved for ${reservedFor}`
      : `middleware of the node "${scope.task.node}" raised the interrupt "${key}", which the graph "${graph.name}" does not declare`,
    next: reservedFor ? "Use another key" : `Add it to the graph's interrupts: { ${key}: approval }`,
    place: getErrorPlace(position, { node: scope.task.node, tool: block.name, callId: block.id }),
  });
}

/**
 * True when the graph or an enclosing graph declares the interrupt. Middleware of enclosing graphs raises interrupts
 * here too.
 */
function isDeclared(session: Session, key: string): boolean {
  for (let current: Session | undefined = session; current !== undefined; current = current.lineage.parent?.session)
    if (Object.hasOwn(current.position.plan.graph.interrupts, key)) return true;
  return false;
}

/** Creates the expiry of an approval, with its default answer. */
function createApprovalExpiry({ expiresMs, onExpire = "deny" }: AskOptions): Expiry | undefined {
  if (expiresMs === undefined) return undefined;
  const answer: ApprovalAnswer = onExpire === "allow" ? true : { approved: false, reason: "no answer in time" };
  return { ms: expiresMs, answer: { value: answer } };
}

/** Parses an approval answer. Any value except a clear approval or a `respond` is a denial. */
function parseApproval(answer: unknown): ApprovalVerdict | { readonly respond: string } {
  const parsed = parseWith(approval, answer);
  if (!parsed.ok) return { approved: false, reason: "the answer is invalid" };
  return typeof parsed.value === "boolean" ? { approved: parsed.value } : parsed.value;
}
