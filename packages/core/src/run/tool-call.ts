/** One tool call: its machine, driven from received to answered. Its result is a recorded effect; a replay runs no hook. */
import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import { deepFreeze } from "../base/json.ts";
import { type EffectRow, type InterruptRow, inFlight } from "../checkpoint/journal.ts";
import { type ToolCallState, toolCallMachine } from "../compile/tool-call-machine.ts";
import type { ToolNode } from "../define/tool-node.ts";
import { plainCodec } from "../state/codec.ts";
import { type InDoubtAnswer, inDoubtAnswer, inDoubtKey } from "../tool/approval.ts";
import { jsonSchemaOf } from "../tool/model-tool.ts";
import { isResult, resultOf, resultOfError, type ToolResult } from "../tool/result.ts";
import type { Tool, ToolSpec } from "../tool/tool.ts";
import { ToolError } from "../tool/tool-error.ts";
import { admit } from "./admission.ts";
import { argsDigest } from "./args-digest.ts";
import { type CallAtWork, event, facts, hookFailed, hooks, type OpenCall } from "./call-at-work.ts";
import { type Met, meetElsewhere } from "./call-elsewhere.ts";
import { onceElsewhere } from "./elsewhere.ts";
import { checkedResult, type Execution, execute, toolRuntime } from "./execute-call.ts";
import { inspectCall } from "./inspect-run.ts";
import { aboutStart, type EffectIdentity, idempotencyKeyOf, perform, takeOver } from "./journal.ts";
import { createTableKernel, type Kernel } from "./kernel.ts";
import { prepare } from "./prepare-call.ts";
import { hookRuntime, identityOf, type TaskScope } from "./scope.ts";
import { journalKey, type Saved, type Session } from "./session.ts";

/** How a call ended for now: with its one answer, or waiting for a person. */
export type CallEnd =
  | { readonly kind: "answered"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow; readonly cancelled: ToolResult };

let kernel: Kernel | undefined;

/** Run one call to its answer. */
export async function runToolCall(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  open: OpenCall,
  siblings: readonly OpenCall[],
): Promise<CallEnd> {
  kernel ??= createTableKernel(toolCallMachine, (event) => event.type);
  const machine = kernel;
  const first = machine.initial();
  const inspect = inspectCall(session, scope, open.block.id, first);
  let [at] = first;
  const { block } = open;
  const call: CallAtWork = {
    ...open,
    session,
    scope,
    node,
    siblings,
    state: () => at.value as ToolCallState,
    move: (type) => {
      const step = machine.step(at, { type });
      [at] = step;
      inspect?.({ type }, step);
    },
    startedAt: session.world.clock.monotonic(),
    toolCall: { id: block.id, name: block.name, args: block.args },
    questions: 0,
  };
  const known = session.saved?.journal.get(journalKey(session.step, scope.task.id, block.id));
  if (known?.state === "ok")
    return { kind: "answered", result: await recorded(call, "pure", async () => unreachable(call)) };
  const prepared = await prepare(call);
  if (prepared.kind === "waiting")
    return { ...prepared, cancelled: resultOfError(ToolError.cancelled(), facts(call, 0)) };
  const doubt = consultDoubt(call, known);
  if (doubt !== undefined && "open" in doubt)
    return { kind: "waiting", ...doubt, cancelled: resultOfError(ToolError.cancelled(), facts(call, 0)) };
  const fact = doubt === undefined ? undefined : () => toldResult(call, doubt);
  if (prepared.kind === "answer") {
    call.move("call.settled");
    // A `once` call that had started before a crash stays in doubt, whatever the hooks decide about it today.
    const effect = known?.effect === "once" ? "once" : "pure";
    return { kind: "answered", result: await recorded(call, effect, () => conclude(call, prepared.result), fact) };
  }
  const { tool } = prepared;
  const { saved } = session;
  const args =
    tool.spec.effect === "once" && saved !== undefined ? argsDigest(session.codec, call.toolCall.args) : undefined;
  if (tool.spec.effect === "once" && saved !== undefined && (known === undefined || !inFlight(known))) {
    const journals = onceElsewhere(session, saved);
    const met = journals === undefined ? undefined : meetElsewhere(call, saved, args, await journals);
    if (met?.kind === "waiting") return { ...met, cancelled: resultOfError(ToolError.cancelled(), facts(call, 0)) };
    if (met !== undefined) return { kind: "answered", result: await counted(call, saved, met) };
  }
  const { context, state, secrets } = session;
  const injected = await tool.resolve?.({ context, state, secrets, run: identityOf(session, scope.task) });
  const ask =
    tool.reconcile === undefined
      ? fact
      : (idempotencyKey: string) => reconcile(call, tool, { idempotencyKey, injected });
  const result = await recorded(
    call,
    tool.spec.effect,
    (idempotencyKey) => execute(call, tool, { idempotencyKey, injected }).then((executed) => conclude(call, executed)),
    ask,
    args,
  );
  return { kind: "answered", result };
}

