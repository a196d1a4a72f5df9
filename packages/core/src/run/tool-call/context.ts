/** A tool call on its way: what every stage of it knows, says and does alike. */
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { ToolCallEvent, ToolCallState } from "../../compile/tool-call-machine.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import type { AssistantMessage, ToolCallBlock } from "../../model/message.ts";
import type { ArtifactWrite } from "../../tool/artifacts/artifact.ts";
import { maskedArgs } from "../../tool/artifacts/redaction-policy.ts";
import type { Tool, ToolCall } from "../../tool/definition/tool.ts";
import { isToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { resultOfError, type ToolOutput, type ToolResult } from "../../tool/result.ts";
import { recordOf } from "../session/redact-error.ts";
import type { TaskScope } from "../session/scope.ts";
import { emit, placeOf, type Session, withPolicies } from "../session/session.ts";
import type { Supersteps } from "../task/inner-run.ts";
import type { CallLocks } from "./call-locks.ts";
import type { CallSet } from "./tool-call-batch.ts";

/** A call that waits for its answer; its id is unique among those of its message. */
export interface OpenCall {
  readonly block: ToolCallBlock;
  /** What it is known by in the journal, in ledgers and in questions. */
  readonly key: string;
  /** Which of the calls of its message it is, from 0. */
  readonly place: number;
  /** The message that holds it was cut off at the length limit: its arguments may be a part of what was meant. */
  readonly cut: boolean;
  /** The message, as it is saved. */
  readonly message: AssistantMessage;
}

/** A call on its way. */
export interface CallAtWork extends OpenCall {
  readonly session: Session;
  readonly scope: TaskScope;
  readonly node: ToolNode<never, never>;
  /** The tool that it is of; undefined when there is none of its name. */
  readonly tool: Tool<never, never> | undefined;
  /** What it has in common with the other calls of its message. */
  readonly set: CallSet;
  /** Runs the graph of a tool that is one. */
  readonly supersteps: Supersteps;
  /** Absent where its tool asks for none. */
  locks: CallLocks | undefined;
  /** It had begun in another process, or a person has let it through: no limit and no steering keeps it from going on. */
  readonly hasBegun: boolean;
  /** Whether it has a slot of those that a limit leaves. */
  hasSlot: boolean;
  /** The state of the call's machine. */
  readonly state: () => ToolCallState;
  readonly move: (event: ToolCallEvent) => void;
  readonly startedAt: number;
  /** As it stands now: as the model made it, then parsed, then as hooks and people changed it. */
  toolCall: ToolCall;
  /** As it was parsed, before hooks and people changed it; absent until it is. */
  asRead: ToolCall | undefined;
  /** What its start was recorded with, where it is `once`. */
  begunWith: ToolCall | undefined;
  /** Whether what the tool says is told: while an attempt is at work. */
  isOpen: boolean;
  /** How often a person was asked about it. */
  questions: number;
  /** What tells the arguments that people said yes to from others, when they were asked. */
  approved: string | undefined;
  /** What is kept with its outcome. */
  artifacts: readonly ArtifactWrite[] | undefined;
  /** What the attempt at work has put into the long-term store; absent while none is. */
  longTerm: LongTermChange[] | undefined;
}

/** Whether the provider runs the call itself, and asks whether it may. */
export function isForProvider({ block }: OpenCall): boolean {
  return block.approval !== undefined && block.refused === undefined;
}

/** The middleware around the call, outermost first: that of the graphs it is in, then that of its node. */
export function hooks({ session, node }: CallAtWork): readonly Middleware[] {
  return middlewareAround(session, node);
}

/** The middleware around the calls of a node. */
export function middlewareAround(session: Session, node: ToolNode<never, never>): readonly Middleware[] {
  return withPolicies(session, node.middleware as readonly Middleware[]);
}

/** The arguments as events and questions may show them. */
export function shownArgs(call: CallAtWork, given: unknown = call.toolCall.args): unknown {
  const tool = call.tool?.spec;
  const { mask } = call.session;
  if (tool === undefined) return mask.hideUncommon(given);
  let args = maskedArgs(tool.safety.redact, given as Json);
  for (const { name, showArgs } of hooks(call)) {
    if (showArgs === undefined) continue;
    try {
      args = showArgs({ call: call.toolCall, tool, args });
    } catch (thrown) {
      call.session.world.log("warn", `the hook showArgs of the middleware "${name}" failed`, {
        callId: call.block.id,
        error: recordOf(call.session, thrown),
      });
      return "[withheld]";
    }
  }
  return mask.hideUncommon(args);
}

/** What a result says of its call. */
export function facts(
  call: CallAtWork,
  attemptsMade: number,
): { readonly callId: string; readonly name: string; readonly attempts: number; readonly elapsedMs: number } {
  return {
    callId: call.block.id,
    name: call.block.name,
    attempts: attemptsMade,
    elapsedMs: call.session.world.clock.monotonic() - call.startedAt,
  };
}

type CallEventBody =
  | { readonly type: "tool.started"; readonly args: unknown }
  | { readonly type: "tool.args_rewritten"; readonly by: string; readonly args: unknown; readonly raw?: unknown }
  | { readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] }
  | { readonly type: "tool.rejected"; readonly reason: string }
  | { readonly type: "tool.denied"; readonly by: string; readonly reason: string }
  | { readonly type: "tool.update"; readonly partial: ToolOutput }
  | { readonly type: "tool.progress"; readonly text: string }
  | { readonly type: "tool.retried"; readonly attempt: number; readonly delayMs: number; readonly error: string }
  | { readonly type: "tool.artifact_lost"; readonly key: string; readonly name: string; readonly error: string }
  | { readonly type: "tool.completed" | "tool.failed"; readonly result: ToolResult };

/** Tell something of the call, if anybody listens. */
export function event(call: CallAtWork, body: CallEventBody): void {
  const { session, scope, block, tool } = call;
  if (!session.events.listening()) return;
  const label = tool?.spec.label;
  emit(session, { ...body, node: scope.task.node, task: scope.task.id, callId: block.id, tool: block.name, label });
}

/**
 * What a hook that threw means: a tool error is the call's answer, the failure of a required middleware fails the run,
 * any other is logged and the call goes on without the hook.
 */
export function hookFailed(
  call: CallAtWork,
  middleware: Middleware,
  hook: string,
  thrown: unknown,
): ToolResult | undefined {
  if (isToolError(thrown)) return resultOfError(thrown, facts(call, 0));
  const { session, scope, block } = call;
  if (middleware.required === true) {
    throw new StatewrightError("node_failed", {
      what: `the hook ${hook} of the required middleware "${middleware.name}" failed: ${describeThrown(thrown)}`,
      next: "Mend the middleware, then resume the thread: finished work is kept",
      place: placeOf(session, { node: scope.task.node, tool: block.name, callId: block.id }),
      cause: thrown,
    });
  }
  session.world.log("warn", `the hook ${hook} of the middleware "${middleware.name}" failed`, {
    callId: block.id,
    error: recordOf(session, thrown),
  });
  return undefined;
}
