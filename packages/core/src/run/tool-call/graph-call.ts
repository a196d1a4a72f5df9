/**
 * An attempt at a call of a tool that is a graph. What the graph does stands on a line of its own, so that a call which was
 * cut short, by a crash, a question or a retry, goes on where it stood.
 */
import { describeThrown, isError, isStatewrightError, type StatewrightError } from "../../base/errors.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import { type GraphToolRecord, graphOfTool } from "../../define/graph-tool.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { resultOfStopped, type ToolResult } from "../../tool/result.ts";
import { callSegment } from "../conversation/pending-calls.ts";
import type { Stop } from "../loop/run-supersteps.ts";
import { whenAborted } from "../session/abort.ts";
import { recordOf } from "../session/redact-error.ts";
import type { Session } from "../session/session.ts";
import { runInner } from "../task/inner-run.ts";
import { checkedResult } from "./attempt-call.ts";
import type { CallAtWork } from "./context.ts";

/** Thrown through a call that has no answer now: its graph waits for people, or rests at a boundary. */
export class NotYet extends Error {
  readonly stop: RestingStop;

  constructor(stop: RestingStop) {
    super("the call has no answer yet");
    this.name = "NotYet";
    this.stop = stop;
  }
}

/** Tell whether something thrown says that a call has no answer yet. What a tool throws may refuse to be looked at. */
export function isNotYet(thrown: unknown): thrown is NotYet {
  try {
    return thrown instanceof NotYet;
  } catch {
    return false;
  }
}

type RestingStop =
  | { readonly kind: "waiting"; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "paused"; readonly cause: StatewrightError };

/** Run the graph of the call's tool to its end. Rejects with {@link NotYet}, with what fails the run, or with what the model reads. */
export async function attemptGraph(call: CallAtWork, tool: Tool<never, never>, attempt: number): Promise<ToolResult> {
  const record = graphOfTool(tool) as GraphToolRecord;
  refuseTooDeep(call, record);
  const { signal, stoppedBy, end } = stopOf(call, tool);
  try {
    return await runInner(
      call.session,
      call.scope,
      {
        graph: record.graph(),
        persistence: "per-call",
        name: tool.spec.name,
        id: callSegment(call.scope.task.id, call.place),
        isTool: true,
        middleware: (call.node.middleware as readonly Middleware[]).filter(({ inherited }) => inherited === true),
        signal,
        context: (context) => (record.context === undefined ? context : record.context(context as never)),
        input: () => record.given(call.toolCall.args as never, surroundings(call) as never),
      },
      call.supersteps,
      (stop, session) => {
        if (stop.kind !== "done") throw withoutAnswer(stop, call, record, session, stoppedBy());
        call.longTerm = session.longTerm?.held;
        const ended = { ...surroundings(call), ended: session.state };
        const returned = record.answer(stop.output as never, ended as never);
        const result = checkedResult(call, tool.spec, returned, attempt);
        const stopped = stoppedBy();
        return stopped === undefined ? result : resultOfStopped(stopped, result);
      },
    );
  } catch (thrown) {
    if (isNotYet(thrown) || isToolError(thrown) || isForTheRun(call.session, thrown)) throw thrown;
    throw toldInside(thrown) ?? failedInside(call, record, thrown);
  } finally {
    end();
  }
}

function surroundings({ block, session }: CallAtWork): object {
  return { callId: block.id, context: session.context, state: session.state };
}

function refuseTooDeep({ session, block }: CallAtWork, { maxDepth }: GraphToolRecord): void {
  const { path, depth } = session.within ?? { path: [], depth: 0 };
  if (depth < maxDepth) return;
  const way = [...path, block.name].join(" → ");
  throw new ToolError(
    "limit",
    `Not run: calls like this one may stand ${maxDepth} deep in one another, and this one would be the next (${way}). Do it without this call.`,
    { disposition: "repair" },
  );
}

/** A signal that fires with the task's, or when the call takes too long. The graph has stopped before the attempt ends: the next one writes the same rows. */
function stopOf(
  { scope, session }: CallAtWork,
  { spec: { timeoutMs } }: Tool<never, never>,
): { readonly signal: AbortSignal; readonly stoppedBy: () => ToolError | undefined; readonly end: () => void } {
  const outer = scope.signal();
  if (timeoutMs === undefined || outer.aborted)
    return {
      signal: outer,
      stoppedBy: () => (outer.aborted ? ToolError.cancelled() : undefined),
      end: nothingToEnd,
    };
  const controller = new AbortController();
  let stopped: ToolError | undefined;
  const stopListening = whenAborted(outer, () => {
    stopped ??= ToolError.cancelled();
    controller.abort(outer.reason);
  });
  const cancelTimer = session.world.schedule.after(timeoutMs, () => {
    stopped ??= ToolError.timeout(timeoutMs);
    controller.abort(stopped);
  });
  return {
    signal: controller.signal,
    stoppedBy: () => stopped,
    end: () => {
      cancelTimer();
      stopListening();
    },
  };
}

