/** One tool call: its machine, driven from received to answered. Its result is a recorded effect; a replay runs no hook. */
import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { type EffectRow, type InterruptRow, inFlight } from "../../checkpoint/journal.ts";
import { type ToolCallState, toolCallMachine } from "../../compile/tool-call-machine.ts";
import type { ToolNode } from "../../define/tool-node.ts";
import { plainCodec } from "../../state/codec.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import type { Tool, ToolCall, ToolRuntime, ToolSpec } from "../../tool/definition/tool.ts";
import { isToolError, ToolError } from "../../tool/definition/tool-error.ts";
import { type InDoubtAnswer, inDoubtAnswer, inDoubtKey } from "../../tool/policy/approval.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { isResult, resultOf, resultOfError, type ToolResult, underPolicy } from "../../tool/result.ts";
import { toolFor } from "../conversation/advertised-tools.ts";
import { inspectCall } from "../events/inspect-run.ts";
import { argsDigest } from "../journal/args-digest.ts";
import { aboutStart, type EffectIdentity, idempotencyKeyOf, perform, takeOver } from "../journal/journal.ts";
import { recordChanges, seeChanges } from "../journal/long-term-writes.ts";
import { onceElsewhere } from "../journal/prior-effects.ts";
import { createTableKernel, type Kernel } from "../kernel/kernel.ts";
import { hookRuntime, type TaskScope } from "../session/scope.ts";
import { journalKey, type Saved, type Session } from "../session/session.ts";
import { admit } from "../session/validate-writes.ts";
import type { Supersteps } from "../task/inner-run.ts";
import { barredFrom } from "./acquire-call-locks.ts";
import { checkedResult } from "./attempt-call.ts";
import { locksOf } from "./call-locks.ts";
import { askClient } from "./client-call.ts";
import { type CallAtWork, event, facts, hookFailed, hooks, type OpenCall, shownArgs } from "./context.ts";
import { admitted, hasBegun } from "./decide-in-order.ts";
import { execute } from "./execute-call.ts";
import { isNotYet, withUsage } from "./graph-call.ts";
import { keepsArtifacts, presentable } from "./present-result.ts";
import { type Met, meetElsewhere } from "./prior-call.ts";
import { asBegun, recordArgs } from "./start-args.ts";
import type { CallSet } from "./tool-call-batch.ts";
import { type Execution, injectionSource, toolRuntime } from "./tool-runtime.ts";

/** How a call ended for now: with its one answer, or waiting for a person. */
export type CallEnd =
  | { readonly kind: "answered"; readonly result: ToolResult }
  | (Resting & {
      /** Answer it, where the run was cancelled meanwhile: nobody will be asked. */
      readonly cancel: () => Promise<ToolResult>;
    });

/** A call without an answer now: it waits for people, or the graph that it runs stopped at a boundary, as asked. */
type Resting =
  | { readonly kind: "waiting"; readonly open: readonly InterruptRow[] }
  | { readonly kind: "paused"; readonly cause: StatewrightError };

let kernel: Kernel | undefined;

