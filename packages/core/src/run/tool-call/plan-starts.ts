/**
 * Starts of `once` tool calls that are committed with the superstep that decided the calls.
 *
 * A call that begins as soon as the superstep is durable needs no commit for the start. A call that may wait first, for a
 * hook, an approval, a lock, an injected value or another call, commits the start when the call begins.
 */
import type { Task } from "../../checkpoint/checkpoint.ts";
import { isFinalCall } from "../../compile/kinds/tools.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import type { Message } from "../../model/message.ts";
import { listForgedKeys, type ParsedArgs, parseArgs } from "../../tool/arguments/parse-args.ts";
import type { Tool, ToolSpec } from "../../tool/definition/tool.ts";
import { isRunnable, listPendingCalls, type PendingCall } from "../conversation/pending-calls.ts";
import { digestArgs } from "../journal/args-digest.ts";
import { createIdempotencyKey } from "../journal/journal.ts";
import { hasNoPriorEffects } from "../journal/prior-effects.ts";
import { isAdvertised, resolveTool } from "../model-call/advertised-tools.ts";
import type { PlannedStart } from "../session/parts/persistence.ts";
import { countSteps } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";
import type { FinishedTask, StepResult } from "../session/step-result.ts";
import { listFirstCalls } from "./call-batches.ts";
import { isProviderCall, listNodeMiddleware } from "./context.ts";
import { getCallEffect } from "./tool-call.ts";

/**
 * Plans the starts of the tool calls that begin as soon as a superstep with this result is durable; undefined for none.
 */
export function planStarts(
  session: Session,
  finished: readonly FinishedTask[],
  { tasks, state }: StepResult,
): readonly PlannedStart[] | undefined {
  const [task] = tasks;
  const node = task === undefined ? undefined : session.position.plan.nodes.get(task.node);
  if (tasks.length !== 1 || task === undefined || node?.logic.answersCalls !== true) return undefined;
  const [toolNode] = node.logic.listTools(node);
  const messages = state["messages"] as readonly Message[];
  if (toolNode === undefined || node.policy.cache !== undefined || !mayCallOnce(toolNode, messages)) return undefined;
  if (mayStop(session, finished, task) || hasBeforeHook(session, toolNode)) return undefined;
  const pending = listPendingCalls(messages).calls.filter((call) => !isFinalCall(toolNode, call));
  if (pending.length > toolNode.maxCalls) return undefined;
  const starts = listFirstCalls(toolNode, pending).flatMap((call) => planStart(session, toolNode, task, call) ?? []);
  return starts.length === 0 ? undefined : starts;
}

/** Returns false if no call of the last message runs a `once` tool, without a look at the whole conversation. */
function mayCallOnce({ registry, initialTools }: ToolNode<never, never>, messages: readonly Message[]): boolean {
  const last = messages.at(-1);
  return (
    last?.role === "assistant" &&
    last.content.some(
      (block) =>
        block.type === "call" && (registry.get(block.name) ?? initialTools.get(block.name))?.spec.effect === "once",
    )
  );
}

/** Returns true if the run stops before the task, or may not start its calls now. */
function mayStop({ env, journal, position, signals }: Session, finished: readonly FinishedTask[], task: Task): boolean {
  const { saved } = journal;
  // The start of a call in an inner graph would outlive a stop of the graph around it.
  if (saved === undefined || position.nesting !== undefined) return true;
  if (saved.thread.failure !== undefined || signals.abort.signal.aborted || signals.drain.aborted) return true;
  if (countSteps(position) + 1 >= env.limits.maxSteps || !hasNoPriorEffects(env, saved)) return true;
  const { breakpoints } = env;
  return (
    breakpoints !== undefined &&
    (breakpoints.before.has(task.node) || finished.some((each) => breakpoints.after.has(each.task.node)))
  );
}

function hasBeforeHook({ env }: Session, toolNode: ToolNode<never, never>): boolean {
  return listNodeMiddleware(env, toolNode).some(({ beforeTool }) => beforeTool !== undefined);
}

/** Plans the start of a call; undefined for a call that does not run `once`, may wait before it begins, or is refused. */
function planStart(
  { env, position }: Session,
  toolNode: ToolNode<never, never>,
  task: Task,
  call: PendingCall,
): PlannedStart | undefined {
  const { block, message, key } = call;
  const tool = resolveTool(toolNode, call);
  if (tool === undefined || !beginsAtOnce(tool) || getCallEffect(tool) !== "once") return undefined;
  if (isProviderCall(call) || !isRunnable(message.finish) || !isAdvertised(toolNode, call)) return undefined;
  if (block.raw !== undefined || block.refused !== undefined || listForgedKeys(tool.spec, block.args).length > 0)
    return undefined;
  const parsed = tryParse(tool.spec, block.args);
  if (parsed?.ok !== true) return undefined;
  const args = digestArgs(env.codec, parsed.value);
  return {
    args: parsed.value,
    row: {
      step: position.step + 1,
      task: task.id,
      key,
      kind: "tool",
      name: block.name,
      effect: "once",
      state: "started",
      attempts: 0,
      idempotencyKey: createIdempotencyKey(position, task, key),
      startedAt: env.world.clock.now(),
      stage: "executing",
      ...(args === undefined ? {} : { args }),
    },
  };
}

/** Parses arguments; undefined when the schema throws: the call parses them again, and reports the error. */
function tryParse(spec: ToolSpec, args: unknown): ParsedArgs | undefined {
  try {
    return parseArgs(spec, args);
  } catch {
    return undefined;
  }
}

/** Returns true for a tool whose call waits for nothing: no approval, no lock, no injected value, no client. */
function beginsAtOnce({ spec, resolve, prepareArguments, graph }: Tool<never, never>): boolean {
  const { execution, safety, client } = spec;
  return (
    client !== true &&
    graph === undefined &&
    resolve === undefined &&
    prepareArguments === undefined &&
    execution.lock === undefined &&
    execution.needsApproval === undefined &&
    safety.confirm !== "always"
  );
}
