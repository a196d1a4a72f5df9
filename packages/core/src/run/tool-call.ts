/** One tool call: its machine, driven from received to answered. Its result is a recorded effect; a replay runs no hook. */
import { describeThrown, isStatewrightError, StatewrightError, toErrorRecord } from "../base/errors.ts";
import { deepFreeze, isPlainObject } from "../base/json.ts";
import { longestRetryMs, type RetryPolicy, retryDelayMs } from "../base/retry.ts";
import { issuesText, parseWith } from "../base/schema.ts";
import type { EffectRow, InterruptRow } from "../checkpoint/journal.ts";
import { type ToolCallEvent, type ToolCallState, toolCallMachine } from "../compile/tool-call-machine.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { ToolCallBlock } from "../model/message.ts";
import { type ApprovalAnswer, approval, type InDoubtAnswer, inDoubtAnswer, inDoubtKey } from "../tool/approval.ts";
import type { BeforeToolDecision, Middleware } from "../tool/middleware.ts";
import { jsonSchemaOf, parseArgs, takesNothing } from "../tool/model-tool.ts";
import { isResult, resultOf, resultOfError, type ToolOutput, type ToolResult } from "../tool/result.ts";
import type { Tool, ToolCall, ToolRetryOn, ToolRuntime, ToolSpec } from "../tool/tool.ts";
import { isToolError, ToolError, toToolError } from "../tool/tool-error.ts";
import { whenAborted } from "./abort.ts";
import { idempotencyKeyOf, perform, recordStage } from "./journal.ts";
import { createTableKernel, type Kernel } from "./kernel.ts";
import { hookRuntime, identityOf, pause, type TaskScope } from "./scope.ts";
import { emit, journalKey, placeOf, type Session } from "./session.ts";

/** How a call ended for now: with its one answer, or waiting for a person. */
export type CallEnd =
  | { readonly kind: "answered"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow; readonly cancelled: ToolResult };

/** A call that waits for its answer; its id is unique among its siblings. */
export interface OpenCall {
  readonly block: ToolCallBlock;
  /** The message that holds it was cut off at the length limit: its arguments may be a part of what was meant. */
  readonly cut: boolean;
}

/** A call on its way. */
interface CallAtWork extends OpenCall {
  readonly session: Session;
  readonly scope: TaskScope;
  readonly node: ToolNode<never, never>;
  /** The state of the call's machine. */
  readonly state: () => ToolCallState;
  readonly move: (event: ToolCallEvent) => void;
  readonly startedAt: number;
  /** As it stands now: as the model made it, then parsed, then as hooks and people changed it. */
  toolCall: ToolCall;
  /** How often a person was asked about it. */
  questions: number;
}

let kernel: Kernel | undefined;