/** Run one call to its answer; `skips` is the answer of one that has not begun, where somebody has spoken meanwhile. */
export async function runToolCall(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  open: OpenCall,
  set: CallSet,
  supersteps: Supersteps,
  skips?: ToolError,
): Promise<CallEnd> {
  kernel ??= createTableKernel(toolCallMachine, (event) => event.type);
  const machine = kernel;
  const first = machine.initial();
  const inspect = inspectCall(session, scope, open.block.id, first);
  let [at] = first;
  const { block } = open;
  const place = journalKey(session.step, scope.task.id, open.key);
  const known = session.saved?.journal.get(place);
  const call: CallAtWork = {
    ...open,
    session,
    scope,
    node,
    tool: toolFor(node, open),
    set,
    supersteps,
    locks: undefined,
    hasBegun: hasBegun(session, scope, open, known),
    hasSlot: false,
    state: () => at.value as ToolCallState,
    move: (type) => {
      const step = machine.step(at, { type });
      [at] = step;
      inspect?.({ type }, step);
    },
    startedAt: session.world.clock.monotonic(),
    toolCall: { id: block.id, name: block.name, args: block.args },
    asRead: undefined,
    begunWith: undefined,
    isOpen: false,
    questions: 0,
    approved: undefined,
    artifacts: undefined,
    longTerm: undefined,
  };
  const attempts = known?.state === "ok" ? known.attempts : attemptsHere(session, place);
  if (attempts !== undefined) {
    seeChanges(call);
    if (attempts > 0) set.limit?.take(true);
    return { kind: "answered", result: await recorded(call, "pure", () => unreachable(call)) };
  }
  if (skips !== undefined && isSkipped(call)) return skip(call, skips);
  const given = admitted(call);
  const prepared = given instanceof Promise ? await given : given;
  if (prepared.kind === "waiting") return asks(call, prepared.open);
  const doubt = consultDoubt(call, known);
  if (doubt !== undefined && "open" in doubt) return asks(call, doubt.open);
  const fact = doubt === undefined ? undefined : () => toldResult(call, doubt, asBegun(call));
  // A `once` call that had started before a crash stays in doubt, whatever is decided about it today.
  const unrun = known?.effect === "once" ? "once" : "pure";
  if (prepared.kind === "answer") {
    call.move("call.settled");
    const ask = fact ?? otherSide(call, call.tool);
    return { kind: "answered", result: await recorded(call, unrun, () => conclude(call, prepared.result), ask) };
  }
  let { tool } = prepared;
  if (tool.spec.client === true) {
    const asked = askClient(call, tool.spec);
    if ("open" in asked) return asks(call, asked.open);
    tool = { ...tool, call: asked.output };
  }
  // What the application did is its answer, which is saved: to read it again does nothing.
  // A graph goes on where it stood, whatever may happen once inside: its own nodes and calls see to that.
  const effect = tool.spec.client === true ? "pure" : tool.graph === undefined ? tool.spec.effect : "idempotent";
  const { saved } = session;
  const args = effect === "once" && saved !== undefined ? argsDigest(session.codec, call.toolCall.args) : undefined;
  // Also where it had started here: another branch may have made it since.
  if (effect === "once" && saved !== undefined && doubt?.happened !== true) {
    const journals = onceElsewhere(session, saved);
    const met = journals === undefined ? undefined : meetElsewhere(call, saved, args, await journals);
    if (met?.kind === "waiting") return asks(call, met.open);
    if (met !== undefined) return { kind: "answered", result: await counted(call, saved, met) };
  }
  const injected = tool.resolve === undefined ? undefined : await tool.resolve(injectionSource(call));
  const ask = fact ?? otherSide(call, tool, () => injected);
  const locks = locksOf(tool.spec, session.world);
  const barred = locks === undefined ? undefined : await barredFrom(call, locks);
  if (barred !== undefined) {
    call.move("call.settled");
    return { kind: "answered", result: await recorded(call, unrun, () => conclude(call, barred), ask) };
  }
  call.locks = locks;
  try {
    const result = await recorded(
      call,
      effect,
      async (idempotencyKey) => {
        const executed = await execute(call, tool, { idempotencyKey, injected });
        locks?.release();
        return conclude(call, executed);
      },
      ask,
      args,
    );
    return { kind: "answered", result };
  } catch (thrown) {
    if (!isNotYet(thrown)) throw thrown;
    const { stop } = thrown;
    return resting(call, stop.kind === "waiting" ? { kind: stop.kind, open: stop.interrupts } : stop);
  } finally {
    locks?.release();
  }
}

/** How often a call was attempted that this process has answered before; nothing for one that has no answer yet. */
function attemptsHere({ outcomes }: Session, place: string): number | undefined {
  const known = outcomes.get(place);
  return known !== undefined && "value" in known ? attemptsOf(known.value as ToolResult) : undefined;
}

/** Whether steering keeps it from running: it has not begun, and its tool does not say otherwise. */
function isSkipped({ hasBegun, tool, scope }: CallAtWork): boolean {
  return !hasBegun && tool?.spec.execution.onSteer !== "run" && !scope.signal().aborted;
}

async function skip(call: CallAtWork, why: ToolError): Promise<CallEnd> {
  call.move("call.skipped");
  event(call, { type: "tool.rejected", reason: "skipped" });
  call.move("call.settled");
  const result = await recorded(call, "pure", () => conclude(call, resultOfError(why, facts(call, 0))));
  return { kind: "answered", result };
}

/** The call waits for a person. */
function asks(call: CallAtWork, open: InterruptRow): CallEnd {
  return resting(call, { kind: "waiting", open: [open] });
}

