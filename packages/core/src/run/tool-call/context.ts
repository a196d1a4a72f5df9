/**
 * Context of a tool call, shared by the stages prepare, execute and finalize: middleware, events, hook errors, and
 * copies of result data that can be saved.
 */

import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { isData, type Json, type JsonObject } from "../../base/json.ts";
import type { ToolCallEvent, ToolCallState } from "../../compile/tool-call-machine.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { Usage } from "../../model/message.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import { redactArgs } from "../../tool/artifacts/redaction-policy.ts";
import { copyResultData } from "../../tool/copy-result-data.ts";
import type { Tool, ToolCall, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { type ToolOutput, type ToolResult, toErrorResult } from "../../tool/result.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import { emit } from "../events/events.ts";
import type { PlannedStart } from "../session/parts/persistence.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { mergeMiddleware, type RunEnvironment } from "../session/parts/run-environment.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import type { CallLocks, ToolCallBatch } from "./tool-call-batch.ts";

/** Parts of the session that a tool call may touch. */
export type ToolCallParts = Omit<Session, "lineage">;

/** Context of a tool call in execution. */
export interface ToolCallContext extends PendingCall, ToolCallParts {
  readonly scope: TaskScope;
  readonly node: ToolNode<never, never>;
  /** Tool of the call; undefined for an unknown tool name. */
  readonly tool: Tool<never, never> | undefined;
  /** Batch of all calls of the message. */
  readonly batch: ToolCallBatch;
  /** Undefined when the tool has no lock. */
  locks: CallLocks | undefined;
  /**
   * True when another process started the call, or a person approved the call. No limit and no steering message stops
   * such a call.
   */
  readonly hasStarted: boolean;
  /** True when the call holds a slot of the call limit. */
  hasSlot: boolean;
  /** Start of the call that is durable already; undefined when the start is committed before the call begins. */
  readonly plannedStart: PlannedStart | undefined;
  /** Returns the state of the call's machine. */
  readonly getState: () => ToolCallState;
  readonly transition: (event: ToolCallEvent) => void;
  readonly startedAt: number;
  /** Current call: as the model made it, then parsed, then as hooks and people changed it. */
  toolCall: ToolCall;
  /** Call as parsed, before changes by hooks and people; undefined before parsing. */
  parsedCall: ToolCall | undefined;
  /** Call as recorded with its start, for a `once` tool. */
  startedCall: ToolCall | undefined;
  /** True while an attempt is active: progress and events of the tool are emitted. */
  isAttemptActive: boolean;
  /** True when the attempts of the tool have a result: the effect of the call has happened, or has failed. */
  hasSettled: boolean;
  /** Number of updates and progress lines that could not be shown. */
  withheldUpdates: number;
  /** Number of interrupts raised about the call. */
  interruptCount: number;
  /** Digest of the approved arguments; undefined without an approval. */
  approvedDigest: string | undefined;
  /** Artifacts to commit with the outcome. */
  artifacts: readonly ArtifactWrite[] | undefined;
  /** Usage of the answers of `generate` by journal key; undefined without one. */
  modelUsage: Map<string, Usage | undefined> | undefined;
  /** Tokens that the tool reported and that no journal row has: of its own model calls, or of an unsaved graph. */
  ownUsage: Usage | undefined;
  /** Long-term store changes of the active attempt; undefined when no attempt is active. */
  longTerm: LongTermChange[] | undefined;
  /** Error that fails the run after the outcome of the call is recorded; undefined without one. */
  failure: StatewrightError | undefined;
}

/** True for a provider-executed call that needs an approval. */
export function isProviderCall({ block }: PendingCall): boolean {
  return block.approval !== undefined && block.refused === undefined;
}

/** Lists the middleware around the call, outermost first: middleware of the enclosing graphs, then of the node. */
export function listCallMiddleware({ env, node }: ToolCallContext): readonly Middleware[] {
  return listNodeMiddleware(env, node);
}

/** Lists the middleware around the tool calls of a node. */
export function listNodeMiddleware(env: RunEnvironment, node: ToolNode<never, never>): readonly Middleware[] {
  return mergeMiddleware(env, node.middleware as readonly Middleware[]);
}

/** Returns the redacted arguments for events and interrupts. */
export function redactCallArgs(call: ToolCallContext, value: unknown = call.toolCall.args): unknown {
  const tool = call.tool?.spec;
  const { redactor } = call.env;
  if (tool === undefined) return redactor.redactUncommon(value);
  let args = redactArgs(tool.safety.redact, value as Json);
  for (const { name, showArgs } of listCallMiddleware(call)) {
    if (showArgs === undefined) continue;
    try {
      args = showArgs({ call: call.toolCall, tool, args });
    } catch (thrown) {
      call.env.world.log("warn", `showArgs of middleware "${name}" failed`, {
        callId: call.block.id,
        error: toRedactedRecord(call.env.redactor, thrown),
      });
      return "[withheld]";
    }
  }
  return redactor.redactUncommon(args);
}

/** Returns the identifying fields and timings of a tool result. */
export function getResultFields(
  call: ToolCallContext,
  attemptsMade: number,
): { readonly callId: string; readonly name: string; readonly attempts: number; readonly elapsedMs: number } {
  return {
    callId: call.block.id,
    name: call.block.name,
    attempts: attemptsMade,
    elapsedMs: call.env.world.clock.monotonic() - call.startedAt,
  };
}

/** Returns the time limit of an attempt in milliseconds: of the tool, of its node, or of the graph. */
export function getTimeoutMs({ node, position }: ToolCallContext, spec: ToolSpec): number | undefined {
  const timeoutMs = spec.timeoutMs ?? node.timeoutMs ?? position.plan.graph.toolTimeoutMs;
  return timeoutMs === Number.POSITIVE_INFINITY ? undefined : timeoutMs;
}

type CallEventBody =
  | { readonly type: "tool.started" | "tool.body_started"; readonly args: unknown }
  | { readonly type: "tool.args_rewritten"; readonly by: string; readonly args: unknown; readonly raw?: unknown }
  | { readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] }
  | { readonly type: "tool.rejected"; readonly reason: string }
  | { readonly type: "tool.denied"; readonly by: string; readonly reason: string }
  | { readonly type: "tool.update"; readonly partial: ToolOutput }
  | { readonly type: "tool.update_withheld"; readonly count: number }
  | { readonly type: "tool.progress"; readonly text: string }
  | { readonly type: "tool.retried"; readonly attempt: number; readonly delayMs: number; readonly error: string }
  | { readonly type: "tool.artifact_lost"; readonly key: string; readonly name: string; readonly error: string }
  | { readonly type: "tool.completed" | "tool.failed"; readonly result: ToolResult };

