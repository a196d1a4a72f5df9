/**
 * Runs a single tool call through its machine, from received to answered, in three stages: prepare, execute and
 * finalize. The result is a recorded effect; a replay calls no hooks.
 */

import { StatewrightError } from "../../base/errors.ts";
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import { getToolCallMachine, type ToolCallState } from "../../compile/tool-call-machine.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { Tool, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import type { InDoubtAnswer } from "../../tool/policy/approval.ts";
import { isResult, type ToolResult, toErrorResult } from "../../tool/result.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { digestArgs } from "../journal/args-digest.ts";
import { cancelUnusedStart, takePlannedStart } from "../journal/commit-start.ts";
import { type DoubtDecision, unwrapOutcome } from "../journal/decide-effect.ts";
import { toKnownUsage } from "../journal/effect-attempts.ts";
import { adoptPriorEffect, createIdempotencyKey, type EffectIdentity, runRecordedEffect } from "../journal/journal.ts";
import { exposeCallChanges } from "../journal/long-term-writes.ts";
import { findPriorEffects } from "../journal/prior-effects.ts";
import { createTableKernel, type Kernel } from "../kernel/kernel.ts";
import { resolveTool } from "../model-call/advertised-tools.ts";
import type { Journal } from "../session/parts/journal.ts";
import { type Persistence, type PlannedStart, toJournalKey } from "../session/parts/persistence.ts";
import { isSuspension } from "../session/preemption.ts";
import type { TaskScope } from "../session/scope.ts";
import { inspectCall } from "../superstep/inspect-run.ts";
import {
  createReconcile,
  decideStartedCall,
  finalizeInDoubt,
  isDisplaced,
  type ReconcileCall,
  reconcileDisplacedCall,
} from "./call-in-doubt.ts";
import { askClient } from "./client-call.ts";
import { emitCallEvent, getResultFields, type ToolCallContext, type ToolCallParts } from "./context.ts";
import { executeCall } from "./execute-call.ts";
import { ensureApplicable, finalizeCall, withholdResult } from "./finalize-call.ts";
import { addUsage, isSuspendedCall } from "./graph-call.ts";
import { hasStarted, prepareCall } from "./prepare-call.ts";
import { type PriorCallDecision, resolvePriorCall } from "./prior-call.ts";
import { loadStartedCall, recordStartArgs } from "./start-args.ts";
import type { ToolCallBatch } from "./tool-call-batch.ts";
import { type CallLocks, createCallLocks } from "./tool-call-batch.ts";
import { createInjectionSource } from "./tool-runtime.ts";

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

/** A call of a tool node: its batch, and the answer of a call that steering skips before its start. */
interface ToolCallRequest {
  readonly open: PendingCall;
  readonly batch: ToolCallBatch;
  readonly skipError?: ToolError | undefined;
}

/** Runs a single call to its answer. */
export async function runToolCall(
  session: ToolCallParts,
  scope: TaskScope,
  node: ToolNode<never, never>,
  request: ToolCallRequest,
): Promise<CallEnd> {
  const { journal, position } = session;
  const plannedStart = takePlannedStart(journal, toJournalKey(position.step, scope.task.id, request.open.key));
  if (plannedStart === undefined) return answerCall(session, scope, node, { request, plannedStart });
  try {
    return await answerCall(session, scope, node, { request, plannedStart });
  } finally {
    cancelUnusedStart(journal, plannedStart);
  }
}

/** A call, with its start when it is durable already. */
interface StartableCall {
  readonly request: ToolCallRequest;
  readonly plannedStart: PlannedStart | undefined;
}

