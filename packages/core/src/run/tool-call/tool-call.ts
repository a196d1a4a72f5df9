/**
 * Runs one tool call through its machine, from received to answered. The result is a recorded effect; a replay calls
 * no hooks.
 */

import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { type EffectRow, type InterruptRow, isInFlight } from "../../checkpoint/journal.ts";
import { type ToolCallState, toolCallMachine } from "../../compile/tool-call-machine.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import { plainCodec } from "../../state/codec.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import type { Tool, ToolCall, ToolRuntime, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import { type InDoubtAnswer, inDoubtAnswer, inDoubtKey } from "../../tool/policy/approval.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { applyErrorPolicy, isResult, type ToolResult, toErrorResult, toResult } from "../../tool/result.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { digestArgs } from "../journal/args-digest.ts";
import {
  adoptPriorEffect,
  createIdempotencyKey,
  describeStart,
  type EffectIdentity,
  perform,
} from "../journal/journal.ts";
import { exposeCallChanges, recordChanges } from "../journal/long-term-writes.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import { findPriorEffects } from "../journal/prior-effects.ts";
import { createTableKernel, type Kernel } from "../kernel/kernel.ts";
import { resolveTool } from "../model-call/advertised-tools.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, toJournalKey } from "../session/parts/persistence.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { validateEncodable } from "../session/validate-writes.ts";
import { inspectCall } from "../superstep/inspect-run.ts";
import { acquireCallLocks } from "./acquire-call-locks.ts";
import { validateResult } from "./attempt-call.ts";
import { createCallLocks } from "./call-locks.ts";
import { askClient } from "./client-call.ts";
import {
  emitCallEvent,
  getResultFields,
  handleHookError,
  listCallMiddleware,
  redactCallArgs,
  type ToolCallContext,
} from "./context.ts";
import { decideInOrder, hasStarted } from "./decide-in-order.ts";
import { executeCall } from "./execute-call.ts";
import { addUsage, isSuspendedCall } from "./graph-call.ts";
import { canStoreArtifacts, presentResult } from "./present-result.ts";
import { type PriorCallDecision, resolvePriorCall } from "./prior-call.ts";
import { loadStartedCall, recordStartArgs } from "./start-args.ts";
import type { ToolCallBatch } from "./tool-call-batch.ts";
import { createInjectionSource, createToolRuntime, type Execution } from "./tool-runtime.ts";

/** End of a call attempt: the answer, or a suspension. */
export type CallEnd =
  | { readonly kind: "answered"; readonly result: ToolResult }
  | (Suspension & {
      /** Answers the call after a cancel of the run, in place of the interrupt. */
      readonly cancel: () => Promise<ToolResult>;
    });

/** Suspended call: waits for interrupts, or its graph stopped at a boundary on request. */
type Suspension =
  | { readonly kind: "waiting"; readonly open: readonly InterruptRow[] }
  | { readonly kind: "paused"; readonly cause: StatewrightError };

let kernel: Kernel | undefined;

/** Options of `runToolCall`. */
interface RunToolCallOptions {
  readonly open: PendingCall;
  readonly set: ToolCallBatch;
  readonly skipError?: ToolError | undefined;
}

/** Runs one call to its answer; `skipError` is the answer of a call that has not started, after a steering message. */
export async function runToolCall(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  { open, set, skipError }: RunToolCallOptions,
): Promise<CallEnd> {
  kernel ??= createTableKernel(toolCallMachine, (event) => event.type);
  const machine = kernel;
  const first = machine.enter();
  const inspect = inspectCall(session.position, session.events, scope, { id: open.block.id, first });
  let [at] = first;
  const { block } = open;
  const journalRowKey = toJournalKey(session.position.step, scope.task.id, open.key);
  const recordedRow = session.journal.saved?.journal.get(journalRowKey);
  const call: ToolCallContext = {
    ...open,
    session,
    scope,
    node,
    tool: resolveTool(node, open),
    batch: set,
    locks: undefined,
    hasStarted: hasStarted(session.position, session.journal, scope, { call: open, known: recordedRow }),
    hasSlot: false,
    getState: () => at.value as ToolCallState,
    transition: (type) => {
      const step = machine.step(at, { type });
      [at] = step;
      inspect?.({ type }, step);
    },
    startedAt: session.env.world.clock.monotonic(),
    toolCall: { id: block.id, name: block.name, args: block.args },
    parsedCall: undefined,
    startedCall: undefined,
    isAttemptActive: false,
    interruptCount: 0,
    approvedDigest: undefined,
    artifacts: undefined,
    longTerm: undefined,
  };
  const attempts =
    recordedRow?.state === "ok" ? recordedRow.attempts : getAnsweredAttempts(session.journal, journalRowKey);
  if (attempts !== undefined) {
    exposeCallChanges(call);
    if (attempts > 0) set.limit?.acquire(true);
    return { kind: "answered", result: await recordResult(call, "pure", () => throwUnreachable(call)) };
  }
  if (skipError !== undefined && shouldSkip(call)) return skipCall(call, skipError);
  const admission = decideInOrder(call);
  const prepared = admission instanceof Promise ? await admission : admission;
  if (prepared.kind === "waiting") return suspendForInterrupt(call, prepared.open);
  const doubt = consultInDoubt(call, recordedRow);
  if (doubt !== undefined && "open" in doubt) return suspendForInterrupt(call, doubt.open);
  const concludeAnswer = doubt === undefined ? undefined : () => concludeInDoubt(call, doubt, loadStartedCall(call));
  // A `once` call that had started before a crash stays in doubt, whatever is decided about the call now.
  const unrunEffect = recordedRow?.effect === "once" ? "once" : "pure";
  if (prepared.kind === "answer") {
    call.transition("call.finished");
    const reconcileCall = concludeAnswer ?? createReconcile(call, call.tool);
    return {
      kind: "answered",
      result: await recordResult(call, unrunEffect, () => concludeCall(call, prepared.result), { reconcileCall }),
    };
  }
  let { tool } = prepared;
  if (tool.spec.client === true) {
    const clientRequest = askClient(call, tool.spec);
    if ("open" in clientRequest) return suspendForInterrupt(call, clientRequest.open);
    tool = { ...tool, call: clientRequest.output };
  }
  // The answer of a client tool is saved, so reading it again has no effect. A graph continues from its checkpoint;
  // its own nodes and calls protect their `once` effects.
  const effect = tool.spec.client === true ? "pure" : tool.graph === undefined ? tool.spec.effect : "idempotent";
  const { saved } = session.journal;
  const args = effect === "once" && saved !== undefined ? digestArgs(session.env.codec, call.toolCall.args) : undefined;
  // Also checked when the call had started on this branch: another branch may have run it since.
  if (effect === "once" && saved !== undefined && doubt?.happened !== true) {
    const journals = findPriorEffects(session.env, session.position, saved);
    const priorEffect = journals === undefined ? undefined : resolvePriorCall(call, saved, args, await journals);
    if (priorEffect?.kind === "waiting") return suspendForInterrupt(call, priorEffect.open);
    if (priorEffect !== undefined)
      return { kind: "answered", result: await recordPriorEffect(call, saved, priorEffect) };
  }
  const injected = tool.resolve === undefined ? undefined : await tool.resolve(createInjectionSource(call));
  const ask = concludeAnswer ?? createReconcile(call, tool, () => injected);
  const locks = createCallLocks(tool.spec, session.env.world);
  const lockError = locks === undefined ? undefined : await acquireCallLocks(call, locks);
  if (lockError !== undefined) {
    call.transition("call.finished");
    return {
      kind: "answered",
      result: await recordResult(call, unrunEffect, () => concludeCall(call, lockError), { reconcileCall: ask }),
    };
  }
  call.locks = locks;
  try {
    const result = await recordResult(
      call,
      effect,
      async (idempotencyKey) => {
        const executed = await executeCall(call, tool, { idempotencyKey, injected });
        locks?.release();
        return concludeCall(call, executed);
      },
      { reconcileCall: ask, args },
    );
    return { kind: "answered", result };
  } catch (thrown) {
    if (!isSuspendedCall(thrown)) throw thrown;
    const { stop } = thrown;
    return suspendCall(call, stop.kind === "waiting" ? { kind: stop.kind, open: stop.interrupts } : stop);
  } finally {
    locks?.release();
  }
}

/** Returns the attempts of a call that this process has already answered; undefined otherwise. */
function getAnsweredAttempts({ outcomes }: Journal, place: string): number | undefined {
  const known = outcomes.get(place);
  return known !== undefined && "value" in known ? getAttempts(known.value as ToolResult) : undefined;
}

/** Returns true if steering skips the call: the call has not started, and its tool does not opt out. */
function shouldSkip({ hasStarted, tool, scope }: ToolCallContext): boolean {
  return !hasStarted && tool?.spec.execution.onSteer !== "run" && !scope.getSignal().aborted;
}

async function skipCall(call: ToolCallContext, reason: ToolError): Promise<CallEnd> {
  call.transition("call.skipped");
  emitCallEvent(call, { type: "tool.rejected", reason: "skipped" });
  call.transition("call.finished");
  const result = await recordResult(call, "pure", () =>
    concludeCall(call, toErrorResult(reason, getResultFields(call, 0))),
  );
  return { kind: "answered", result };
}

/** Suspends the call for an interrupt. */
function suspendForInterrupt(call: ToolCallContext, open: InterruptRow): CallEnd {
  return suspendCall(call, { kind: "waiting", open: [open] });
}

/** Suspends the call. A cancel answers the call as usual, including the after hooks. */
function suspendCall(call: ToolCallContext, suspension: Suspension): CallEnd {
  const cancel = async (): Promise<ToolResult> => {
    if (["before", "waitingHuman", "executing"].includes(call.getState())) call.transition("call.cancelled");
    call.transition("call.finished");
    const cancelled = toErrorResult(ToolError.cancelled(), getResultFields(call, 0));
    const result = await concludeCall(call, addUsage(call, cancelled));
    call.transition("call.answered");
    emitCallEvent(call, { type: "tool.failed", result });
    return result;
  };
  return { ...suspension, cancel };
}

/** Records the outcome of another branch as this call's result. */
async function recordPriorEffect(
  call: ToolCallContext,
  saved: Persistence,
  { found, result }: Extract<PriorCallDecision, { readonly kind: "happened" }>,
): Promise<ToolResult> {
  let counts = result;
  if (!isResult(counts)) counts = (await concludeInDoubt(call, counts, undefined)) as ToolResult;
  else for (const event of ["call.finished", "call.reviewed", "call.persisted"] as const) call.transition(event);
  return adoptPriorEffect(call.session, saved, toEffectIdentity(call), { priorRow: found.row, value: counts });
}

/**
 * Raises the in-doubt interrupt of a `once` call that had started when its process died, if the tool cannot
 * reconcile.
 */
function consultInDoubt(
  call: ToolCallContext,
  known: EffectRow | undefined,
): InDoubtAnswer | { readonly open: InterruptRow } | undefined {
  const { block, scope } = call;
  if (known === undefined || !isInFlight(known) || known.effect !== "once") return undefined;
  const startedCall = loadStartedCall(call);
  if (call.tool?.reconcile !== undefined && startedCall !== undefined) return undefined;
  const { idempotencyKey, startedAt } = known;
  const args = startedCall === undefined ? notSaved : redactCallArgs(call, startedCall.args);
  const response = scope.consult({
    id: `${scope.task.id}:${call.key}:${inDoubtKey}`,
    about: describeStart(known),
    key: inDoubtKey,
    payload: { callId: block.id, tool: block.name, args, idempotencyKey, startedAt },
    schema: toJsonSchema(inDoubtAnswer),
  });
  return "open" in response ? response : (response.answer as InDoubtAnswer);
}

/** Placeholder for arguments that could not be saved or contain a secret. */
const notSaved = "[not saved]";

/** Returns the result from an in-doubt answer; undefined when the effect did not happen. */
async function concludeInDoubt(
  call: ToolCallContext,
  { happened, content }: InDoubtAnswer,
  startedCall: ToolCall | undefined,
): Promise<ToolResult | undefined> {
  if (!happened) return undefined;
  call.toolCall = startedCall ?? call.toolCall;
  if (call.getState() === "executing") call.transition("call.finished");
  const text = content ?? "A person has confirmed that this happened. Its result is not known.";
  return concludeCall(call, toResult(text, getResultFields(call, 1)));
}

/** Creates the reconcile function of a call in doubt; undefined when its tool has none. */
function createReconcile(
  call: ToolCallContext,
  tool: Tool<never, never> | undefined,
  injected: () => unknown = () => tool?.resolve?.(createInjectionSource(call)),
): ((idempotencyKey: string) => Promise<ToolResult | undefined>) | undefined {
  if (tool?.reconcile === undefined) return undefined;
  return async (idempotencyKey) => reconcile(call, tool, { idempotencyKey, injected: await injected() });
}

async function reconcile(
  call: ToolCallContext,
  tool: Tool<never, never>,
  execution: Execution,
): Promise<ToolResult | undefined> {
  const runtime = createToolRuntime(call, tool.spec, execution, {
    attempt: 1,
    signal: call.scope.getSignal(),
    isOpen: () => true,
  });
  const startedCall = loadStartedCall(call) ?? call.toolCall;
  const found = await callReconcile(call, tool, runtime, startedCall);
  if (found === undefined) return undefined;
  call.toolCall = startedCall;
  if (call.getState() === "before") call.transition("call.allowed");
  if (call.getState() === "executing") call.transition("call.finished");
  return concludeCall(call, found);
}

/**
 * Calls the tool's reconcile: returns the result, undefined when the effect did not happen, or an error result for an
 * unknown outcome.
 */
async function callReconcile(
  call: ToolCallContext,
  tool: Tool<never, never>,
  runtime: ToolRuntime,
  startedCall: ToolCall,
): Promise<ToolResult | undefined> {
  try {
    const happened = await tool.reconcile?.(call.session.progress.state as never, runtime as never, startedCall);
    return happened === undefined ? undefined : validateResult(call, tool.spec, happened, 1);
  } catch (thrown) {
    if (!isToolError(thrown) || thrown.kind !== "unknown_outcome") throw thrown;
    return applyErrorPolicy(toErrorResult(thrown, getResultFields(call, 1)), tool.spec.onError ?? "return");
  }
}

/**
 * Calls the after hooks in reverse order, then redacts and validates the result: from the state after to persisted.
 */
function concludeCall(call: ToolCallContext, result: ToolResult): ToolResult | Promise<ToolResult> {
  const middleware = listCallMiddleware(call);
  return middleware.some(({ afterTool }) => afterTool !== undefined)
    ? callAfterHooks(call, middleware, result).then((shown) => presentCallResult(call, shown))
    : presentCallResult(call, result);
}

async function callAfterHooks(
  call: ToolCallContext,
  middleware: readonly Middleware[],
  result: ToolResult,
): Promise<ToolResult> {
  let current = result;
  for (const hook of middleware.toReversed()) {
    try {
      const replaced = await hook.afterTool?.(
        { call: call.toolCall, tool: call.tool?.spec, result: current },
        createHookRuntime(call.session, call.scope, call.key, { middleware: hook }),
      );
      if (replaced !== undefined && !isResult(replaced))
        throw new TypeError("expected a tool result or undefined from the hook");
      current = replaced ?? current;
    } catch (thrown) {
      current = handleHookError(call, hook, "afterTool", thrown) ?? current;
    }
  }
  return current;
}

/** Moves from the state persisting to persisted; synchronous without artifacts. */
function presentCallResult(call: ToolCallContext, result: ToolResult): ToolResult | Promise<ToolResult> {
  call.transition("call.reviewed");
  const prepared = presentResult(call, call.session.env.redactor.redact(result));
  return prepared instanceof Promise
    ? prepared.then((shown) => finishResult(call, shown))
    : finishResult(call, prepared);
}

function finishResult(call: ToolCallContext, shown: ToolResult): ToolResult {
  if (canStoreArtifacts(call)) call.transition("call.persisted");
  return journalLongTermChanges(
    call,
    ensureSavable(call, deepFreeze({ ...shown, callId: call.block.id, name: call.toolCall.name })),
  );
}

/**
 * Journals the long-term store changes of an attempt before its result. A call with an error result changes nothing.
 */
function journalLongTermChanges(call: ToolCallContext, result: ToolResult): ToolResult {
  const { session, scope, key, longTerm } = call;
  if (longTerm === undefined) return result;
  call.longTerm = undefined;
  recordChanges(session.position, session.journal, scope.task, { key, changes: result.isError ? [] : longTerm });
  if (!result.isError && longTerm.length > 0) exposeCallChanges(call);
  return result;
}

/** Replaces a result that cannot be saved with an error result: the tool did run, and the run continues. */
function ensureSavable(call: ToolCallContext, result: ToolResult): ToolResult {
  const { codec } = call.session.env;
  const { saved } = call.session.journal;
  const what = `the result of the tool "${result.name}"`;
  try {
    // In a list, as in the channel of messages.
    if (saved === undefined || codec === plainCodec) validateEncodable(codec, [result], what);
    else codec.encode([result], what);
    return result;
  } catch (cause) {
    const path = isStatewrightError(cause) ? cause.place.path?.replace(/^0\./, "") : undefined;
    const where = path === undefined ? "" : ` (at "${path}")`;
    call.artifacts = undefined;
    const text = `The tool "${result.name}" ran, but its result is not data that can be saved${where}.`;
    return toErrorResult(new ToolError("invalid_output", text, { cause }), getResultFields(call, result.attempts));
  }
}

/** Records the call's result; emits the final event after the result is durable. */
function recordResult(
  call: ToolCallContext,
  effect: ToolSpec["effect"],
  run: (idempotencyKey: string) => ToolResult | Promise<ToolResult>,
  {
    reconcileCall,
    args,
  }: {
    readonly reconcileCall?: ((idempotencyKey: string) => Promise<ToolResult | undefined>) | undefined;
    readonly args?: string | undefined;
  } = {},
): Promise<ToolResult> {
  return perform<ToolResult>(call.session, {
    ...toEffectIdentity(call),
    effect,
    args,
    execute: run,
    reconcile: reconcileCall,
    beforeStart: effect === "once" ? () => recordStartArgs(call) : undefined,
    countAttempts: getAttempts,
    isResumable: call.tool?.graph !== undefined,
    getArtifacts: () => call.artifacts,
    getStage: call.getState,
  });
}

function getAttempts({ attempts }: ToolResult): number {
  return attempts;
}

function toEffectIdentity(call: ToolCallContext): EffectIdentity<ToolResult> {
  return {
    task: call.scope.task,
    key: call.key,
    kind: "tool",
    name: call.block.name,
    onCommitted: (result, reused) => {
      if (!reused) {
        call.transition("call.answered");
        emitCallEvent(call, result.isError ? { type: "tool.failed", result } : { type: "tool.completed", result });
      }
      call.batch.notifyFinished();
    },
  };
}

function throwUnreachable(call: ToolCallContext): never {
  throw new StatewrightError("machine_failed", {
    what: `the recorded call ${createIdempotencyKey(call.session.position, call.scope.task, call.key)} was about to run again`,
    next: "Report this with the thread's rows",
  });
}