/** The call has no answer now. A cancel answers it like any other, with the after hooks. */
function resting(call: CallAtWork, rest: Resting): CallEnd {
  const cancel = async (): Promise<ToolResult> => {
    if (["before", "waitingHuman", "executing"].includes(call.state())) call.move("call.cancelled");
    call.move("call.settled");
    const cancelled = resultOfError(ToolError.cancelled(), facts(call, 0));
    const result = await conclude(call, withUsage(call, cancelled));
    call.move("call.answered");
    event(call, { type: "tool.failed", result });
    return result;
  };
  return { ...rest, cancel };
}

/** What happened on another branch, as this call's result. */
async function counted(
  call: CallAtWork,
  saved: Saved,
  { found, result }: Extract<Met, { readonly kind: "happened" }>,
): Promise<ToolResult> {
  let counts = result;
  if (!isResult(counts)) counts = (await toldResult(call, counts, undefined)) as ToolResult;
  else for (const event of ["call.settled", "call.reviewed", "call.persisted"] as const) call.move(event);
  return takeOver(call.session, saved, effectOf(call), found.row, counts);
}

/** A `once` call that had started when its process died, and cannot ask the other side: a person is asked whether it happened. */
function consultDoubt(
  call: CallAtWork,
  known: EffectRow | undefined,
): InDoubtAnswer | { readonly open: InterruptRow } | undefined {
  const { block, scope } = call;
  if (known === undefined || !inFlight(known) || known.effect !== "once") return undefined;
  const begun = asBegun(call);
  if (call.tool?.reconcile !== undefined && begun !== undefined) return undefined;
  const { idempotencyKey, startedAt } = known;
  const args = begun === undefined ? notSaved : shownArgs(call, begun.args);
  const asked = scope.consult({
    id: `${scope.task.id}:${call.key}:${inDoubtKey}`,
    about: aboutStart(known),
    key: inDoubtKey,
    payload: { callId: block.id, tool: block.name, args, idempotencyKey, startedAt },
    schema: jsonSchemaOf(inDoubtAnswer),
  });
  return "open" in asked ? asked : (asked.answer as InDoubtAnswer);
}

/** What a person is shown in the place of arguments that could not be saved, or that hold a secret. */
const notSaved = "[not saved]";

/** The result that a person told of; nothing when they said that it did not happen. */
async function toldResult(
  call: CallAtWork,
  { happened, content }: InDoubtAnswer,
  begun: ToolCall | undefined,
): Promise<ToolResult | undefined> {
  if (!happened) return undefined;
  call.toolCall = begun ?? call.toolCall;
  if (call.state() === "executing") call.move("call.settled");
  const text = content ?? "A person has confirmed that this happened. Its result is not known.";
  return conclude(call, resultOf(text, facts(call, 1)));
}

/** Asks the other side about a call in doubt, where its tool can. */
function otherSide(
  call: CallAtWork,
  tool: Tool<never, never> | undefined,
  injected: () => unknown = () => tool?.resolve?.(injectionSource(call)),
): ((idempotencyKey: string) => Promise<ToolResult | undefined>) | undefined {
  if (tool?.reconcile === undefined) return undefined;
  return async (idempotencyKey) => reconcile(call, tool, { idempotencyKey, injected: await injected() });
}

async function reconcile(
  call: CallAtWork,
  tool: Tool<never, never>,
  execution: Execution,
): Promise<ToolResult | undefined> {
  const runtime = toolRuntime(call, tool.spec, execution, 1, call.scope.signal(), () => true);
  const begun = asBegun(call) ?? call.toolCall;
  const found = await foundOut(call, tool, runtime, begun);
  if (found === undefined) return undefined;
  call.toolCall = begun;
  if (call.state() === "before") call.move("call.allowed");
  if (call.state() === "executing") call.move("call.settled");
  return conclude(call, found);
}

/** What the other side says of a call: its result, that it did not happen, or that it cannot be known, which is an answer too. */
async function foundOut(
  call: CallAtWork,
  tool: Tool<never, never>,
  runtime: ToolRuntime,
  begun: ToolCall,
): Promise<ToolResult | undefined> {
  try {
    const happened = await tool.reconcile?.(call.session.state as never, runtime as never, begun);
    return happened === undefined ? undefined : checkedResult(call, tool.spec, happened, 1);
  } catch (thrown) {
    if (!isToolError(thrown) || thrown.kind !== "unknown_outcome") throw thrown;
    return underPolicy(resultOfError(thrown, facts(call, 1)), tool.spec.onError ?? "return");
  }
}