async function answerCall(
  session: ToolCallParts,
  scope: TaskScope,
  node: ToolNode<never, never>,
  { request, plannedStart }: StartableCall,
): Promise<CallEnd> {
  const journalRowKey = toJournalKey(session.position.step, scope.task.id, request.open.key);
  const recordedRow = session.journal.saved?.rows.get(journalRowKey);
  const call = createCallContext(session, scope, node, { request, recordedRow, plannedStart });
  const attempts =
    recordedRow?.state === "ok" ? recordedRow.attempts : getAnsweredAttempts(session.journal, journalRowKey);
  if (attempts !== undefined) return replayCall(call, attempts);
  if (request.skipError !== undefined && shouldSkip(call)) return skipCall(call, request.skipError);
  const preparation = prepareCall(call);
  const prepared = preparation instanceof Promise ? await preparation : preparation;
  if (prepared.kind === "waiting") return suspendForInterrupt(call, prepared.open);
  const found = isDisplaced(call) ? await reconcileDisplacedCall(call, recordedRow) : undefined;
  if (found !== undefined) return recordReconciled(call, found);
  const doubt = decideStartedCall(call, recordedRow);
  if (doubt?.kind === "waiting") return suspendForInterrupt(call, doubt.open);
  const applyDecision = doubt === undefined ? undefined : () => applyInDoubtDecision(call, doubt);
  // A `once` call that had started before a crash stays in doubt, whatever is decided about the call now.
  const unrunEffect = recordedRow?.effect === "once" ? "once" : "pure";
  if (prepared.kind === "answer") {
    const reconcileCall = applyDecision ?? createReconcile(call, call.tool);
    return recordUnrun(call, prepared.result, { effect: unrunEffect, reconcileCall });
  }
  let { tool } = prepared;
  if (tool.spec.client === true) {
    const clientRequest = askClient(call, tool.spec);
    if ("open" in clientRequest) return suspendForInterrupt(call, clientRequest.open);
    tool = { ...tool, call: clientRequest.output };
  }
  const effect = getCallEffect(tool);
  const { saved } = session.journal;
  const args =
    effect === "once" && saved !== undefined
      ? (plannedStart?.row.args ?? digestArgs(session.env.codec, call.toolCall.args))
      : undefined;
  // Also checked when the call had started on this branch: another branch may have run it since.
  if (effect === "once" && saved !== undefined && doubt?.kind !== "happened") {
    const journals = findPriorEffects(session.env, session.position, saved);
    const priorEffect = journals === undefined ? undefined : resolvePriorCall(call, saved, args, await journals);
    if (priorEffect?.kind === "waiting") return suspendForInterrupt(call, priorEffect.open);
    if (priorEffect !== undefined)
      return { kind: "answered", result: ensureApplicable(call, await recordPriorEffect(call, saved, priorEffect)) };
  }
  const injected = tool.resolve === undefined ? undefined : await tool.resolve(createInjectionSource(call));
  const reconcileCall = applyDecision ?? createReconcile(call, tool, () => injected);
  const locks = createCallLocks(tool.spec, session.env.world);
  const lockError = locks === undefined ? undefined : await acquireCallLocks(call, locks);
  if (lockError !== undefined) return recordUnrun(call, lockError, { effect: unrunEffect, reconcileCall });
  call.locks = locks;
  try {
    const execute = async (idempotencyKey: string): Promise<ToolResult> => {
      try {
        const executed = await executeCall(call, tool, { idempotencyKey, injected });
        locks?.release();
        return await finalizeCall(call, executed);
      } catch (thrown) {
        if (effect !== "once" || !call.hasSettled) throw thrown;
        return withholdResult(call, thrown);
      }
    };
    const result = await recordResult(call, effect, execute, { reconcileCall, args });
    if (call.failure !== undefined) throw call.failure;
    return { kind: "answered", result };
  } catch (thrown) {
    if (!isSuspendedCall(thrown)) throw thrown;
    const { stop } = thrown;
    return suspendCall(call, stop.kind === "waiting" ? { kind: stop.kind, open: stop.interrupts } : stop);
  } finally {
    locks?.release();
  }
}

/** Creates the context of a call, with its machine in the first state. */
function createCallContext(
  { env, position, progress, events, journal, signals, inboxes }: ToolCallParts,
  scope: TaskScope,
  node: ToolNode<never, never>,
  {
    request: { open, batch },
    recordedRow,
    plannedStart,
  }: StartableCall & { readonly recordedRow: EffectRow | undefined },
): ToolCallContext {
  kernel ??= createTableKernel(getToolCallMachine(), (event) => event.type);
  const machine = kernel;
  const first = machine.enter();
  const { block, key, index, message } = open;
  const inspect = inspectCall(position, events, scope, { id: block.id, first });
  let snapshot = first[0];
  // Each field by name: an object of this size that begins with a spread costs 1 KB more per call.
  return {
    block,
    key,
    index,
    message,
    env,
    position,
    progress,
    events,
    journal,
    signals,
    inboxes,
    scope,
    node,
    tool: resolveTool(node, open),
    batch,
    locks: undefined,
    modelUsage: undefined,
    ownUsage: undefined,
    hasStarted: hasStarted(position, journal, scope, { call: open, known: recordedRow }),
    hasSlot: false,
    plannedStart,
    getState: () => snapshot.value as ToolCallState,
    transition: (type) => {
      const step = machine.step(snapshot, { type });
      snapshot = step[0];
      inspect?.({ type }, step);
    },
    startedAt: env.world.clock.monotonic(),
    toolCall: { id: block.id, name: block.name, args: block.args },
    parsedCall: undefined,
    startedCall: undefined,
    isAttemptActive: false,
    hasSettled: false,
    withheldUpdates: 0,
    interruptCount: 0,
    approvedDigest: undefined,
    artifacts: undefined,
    longTerm: undefined,
    failure: undefined,
  };
}

/**
 * Returns the effect class of a call. The answer of a client tool is saved, so reading the answer again has no effect.
 * A graph continues from its checkpoint; its own nodes and calls protect their `once` effects.
 */
export function getCallEffect({ spec, graph }: Tool<never, never>): ToolSpec["effect"] {
  if (spec.client === true) return "pure";
  return graph === undefined ? spec.effect : "idempotent";
}