/** Run one call to its answer. */
export async function runToolCall(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  open: OpenCall,
): Promise<CallEnd> {
  kernel ??= createTableKernel(toolCallMachine, (event) => event.type);
  const machine = kernel;
  let [at] = machine.initial();
  const { block } = open;
  const call: CallAtWork = {
    ...open,
    session,
    scope,
    node,
    state: () => at.value as ToolCallState,
    move: (event) => {
      [at] = machine.step(at, { type: event });
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
  );
  return { kind: "answered", result };
}

/** A `once` call that had started when its process died, and cannot ask the other side: a person is asked whether it happened. */
function consultDoubt(
  call: CallAtWork,
  known: EffectRow | undefined,
): InDoubtAnswer | { readonly open: InterruptRow } | undefined {
  const { block, node, scope, toolCall } = call;
  if (known?.state !== "started" || known.effect !== "once") return undefined;
  if (node.registry.get(block.name)?.reconcile !== undefined) return undefined;
  const { idempotencyKey, startedAt } = known;
  const asked = scope.consult({
    id: `${scope.task.id}:${block.id}:${inDoubtKey}`,
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

type Prepared =
  | { readonly kind: "answer"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "run"; readonly tool: Tool<never, never> };

/** What an execution has beside its call: the same in every attempt. */
interface Execution {
  readonly idempotencyKey: string;
  readonly injected: unknown;
}

/** From received to the decision of the before hooks. */
async function prepare(call: CallAtWork): Promise<Prepared> {
  const { block, node, scope } = call;
  if (scope.signal().aborted) {
    call.move("call.cancelled");
    return { kind: "answer", result: resultOfError(ToolError.cancelled(), facts(call, 0)) };
  }
  if (call.cut)
    return reject(
      call,
      "cut_off",
      ToolError.invalidArgs(
        "The message was cut off at the length limit, so this call was not run. Send it again, in a shorter message.",
      ),
    );
  const tool = node.registry.get(block.name);
  if (tool === undefined) {
    const names = node.registry.names().map((name) => `"${name}"`);
    return reject(
      call,
      "unknown",
      ToolError.notFound(`There is no tool "${block.name}". Tools are ${names.join(", ")}.`),
    );
  }
  call.move("call.resolved");
  const args = readArgs(call, tool.spec, block);
  if (args instanceof ToolError) return reject(call, "invalid_args", args);
  call.move("call.validated");
  call.move("call.admitted");
  call.toolCall = deepFreeze({ id: block.id, name: tool.spec.name, args: args.value });
  call.move("call.started");
  event(call, { type: "tool.started", args: call.toolCall.args });
  call.move("call.checking");
  return decide(call, tool);
}

function reject(call: CallAtWork, reason: string, error: ToolError): Prepared {
  call.move("call.rejected");
  event(call, { type: "tool.rejected", reason });
  if (call.node.onInvalidCall === "fail") {
    throw new StatewrightError("tool_failed", {
      what: `the call "${call.block.id}" of "${call.block.name}" was refused: ${error.message}`,
      next: 'Let the model mend such calls with onInvalidCall: "repair", or mend the instructions',
      place: placeOf(call.session, { node: call.scope.task.node, tool: call.block.name, callId: call.block.id }),
    });
  }
  return { kind: "answer", result: resultOfError(error, facts(call, 0)) };
}

function readArgs(call: CallAtWork, spec: ToolSpec, block: ToolCallBlock): { readonly value: unknown } | ToolError {
  const nothingSent = block.raw?.trim() === "" && takesNothing(spec);
  if (block.raw !== undefined && !nothingSent)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" are not valid JSON. Send one JSON object.`);
  const parsed = parseArgs(spec, nothingSent ? {} : withoutHidden(call, spec, block.args));
  if (parsed.ok) return { value: parsed.value };
  return ToolError.invalidArgs(`The arguments of "${spec.name}" do not fit: ${issuesText(parsed.issues)}.`, {
    details: parsed.issues,
  });
}

/** A hidden name that was forged, by the model or in changed arguments, is dropped before parsing; the real value wins. */
function withoutHidden(call: CallAtWork, spec: ToolSpec, args: unknown): unknown {
  if (!isPlainObject(args)) return args;
  const forged = Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name));
  if (forged.length === 0) return args;
  event(call, { type: "tool.forged_arg_stripped", keys: forged });
  return Object.fromEntries(Object.entries(args).filter(([name]) => !forged.includes(name)));
}

async function decide(call: CallAtWork, tool: Tool<never, never>): Promise<Prepared> {
  for (const middleware of hooks(call)) {
    let decision: BeforeToolDecision | undefined;
    try {
      decision = await middleware.beforeTool?.(
        { call: call.toolCall, tool: tool.spec },
        hookRuntime(call.session, call.scope),
      );
    } catch (thrown) {
      const result = hookFailed(call, middleware, "beforeTool", thrown);
      if (result !== undefined) return { kind: "answer", result };
    }
    if (decision === undefined || decision.action === "allow") continue;
    if (decision.action === "modify") {
      const refused = rewrite(call, tool.spec, decision.args, middleware.name);
      if (refused !== undefined) return { kind: "answer", result: refused };
      continue;
    }
    const ended = act(call, tool, decision);
    if (ended.kind !== "run") return ended;
  }
  if (call.state() === "before") call.move("call.allowed");
  return { kind: "run", tool };
}

/**
 * What a hook that threw means: a tool error is the call's answer, the failure of a required middleware fails the run,
 * any other is logged and the call goes on without the hook.
 */
function hookFailed(call: CallAtWork, middleware: Middleware, hook: string, thrown: unknown): ToolResult | undefined {
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
    error: toErrorRecord(thrown),
  });
  return undefined;
}