/** What happened on another branch, as this call's result. */
async function counted(
  call: CallAtWork,
  saved: Saved,
  { found, result }: Extract<Met, { readonly kind: "happened" }>,
): Promise<ToolResult> {
  let counts = result;
  if (!isResult(counts)) counts = (await toldResult(call, counts)) as ToolResult;
  else for (const event of ["call.settled", "call.reviewed", "call.persisted"] as const) call.move(event);
  return takeOver(call.session, saved, effectOf(call), found.row, counts);
}

/** A `once` call that had started when its process died, and cannot ask the other side: a person is asked whether it happened. */
function consultDoubt(
  call: CallAtWork,
  known: EffectRow | undefined,
): InDoubtAnswer | { readonly open: InterruptRow } | undefined {
  const { block, node, scope, toolCall } = call;
  if (known === undefined || !inFlight(known) || known.effect !== "once") return undefined;
  if (node.registry.get(block.name)?.reconcile !== undefined) return undefined;
  const { idempotencyKey, startedAt } = known;
  const asked = scope.consult({
    id: `${scope.task.id}:${block.id}:${inDoubtKey}`,
    about: aboutStart(known),
    key: inDoubtKey,
    payload: { callId: block.id, tool: block.name, args: toolCall.args, idempotencyKey, startedAt },
    schema: jsonSchemaOf(inDoubtAnswer),
  });
  return "open" in asked ? asked : (asked.answer as InDoubtAnswer);
}

/** The result that a person told of; nothing when they said that it did not happen. */
async function toldResult(call: CallAtWork, { happened, content }: InDoubtAnswer): Promise<ToolResult | undefined> {
  if (!happened) return undefined;
  if (call.state() === "executing") call.move("call.settled");
  const text = content ?? "A person has confirmed that this happened. Its result is not known.";
  return conclude(call, resultOf(text, facts(call, 1)));
}

async function reconcile(
  call: CallAtWork,
  tool: Tool<never, never>,
  execution: Execution,
): Promise<ToolResult | undefined> {
  const runtime = toolRuntime(call, tool.spec, execution, 1, call.scope.signal(), () => true);
  const happened = await tool.reconcile?.(call.session.state as never, runtime as never, call.toolCall);
  if (happened === undefined) return undefined;
  if (call.state() === "before") call.move("call.allowed");
  call.move("call.settled");
  return conclude(call, checkedResult(call, tool.spec, happened, 1));
}

/** After hooks, in reverse order: from the state after to persisted. */
async function conclude(call: CallAtWork, result: ToolResult): Promise<ToolResult> {
  let reviewed = result;
  for (const middleware of hooks(call).toReversed()) {
    try {
      const replaced = await middleware.afterTool?.(
        { call: call.toolCall, result: reviewed },
        hookRuntime(call.session, call.scope),
      );
      if (replaced !== undefined && !isResult(replaced))
        throw new TypeError("it returned something else than a result");
      reviewed = replaced ?? reviewed;
    } catch (thrown) {
      reviewed = hookFailed(call, middleware, "afterTool", thrown) ?? reviewed;
    }
  }
  call.move("call.reviewed");
  call.move("call.persisted");
  return savable(call, deepFreeze({ ...reviewed, callId: call.block.id, name: call.toolCall.name }));
}

/** A result that cannot be saved is an answer that says so: the tool did run, and the run goes on. */
function savable(call: CallAtWork, result: ToolResult): ToolResult {
  const { saved, codec } = call.session;
  const what = `the result of the tool "${result.name}"`;
  try {
    if (saved === undefined || codec === plainCodec) admit(codec, result, what);
    else codec.encode(result, what);
    return result;
  } catch (cause) {
    const where = isStatewrightError(cause) && cause.place.path !== undefined ? ` (at "${cause.place.path}")` : "";
    const text = `The tool "${result.name}" ran, but its result is not data that can be kept${where}.`;
    return resultOfError(new ToolError("invalid_output", text, { cause }), facts(call, result.attempts));
  }
}

/** Record the call's result; the terminal event comes after it is durable. */
function recorded(
  call: CallAtWork,
  effect: ToolSpec["effect"],
  run: (idempotencyKey: string) => Promise<ToolResult>,
  ask?: (idempotencyKey: string) => Promise<ToolResult | undefined>,
  args?: string,
): Promise<ToolResult> {
  let attemptsMade = 1;
  return perform<ToolResult>(call.session, {
    ...effectOf(call),
    effect,
    args,
    execute: async (idempotencyKey) => {
      const result = await run(idempotencyKey);
      attemptsMade = result.attempts;
      return result;
    },
    reconcile: ask,
    attempts: () => attemptsMade,
    stage: call.state,
  });
}

function effectOf(call: CallAtWork): EffectIdentity<ToolResult> {
  return {
    task: call.scope.task,
    key: call.block.id,
    kind: "tool",
    name: call.block.name,
    settled: (result, reused) => {
      if (reused) return;
      call.move("call.answered");
      event(call, result.isError ? { type: "tool.failed", result } : { type: "tool.completed", result });
    },
  };
}

function unreachable(call: CallAtWork): never {
  throw new StatewrightError("machine_failed", {
    what: `the recorded call ${idempotencyKeyOf(call.session, call.scope.task, call.block.id)} was about to run again`,
    next: "Report this with the thread's rows",
  });
}