/** Returns the recorded answer of a call that ran before. */
async function replayCall(call: ToolCallContext, attempts: number): Promise<CallEnd> {
  exposeCallChanges(call);
  if (attempts > 0) call.batch.limit?.acquire(true);
  const result = await recordResult(call, "pure", () => throwUnreachable(call));
  return { kind: "answered", result: ensureApplicable(call, result) };
}

/** Records the answer of a call that does not run: denied by a hook, answered by a person, or without its locks. */
async function recordUnrun(
  call: ToolCallContext,
  answer: ToolResult,
  { effect, reconcileCall }: { readonly effect: ToolSpec["effect"]; readonly reconcileCall: ReconcileCall | undefined },
): Promise<CallEnd> {
  call.transition("call.finished");
  const result = await recordResult(call, effect, () => finalizeCall(call, answer), { reconcileCall });
  return { kind: "answered", result };
}

/** Records the result of a `once` call that its tool has confirmed. */
async function recordReconciled(call: ToolCallContext, found: ToolResult): Promise<CallEnd> {
  const reconcileCall = async (): Promise<ToolResult> => found;
  const result = await recordResult(call, "once", () => throwUnreachable(call), { reconcileCall });
  return { kind: "answered", result };
}

/** Applies the decision about a started call: resolves to its result, or to undefined when it did not happen. */
async function applyInDoubtDecision(
  call: ToolCallContext,
  decision: DoubtDecision<InDoubtAnswer, InterruptRow>,
): Promise<ToolResult | undefined> {
  return decision.kind === "happened"
    ? finalizeInDoubt(call, unwrapOutcome(decision.outcome), loadStartedCall(call))
    : undefined;
}

/** Waits for the locks of a call. Resolves to undefined when acquired, else to the error result of the call. */
async function acquireCallLocks(call: ToolCallContext, locks: CallLocks): Promise<ToolResult | undefined> {
  const signal = call.scope.getSignal();
  try {
    if ((await locks.acquire(call.toolCall.args, signal)) && !signal.aborted) return undefined;
  } catch (thrown) {
    if (!isToolError(thrown)) throw thrown;
    return toErrorResult(thrown, getResultFields(call, 0));
  }
  locks.release();
  if (isSuspension(signal.reason)) throw signal.reason;
  call.transition("call.cancelled");
  return toErrorResult(ToolError.cancelled(), getResultFields(call, 0));
}

/** Returns the attempts of a call that this process has already answered; undefined otherwise. */
function getAnsweredAttempts({ outcomes }: Journal, journalRowKey: string): number | undefined {
  const known = outcomes.get(journalRowKey);
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
    finalizeCall(call, toErrorResult(reason, getResultFields(call, 0))),
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
    const result = await finalizeCall(call, addUsage(call, cancelled));
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
  let value = result;
  if (!isResult(value)) value = await finalizeInDoubt(call, value, undefined);
  else for (const event of ["call.finished", "call.reviewed", "call.persisted"] as const) call.transition(event);
  const { scope, key, block } = call;
  const identity: EffectIdentity<ToolResult> = {
    task: scope.task,
    key,
    kind: "tool",
    name: block.name,
    onCommitted: (committed) => finishCall(call, committed, "new"),
  };
  return adoptPriorEffect(call, saved, identity, { priorRow: found.row, value });
}

/** Records the call's result; emits the final event after the result is durable. */
function recordResult(
  call: ToolCallContext,
  effect: ToolSpec["effect"],
  execute: (idempotencyKey: string) => ToolResult | Promise<ToolResult>,
  {
    reconcileCall,
    args,
  }: { readonly reconcileCall?: ReconcileCall | undefined; readonly args?: string | undefined } = {},
): Promise<ToolResult> {
  return runRecordedEffect<ToolResult>(call, {
    task: call.scope.task,
    key: call.key,
    kind: "tool",
    name: call.block.name,
    onCommitted: (result, reused) => finishCall(call, result, reused ? "reused" : "new"),
    effect,
    args,
    execute,
    plannedStart: effect === "once" ? call.plannedStart?.row : undefined,
    reconcile: reconcileCall,
    beforeStart: effect === "once" ? () => recordStartArgs(call) : undefined,
    countAttempts: getAttempts,
    getFailureKind: ({ error }) => error?.kind,
    getUsage: () => toKnownUsage(call.ownUsage),
    isResumable: call.tool?.graph !== undefined,
    getArtifacts: () => call.artifacts,
    getStage: call.getState,
  });
}

function getAttempts({ attempts }: ToolResult): number {
  return attempts;
}

/** Emits the final event of a call with a durable result; a reused result has no event. */
function finishCall(call: ToolCallContext, result: ToolResult, origin: "new" | "reused"): void {
  if (origin === "new") {
    call.transition("call.answered");
    emitCallEvent(call, result.isError ? { type: "tool.failed", result } : { type: "tool.completed", result });
  }
  call.batch.notifyFinished();
}

function throwUnreachable(call: ToolCallContext): never {
  throw new StatewrightError("machine_failed", {
    what: `the recorded call ${createIdempotencyKey(call.position, call.scope.task, call.key)} was about to run again`,
    next: "Report this with the thread's rows",
  });
}
