/** `once` tool calls in doubt: the start is recorded, and the outcome is unknown. */

import { type EffectRow, type InterruptRow, isInFlight } from "../../checkpoint/journal.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import type { Tool, ToolCall, ToolRuntime } from "../../tool/definition/tool.ts";
import { isToolError } from "../../tool/definition/tool-error.ts";
import { type InDoubtAnswer, inDoubtAnswer, inDoubtKey } from "../../tool/policy/approval.ts";
import { applyErrorPolicy, type ToolResult, toErrorResult, toResult } from "../../tool/result.ts";
import { createStartDoubt, type DoubtAnswer, type DoubtDecision, decideDoubt } from "../journal/decide-effect.ts";
import type { InterruptRequest, TaskScope } from "../session/scope.ts";
import { validateResult } from "./attempt-call.ts";
import { getResultFields, redactCallArgs, type ToolCallContext } from "./context.ts";
import { finalizeCall } from "./finalize-call.ts";
import { loadStartedCall } from "./start-args.ts";
import { createInjectionSource, createToolRuntime, type Execution } from "./tool-runtime.ts";

/**
 * Decides about a `once` call that had started when its process died, by the answer of a person. Returns undefined for
 * another call, and for a tool that can reconcile, unless a displaced owner may still run the call.
 */
export function decideStartedCall(
  call: ToolCallContext,
  known: EffectRow | undefined,
): DoubtDecision<InDoubtAnswer, InterruptRow> | undefined {
  const { block, scope } = call;
  if (known === undefined || !isInFlight(known) || known.effect !== "once") return undefined;
  const startedCall = loadStartedCall(call);
  if (canReconcile(call, startedCall) && !isDisplaced(call)) return undefined;
  const { idempotencyKey, startedAt } = known;
  const args = startedCall === undefined ? notSaved : redactCallArgs(call, startedCall.args);
  return decideDoubt(call.env.onPriorEffect, createStartDoubt<InDoubtAnswer>(known), ({ about }) =>
    consultAboutCall(scope, {
      id: `${scope.task.id}:${call.key}:${inDoubtKey}`,
      about,
      payload: { callId: block.id, tool: block.name, args, idempotencyKey, startedAt },
    }),
  );
}

/**
 * Asks the tool whether a call has happened that a displaced owner may still run. Returns the result of a call that
 * happened; undefined otherwise, because a call that has not happened may happen later: a person decides.
 */
export async function reconcileDisplacedCall(
  call: ToolCallContext,
  known: EffectRow | undefined,
): Promise<ToolResult | undefined> {
  if (known === undefined || !isInFlight(known) || known.effect !== "once") return undefined;
  if (!canReconcile(call, loadStartedCall(call))) return undefined;
  return await createReconcile(call, call.tool)?.(known.idempotencyKey);
}

function canReconcile({ tool }: ToolCallContext, startedCall: ToolCall | undefined): boolean {
  return tool?.reconcile !== undefined && startedCall !== undefined;
}

/** Returns true if a displaced owner of the thread may still run its calls. */
export function isDisplaced({ journal: { saved } }: ToolCallContext): boolean {
  return saved?.claim.previousOwner === "displaced";
}

/** Returns the answer about a call in doubt, or the open interrupt. */
export function consultAboutCall(
  scope: TaskScope,
  request: Pick<InterruptRequest, "id" | "about" | "payload">,
): DoubtAnswer<InDoubtAnswer> | { readonly open: InterruptRow } {
  const response = scope.consult({ ...request, key: inDoubtKey, schema: toJsonSchema(inDoubtAnswer) });
  if ("open" in response) return response;
  const answer = response.answer as InDoubtAnswer;
  return { happened: answer.happened, statesValue: answer.content !== undefined, getValue: () => answer };
}

/** Placeholder for arguments that could not be saved or contain a secret. */
const notSaved = "[not saved]";

/** Returns the result of a call that happened, from the answer of a person. */
export async function finalizeInDoubt(
  call: ToolCallContext,
  { content }: InDoubtAnswer,
  startedCall: ToolCall | undefined,
): Promise<ToolResult> {
  call.toolCall = startedCall ?? call.toolCall;
  if (call.getState() === "executing") call.transition("call.finished");
  const text = content ?? "A person has confirmed that this happened. Its result is not known.";
  return finalizeCall(call, toResult(text, getResultFields(call, 1)));
}

/** Resolves to the result of a call in doubt; undefined when its effect did not happen. */
export type ReconcileCall = (idempotencyKey: string) => Promise<ToolResult | undefined>;

/** Creates the reconcile function of a call in doubt; undefined when its tool has none. */
export function createReconcile(
  call: ToolCallContext,
  tool: Tool<never, never> | undefined,
  injected: () => unknown = () => tool?.resolve?.(createInjectionSource(call)),
): ReconcileCall | undefined {
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
  return finalizeCall(call, found);
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
    const happened = await tool.reconcile?.(call.progress.state as never, runtime as never, startedCall);
    return happened === undefined ? undefined : validateResult(call, tool.spec, happened, 1);
  } catch (thrown) {
    if (!isToolError(thrown) || thrown.kind !== "unknown_outcome") throw thrown;
    return applyErrorPolicy(toErrorResult(thrown, getResultFields(call, 1)), tool.spec.onError ?? "return");
  }
}