/** Emits an event of the call if the run has event listeners. */
export function emitCallEvent(call: ToolCallContext, body: CallEventBody): void {
  const { events, scope, block, tool } = call;
  if (!events.stream.hasReaders()) return;
  const label = tool?.spec.label;
  emit(events, {
    ...body,
    node: scope.task.node,
    task: scope.task.id,
    callId: block.id,
    tool: block.name,
    label,
  });
}

/** Emits the start of the call, or of its body, with its current arguments. They are redacted for listeners only. */
export function emitStart(call: ToolCallContext, type: "tool.started" | "tool.body_started"): void {
  if (call.events.stream.hasReaders()) emitCallEvent(call, { type, args: redactCallArgs(call) });
}

/**
 * Handles an error of a hook. A tool error is the answer of the call, an error of required middleware fails the run,
 * any other error is logged and the call continues without the hook.
 */
export function handleHookError(
  call: ToolCallContext,
  middleware: Middleware,
  hook: string,
  thrown: unknown,
): ToolResult | undefined {
  if (isToolError(thrown)) return toErrorResult(thrown, getResultFields(call, 0));
  const { position, env, scope, block } = call;
  if (middleware.required === true) {
    throw new StatewrightError("node_failed", {
      what: `${hook} of the required middleware "${middleware.name}" failed: ${describeThrown(thrown)}`,
      next: "Fix the middleware, then resume the thread: finished work is saved",
      place: getErrorPlace(position, { node: scope.task.node, tool: block.name, callId: block.id }),
      cause: thrown,
    });
  }
  env.world.log("warn", `${hook} of the middleware "${middleware.name}" failed`, {
    callId: block.id,
    error: toRedactedRecord(env.redactor, thrown),
  });
  return undefined;
}

/** Maximum paths of dropped parts in a single warning. */
const maxListed = 20;

/** Copies the data of a result or update of a call, and logs the dropped parts together. */
export interface ResultDataCopier {
  readonly copy: (value: unknown, name: string) => unknown;
  readonly logDropped: () => void;
}

/** Creates a copier; `what` names the result or update in the warning. */
export function createResultDataCopier(call: ToolCallContext, what: string): ResultDataCopier {
  const { env, block } = call;
  const dropped: string[] = [];
  return {
    copy: (value, name) => copyResultData(env.codec, value, name, (path, found) => dropped.push(`${path}: ${found}`)),
    logDropped: () => {
      if (dropped.length === 0) return;
      const hiddenCount = dropped.length - maxListed;
      env.world.log("warn", `${what} of the tool "${block.name}" has no copy of parts that are not data`, {
        callId: block.id,
        dropped: hiddenCount > 0 ? [...dropped.slice(0, maxListed), `${hiddenCount} more`] : dropped,
      });
    },
  };
}

/**
 * Returns the result with data that can be saved. A value with an output schema is not changed: its schema has accepted
 * it, and its encoding decides. Results of tools are copied before; this is for hooks and for errors with details.
 */
export function toSavableResult(call: ToolCallContext, result: ToolResult): ToolResult {
  const { details, provider, value } = result;
  const keepsValue = call.tool?.spec.output !== undefined || isData(value);
  if (isData(details) && isData(provider) && keepsValue) return result;
  const { copy, logDropped } = createResultDataCopier(call, "the result");
  const saved: ToolResult = {
    ...result,
    ...(details === undefined ? {} : { details: copy(details, "details") }),
    ...(provider === undefined ? {} : { provider: copy(provider, "provider") as JsonObject | undefined }),
    ...(keepsValue ? {} : { value: copy(value, "value") }),
  };
  logDropped();
  return saved;
}