/** After hooks, in reverse order, then what may be told, saved and sent of the result: from the state after to persisted. */
function conclude(call: CallAtWork, result: ToolResult): ToolResult | Promise<ToolResult> {
  const middleware = hooks(call);
  return middleware.some(({ afterTool }) => afterTool !== undefined)
    ? reviewed(call, middleware, result).then((shown) => present(call, shown))
    : present(call, result);
}

async function reviewed(call: CallAtWork, middleware: readonly Middleware[], result: ToolResult): Promise<ToolResult> {
  let current = result;
  for (const hook of middleware.toReversed()) {
    try {
      const replaced = await hook.afterTool?.(
        { call: call.toolCall, tool: call.tool?.spec, result: current },
        hookRuntime(call.session, call.scope, call.key, hook),
      );
      if (replaced !== undefined && !isResult(replaced))
        throw new TypeError("it returned something else than a result");
      current = replaced ?? current;
    } catch (thrown) {
      current = hookFailed(call, hook, "afterTool", thrown) ?? current;
    }
  }
  return current;
}

/** From the state persisting to persisted; at once where nothing of the result is kept apart. */
function present(call: CallAtWork, result: ToolResult): ToolResult | Promise<ToolResult> {
  call.move("call.reviewed");
  const given = presentable(call, call.session.mask.hide(result));
  return given instanceof Promise ? given.then((shown) => presented(call, shown)) : presented(call, given);
}

function presented(call: CallAtWork, shown: ToolResult): ToolResult {
  if (keepsArtifacts(call)) call.move("call.persisted");
  return withPut(call, savable(call, deepFreeze({ ...shown, callId: call.block.id, name: call.toolCall.name })));
}

/** What an attempt has put into the long-term store is journaled before its result. A call that ends in an error has put nothing. */
function withPut(call: CallAtWork, result: ToolResult): ToolResult {
  const { session, scope, key, longTerm } = call;
  if (longTerm === undefined) return result;
  call.longTerm = undefined;
  recordChanges(session, scope.task, key, result.isError ? [] : longTerm);
  if (!result.isError && longTerm.length > 0) seeChanges(call);
  return result;
}

/** A result that cannot be saved is an answer that says so: the tool did run, and the run goes on. */
function savable(call: CallAtWork, result: ToolResult): ToolResult {
  const { saved, codec } = call.session;
  const what = `the result of the tool "${result.name}"`;
  try {
    // It is to stand in the list of messages.
    if (saved === undefined || codec === plainCodec) admit(codec, [result], what);
    else codec.encode([result], what);
    return result;
  } catch (cause) {
    const path = isStatewrightError(cause) ? cause.place.path?.replace(/^0\./, "") : undefined;
    const where = path === undefined ? "" : ` (at "${path}")`;
    call.artifacts = undefined;
    const text = `The tool "${result.name}" ran, but its result is not data that can be kept${where}.`;
    return resultOfError(new ToolError("invalid_output", text, { cause }), facts(call, result.attempts));
  }
}

/** Record the call's result; the terminal event comes after it is durable. */
function recorded(
  call: CallAtWork,
  effect: ToolSpec["effect"],
  run: (idempotencyKey: string) => ToolResult | Promise<ToolResult>,
  ask?: (idempotencyKey: string) => Promise<ToolResult | undefined>,
  args?: string,
): Promise<ToolResult> {
  return perform<ToolResult>(call.session, {
    ...effectOf(call),
    effect,
    args,
    execute: run,
    reconcile: ask,
    beforeStart: effect === "once" ? () => recordArgs(call) : undefined,
    attempts: attemptsOf,
    goesOn: call.tool?.graph !== undefined,
    artifacts: () => call.artifacts,
    stage: call.state,
  });
}

function attemptsOf({ attempts }: ToolResult): number {
  return attempts;
}

function effectOf(call: CallAtWork): EffectIdentity<ToolResult> {
  return {
    task: call.scope.task,
    key: call.key,
    kind: "tool",
    name: call.block.name,
    settled: (result, reused) => {
      if (!reused) {
        call.move("call.answered");
        event(call, result.isError ? { type: "tool.failed", result } : { type: "tool.completed", result });
      }
      call.set.told();
    },
  };
}

function unreachable(call: CallAtWork): never {
  throw new StatewrightError("machine_failed", {
    what: `the recorded call ${idempotencyKeyOf(call.session, call.scope.task, call.key)} was about to run again`,
    next: "Report this with the thread's rows",
  });
}