function nothingToEnd(): void {
  // The signal is the task's own.
}

/** Why a graph that has stopped gives no answer. */
function withoutAnswer(
  stop: Exclude<Stop, { readonly kind: "done" }>,
  call: CallAtWork,
  record: GraphToolRecord,
  session: Session,
  stopped: ToolError | undefined,
): unknown {
  switch (stop.kind) {
    case "waiting":
    case "paused":
      return stopped ?? new NotYet(stop);
    case "failed":
      return stop.error;
    case "cancelled": {
      if (stopped?.kind === "timeout") return unfinished(call, record, session, stopped.kind, stopped.message);
      if (stopped !== undefined) return stopped;
      // A hook inside has ended it: the run goes on without it.
      const { reason } = session.abort.signal;
      return unfinished(call, record, session, "limit", isError(reason) ? reason.message : describeThrown(reason));
    }
  }
}

/** What the model reads of a graph that a limit has stopped: that it has no answer, why, and what there is. */
function unfinished(
  call: CallAtWork,
  { found }: GraphToolRecord,
  { state }: Pick<Session, "state">,
  kind: "limit" | "timeout",
  why: string,
): ToolError {
  let text = "";
  try {
    text = found?.(state as never) ?? "";
  } catch (thrown) {
    log(call, "what a call had found could not be told", thrown);
  }
  const said = `${call.block.name} was stopped before it had an answer: ${withStop(why)}`;
  return new ToolError(kind, text === "" ? said : `${said} What it had found so far: ${text}`, {
    userMessage: said,
    ...(kind === "limit" ? { disposition: "repair" } : {}),
  });
}

function withStop(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

/** Failures that a model can do nothing about, and that must not be passed over: what may have happened, and what cannot be saved. */
const ofTheRun: ReadonlySet<string> = new Set([
  "effect_in_doubt",
  "graph_changed",
  "needs_migration",
  "machine_failed",
  "drained",
  "parked",
]);

function isForTheRun({ saved }: Pick<Session, "saved">, error: unknown): boolean {
  if (saved?.thread.failure !== undefined) return true;
  if (!isStatewrightError(error)) return false;
  const { code, kind, cause } = error;
  // Several tasks that failed together.
  if (cause instanceof AggregateError) return cause.errors.some((each) => isForTheRun({ saved }, each));
  return ofTheRun.has(code) || (kind !== "run" && kind !== "tool");
}

/** The graph as this process has run it for the call. */
function innerOf({ session, scope, place }: CallAtWork): Session | undefined {
  return session.inner.get(`${session.line}/${callSegment(scope.task.id, place)}`);
}

/** The result of a call of a graph with what it has used, whatever came of it. */
export function withUsage(call: CallAtWork, result: ToolResult): ToolResult {
  const record = graphOfTool(call.tool);
  const state = record?.usage === undefined || result.usage !== undefined ? undefined : innerOf(call)?.state;
  if (record?.usage === undefined || state === undefined) return result;
  try {
    const usage = record.usage(state as never);
    return usage === undefined ? result : { ...result, usage };
  } catch (thrown) {
    log(call, "what a call had used could not be told", thrown);
    return result;
  }
}

/** What a node has thrown for the model to read. */
function toldInside(error: unknown): ToolError | undefined {
  return isStatewrightError(error, "node_failed") && isToolError(error.cause) ? error.cause : undefined;
}

/** The graph failed: the model reads that it did, and the log tells why. */
function failedInside(call: CallAtWork, record: GraphToolRecord, error: unknown): ToolError {
  log(call, `the tool "${call.block.name}" failed inside`, error);
  if (!isStatewrightError(error, "step_limit"))
    return new ToolError("failed", `${call.block.name} failed before it had an answer.`, { cause: error });
  const { maxSteps } = call.session.limits;
  const state =
    call.session.inner.get(`${call.session.line}/${callSegment(call.scope.task.id, call.place)}`)?.state ?? {};
  return unfinished(call, record, { state }, "limit", `it took ${maxSteps} steps without coming to an end`);
}

function log(call: CallAtWork, what: string, thrown: unknown): void {
  call.session.world.log("warn", what, { callId: call.block.id, error: recordOf(call.session, thrown) });
}