function act(
  call: CallAtWork,
  tool: Tool<never, never>,
  decision: Exclude<BeforeToolDecision, { action: "allow" | "modify" }>,
): Prepared {
  if (decision.action === "respond") return { kind: "answer", result: resultOf(decision.output, facts(call, 0)) };
  if (decision.action === "deny") {
    const result = resultOfError(new ToolError("denied", decision.reason), facts(call, 0));
    return { kind: "answer", result: decision.terminate === true ? { ...result, terminate: true } : result };
  }
  call.questions += 1;
  const { id: task } = call.scope.task;
  const asked = call.scope.consult({
    // Each question about a call has an answer of its own: a yes to the first hook is no yes to the second.
    id: call.questions === 1 ? `${task}:${call.block.id}` : `${task}/${call.questions}:${call.block.id}`,
    key: decision.key,
    payload: decision.payload,
    schema: jsonSchemaOf(approval),
  });
  if (call.state() === "before") call.move("call.asked");
  if ("open" in asked) return { kind: "waiting", open: asked.open };
  const verdict = readApproval(asked.answer);
  if (!verdict.approved) {
    const reason =
      verdict.reason === undefined ? "A person refused this call." : `A person refused this call: ${verdict.reason}`;
    return { kind: "answer", result: resultOfError(new ToolError("denied", reason), facts(call, 0)) };
  }
  if (verdict.args !== undefined) {
    const refused = rewrite(call, tool.spec, verdict.args, "approval");
    if (refused !== undefined) return { kind: "answer", result: refused };
  }
  if (call.state() === "waitingHuman") call.move("call.decided");
  return { kind: "run", tool };
}

/** Anything but a clear yes is a no. */
function readApproval(answer: unknown): Exclude<ApprovalAnswer, boolean> {
  const parsed = parseWith(approval, answer);
  if (!parsed.ok) return { approved: false, reason: "the answer was not understood" };
  return typeof parsed.value === "boolean" ? { approved: parsed.value } : parsed.value;
}

/** Put other arguments in place, parsed like the first ones; gives the call's answer when they do not fit. */
function rewrite(call: CallAtWork, spec: ToolSpec, args: unknown, by: string): ToolResult | undefined {
  const parsed = parseArgs(spec, withoutHidden(call, spec, args));
  if (!parsed.ok) {
    const text = `The arguments that "${by}" put in place do not fit: ${issuesText(parsed.issues)}.`;
    return resultOfError(ToolError.invalidArgs(text), facts(call, 0));
  }
  call.toolCall = deepFreeze({ ...call.toolCall, args: parsed.value });
  event(call, { type: "tool.args_rewritten", by, args: call.toolCall.args });
  return undefined;
}

/** From executing to a result; retries and around hooks stand inside. */
async function execute(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  if (call.state() === "before") call.move("call.allowed");
  let next = (): Promise<ToolResult> => attempts(call, tool, execution);
  for (const middleware of hooks(call).toReversed()) next = around(call, tool, middleware, next);
  const result = await next();
  call.move("call.settled");
  return result;
}

/** A hook around the rest. One that fails before or after it has let the call through does not take its result away. */
function around(
  call: CallAtWork,
  tool: Tool<never, never>,
  middleware: Middleware,
  inner: () => Promise<ToolResult>,
): () => Promise<ToolResult> {
  const hook = middleware.aroundTool;
  if (hook === undefined) return inner;
  return async () => {
    let made: Promise<ToolResult> | undefined;
    const next = (current: ToolCall): Promise<ToolResult> => {
      const refused =
        current.args === call.toolCall.args ? undefined : rewrite(call, tool.spec, current.args, middleware.name);
      made = refused === undefined ? inner() : Promise.resolve(refused);
      made.catch(toldByNext);
      return made;
    };
    try {
      const result = await hook({ call: call.toolCall, tool: tool.spec }, next, hookRuntime(call.session, call.scope));
      if (isResult(result)) return result;
      throw new TypeError("it returned no result; it must return what next gives, or a result of its own");
    } catch (thrown) {
      const [inside] = await Promise.allSettled(made === undefined ? [] : [made]);
      if (inside?.status === "rejected") throw inside.reason;
      return hookFailed(call, middleware, "aroundTool", thrown) ?? inside?.value ?? inner();
    }
  };
}

function toldByNext(): void {
  // The hook that called next has the rejection; one that does not look at it answers for itself.
}

async function attempts(call: CallAtWork, tool: Tool<never, never>, execution: Execution): Promise<ToolResult> {
  const { session } = call;
  const { retry } = tool.spec;
  for (let attempt = 1; ; attempt++) {
    try {
      const returned = await attemptOnce(call, tool, execution, attempt);
      return checkedResult(call, tool.spec, returned, attempt);
    } catch (thrown) {
      if (isStatewrightError(thrown, "missing_secret")) throw thrown;
      const error = toToolError(thrown);
      const again =
        retry !== undefined &&
        attempt < retry.attempts &&
        error.kind !== "cancelled" &&
        !session.abort.signal.aborted &&
        wanted(tool.spec, error, attempt);
      if (!again) return resultOfError(error, facts(call, attempt));
      const delayMs = retryAfterMs(retry, error) ?? retryDelayMs(retry, attempt, session.world.random.next());
      if (call.state() === "executing") call.move("call.failed_attempt");
      recordStage(session, call.scope.task, call.block.id, call.state(), attempt);
      event(call, { type: "tool.retried", attempt, delayMs, error: error.userMessage });
      await pause(session, delayMs);
      if (call.state() === "retryWait") call.move("call.retried");
      recordStage(session, call.scope.task, call.block.id, call.state(), attempt);
    }
  }
}

/** The wait that the other side asked for, at most as long as the policy ever waits. */
function retryAfterMs(retry: RetryPolicy<ToolRetryOn>, { retryAfterMs: asked }: ToolError): number | undefined {
  const { maxMs = longestRetryMs } = retry;
  return asked === undefined || !(asked >= 0) ? undefined : Math.min(asked, maxMs);
}

function wanted(spec: ToolSpec, error: ToolError, attempt: number): boolean {
  const on = spec.retry?.on;
  if (on === undefined) return spec.effect === "once" ? error.kind === "unavailable" : error.disposition === "retry";
  if (typeof on !== "function") return on.includes(error.kind);
  try {
    return on(error, attempt);
  } catch {
    return false;
  }
}

/** One attempt: ends by the tool, by its time limit, or by the run's cancellation, whichever is first; what comes later is dropped and logged. */
function attemptOnce(
  call: CallAtWork,
  tool: Tool<never, never>,
  execution: Execution,
  attempt: number,
): Promise<unknown> {
  const { session, scope, toolCall } = call;
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    const outer = scope.signal();
    let settled = false;
    let cancelTimer: (() => void) | undefined;
    let stopListening: (() => void) | undefined;
    const settle = (act: () => void): void => {
      if (settled) {
        session.world.log("warn", `a late result of the tool "${tool.spec.name}" was dropped`, {
          callId: call.block.id,
          attempt,
        });
        return;
      }
      settled = true;
      cancelTimer?.();
      stopListening?.();
      act();
    };
    const stop = (error: ToolError): void => {
      settle(() => reject(error));
      controller.abort(error);
    };
    const onAbort = (): void => stop(ToolError.cancelled());
    if (outer.aborted) {
      onAbort();
      return;
    }
    stopListening = whenAborted(outer, onAbort);
    const { timeoutMs } = tool.spec;
    if (timeoutMs !== undefined)
      cancelTimer = session.world.schedule.after(timeoutMs, () => stop(ToolError.timeout(timeoutMs)));
    const runtime = toolRuntime(call, tool.spec, execution, attempt, controller.signal, () => !settled);
    Promise.resolve()
      .then(() => tool.call(session.state as never, runtime as never, toolCall))
      .then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
  });
}

function toolRuntime(
  call: CallAtWork,
  spec: ToolSpec,
  { idempotencyKey, injected }: Execution,
  attempt: number,
  signal: AbortSignal,
  open: () => boolean,
): ToolRuntime {
  const { session, scope } = call;
  return {
    callId: call.block.id,
    toolName: spec.name,
    attempt,
    run: identityOf(session, scope.task),
    context: session.context,
    injected,
    signal,
    steered: neverSteered,
    idempotencyKey,
    clock: session.world.clock,
    secrets: session.secrets,
    progress: (text) => {
      if (open()) event(call, { type: "tool.progress", text });
    },
    update: session.events.listening() ? (partial) => sendUpdate(call, partial, open) : undefined,
    emit: (name, payload) => {
      if (open()) emit(session, { type: "custom", node: scope.task.node, task: scope.task.id, name, payload });
    },
  };
}

const neverSteered: AbortSignal = new AbortController().signal;

/** A partial result on its way to the readers. One that cannot be copied, or whose filter fails, is withheld. */
function sendUpdate(call: CallAtWork, partial: ToolOutput, open: () => boolean): void {
  if (!open()) return;
  let shown: ToolOutput | null;
  try {
    shown = structuredClone(partial);
    for (const { onToolUpdate } of hooks(call))
      if (shown !== null && onToolUpdate !== undefined) shown = onToolUpdate({ call: call.toolCall, partial: shown });
  } catch (thrown) {
    call.session.world.log("warn", `an update of the tool "${call.toolCall.name}" was withheld`, {
      callId: call.block.id,
      error: toErrorRecord(thrown),
    });
    return;
  }
  if (shown !== null) event(call, { type: "tool.update", partial: shown });
}

function checkedResult(call: CallAtWork, spec: ToolSpec, returned: unknown, attempt: number): ToolResult {
  const result = resultOf(returned, facts(call, attempt));
  if (spec.output === undefined || result.isError) return result;
  const parsed = parseWith(spec.output, result.value);
  if (parsed.ok) return deepFreeze({ ...result, value: parsed.value });
  return resultOfError(
    new ToolError(
      "invalid_output",
      `The tool "${spec.name}" returned a value that its output schema refuses: ${issuesText(parsed.issues)}.`,
    ),
    facts(call, attempt),
  );
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
  const { saved } = call.session;
  if (saved === undefined) return result;
  const what = `the result of the tool "${result.name}"`;
  try {
    saved.codec.encode(result, what);
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
): Promise<ToolResult> {
  let attemptsMade = 1;
  return perform<ToolResult>(call.session, {
    task: call.scope.task,
    key: call.block.id,
    kind: "tool",
    name: call.block.name,
    effect,
    execute: async (idempotencyKey) => {
      const result = await run(idempotencyKey);
      attemptsMade = result.attempts;
      return result;
    },
    reconcile: ask,
    attempts: () => attemptsMade,
    stage: call.state,
    settled: (result, reused) => {
      if (reused) return;
      call.move("call.answered");
      event(call, result.isError ? { type: "tool.failed", result } : { type: "tool.completed", result });
    },
  });
}

function hooks(call: CallAtWork): readonly Middleware[] {
  return call.node.middleware as readonly Middleware[];
}

function facts(
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
  | { readonly type: "tool.args_rewritten"; readonly by: string; readonly args: unknown }
  | { readonly type: "tool.forged_arg_stripped"; readonly keys: readonly string[] }
  | { readonly type: "tool.rejected"; readonly reason: string }
  | { readonly type: "tool.update"; readonly partial: ToolOutput }
  | { readonly type: "tool.progress"; readonly text: string }
  | { readonly type: "tool.retried"; readonly attempt: number; readonly delayMs: number; readonly error: string }
  | { readonly type: "tool.completed" | "tool.failed"; readonly result: ToolResult };

function event(call: CallAtWork, body: CallEventBody): void {
  const { session, scope, block } = call;
  emit(session, { ...body, node: scope.task.node, task: scope.task.id, callId: block.id, tool: block.name });
}

function unreachable(call: CallAtWork): never {
  throw new StatewrightError("machine_failed", {
    what: `the recorded call ${idempotencyKeyOf(call.session, call.scope.task, call.block.id)} was about to run again`,
    next: "Report this with the thread's rows",
  });
}
