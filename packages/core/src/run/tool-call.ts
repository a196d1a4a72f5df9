/** One tool call: its machine, driven from received to answered. Its result is a recorded effect; a replay runs no hook. */
import { isStatewrightError, StatewrightError } from "../base/errors.ts";
import { deepFreeze, isPlainObject, type Json } from "../base/json.ts";
import { retryDelayMs } from "../base/retry.ts";
import { issuesText, parseWith } from "../base/schema.ts";
import type { InterruptRow } from "../checkpoint/journal.ts";
import { type ToolCallEvent, type ToolCallState, toolCallMachine } from "../compile/tool-call-machine.ts";
import type { ToolNode } from "../define/tool-node.ts";
import type { ToolCallBlock } from "../model/message.ts";
import { type ApprovalAnswer, approval } from "../tool/approval.ts";
import type { BeforeToolDecision, Middleware } from "../tool/middleware.ts";
import { jsonSchemaOf, parseArgs } from "../tool/model-tool.ts";
import { resultOf, resultOfError, type ToolOutput, type ToolResult, toOutput } from "../tool/result.ts";
import type { Tool, ToolCall, ToolRuntime, ToolSpec } from "../tool/tool.ts";
import { ToolError, toToolError } from "../tool/tool-error.ts";
import { idempotencyKeyOf, perform } from "./journal.ts";
import { createTableKernel, type Kernel } from "./kernel.ts";
import { hookRuntime, identityOf, pause, type TaskScope } from "./scope.ts";
import { emit, journalKey, placeOf, type Session } from "./session.ts";

/** How a call ended for now: with its one answer, or waiting for a person. */
export type CallEnd =
  | { readonly kind: "answered"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow };

/** A call on its way. `key` tells it from its siblings, also when a model gave two of them one id. */
export interface CallAtWork {
  readonly session: Session;
  readonly scope: TaskScope;
  readonly node: ToolNode<never, never>;
  readonly block: ToolCallBlock;
  readonly key: string;
  /** The state of the call's machine. */
  readonly state: () => ToolCallState;
  readonly move: (event: ToolCallEvent) => void;
  readonly startedAt: number;
}

let kernel: Kernel | undefined;

/** Run one call to its answer. */
export async function runToolCall(
  session: Session,
  scope: TaskScope,
  node: ToolNode<never, never>,
  block: ToolCallBlock,
  key: string,
): Promise<CallEnd> {
  kernel ??= createTableKernel(toolCallMachine, (event) => event.type);
  const machine = kernel;
  let [at] = machine.initial();
  const call: CallAtWork = {
    session,
    scope,
    node,
    block,
    key,
    state: () => at.value as ToolCallState,
    move: (event) => {
      [at] = machine.step(at, { type: event });
    },
    startedAt: session.world.clock.monotonic(),
  };
  const known = session.saved?.journal.get(journalKey(session.step, scope.task.id, key));
  if (known?.state === "ok")
    return { kind: "answered", result: await recorded(call, "pure", async () => unreachable(call)) };
  const prepared = await prepare(call);
  if (prepared.kind === "waiting") return prepared;
  if (prepared.kind === "answer") {
    call.move("call.settled");
    return { kind: "answered", result: await recorded(call, "pure", () => conclude(call, prepared.result)) };
  }
  const { tool, toolCall } = prepared;
  const result = await recorded(
    call,
    tool.spec.effect,
    (idempotencyKey) => execute(call, tool, toolCall, idempotencyKey).then((executed) => conclude(call, executed)),
    tool.reconcile === undefined ? undefined : (idempotencyKey) => reconcile(call, tool, toolCall, idempotencyKey),
  );
  return { kind: "answered", result };
}

type Prepared =
  | { readonly kind: "answer"; readonly result: ToolResult }
  | { readonly kind: "waiting"; readonly open: InterruptRow }
  | { readonly kind: "run"; readonly tool: Tool<never, never>; readonly toolCall: ToolCall };

/** From received to the decision of the before hooks. */
async function prepare(call: CallAtWork): Promise<Prepared> {
  const { block, node } = call;
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
  const toolCall: ToolCall = deepFreeze({ id: block.id, name: tool.spec.name, args: args.value });
  call.move("call.started");
  event(call, { type: "tool.started", args: toolCall.args });
  call.move("call.checking");
  return decide(call, tool, toolCall);
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
  if (block.raw !== undefined)
    return ToolError.invalidArgs(`The arguments of "${spec.name}" are not valid JSON. Send one JSON object.`);
  const parsed = parseArgs(spec, withoutHidden(call, spec, block.args));
  if (parsed.ok) return { value: parsed.value };
  return ToolError.invalidArgs(`The arguments of "${spec.name}" do not fit: ${issuesText(parsed.issues)}.`, {
    details: parsed.issues,
  });
}

/** A hidden name that the model forged is dropped before parsing; the real value wins. */
function withoutHidden(call: CallAtWork, spec: ToolSpec, args: Json): Json {
  if (!isPlainObject(args)) return args;
  const forged = Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name));
  if (forged.length === 0) return args;
  event(call, { type: "tool.forged_arg_stripped", keys: forged });
  return Object.fromEntries(Object.entries(args).filter(([name]) => !forged.includes(name))) as Json;
}

async function decide(call: CallAtWork, tool: Tool<never, never>, toolCall: ToolCall): Promise<Prepared> {
  let current = toolCall;
  for (const middleware of hooks(call)) {
    const decision = await middleware.beforeTool?.({ call: current, tool: tool.spec }, hookRuntime(call.session, call.scope));
    if (decision === undefined || decision.action === "allow") continue;
    if (decision.action === "modify") {
      const rewritten = rewrite(call, tool.spec, current, decision.args, middleware.name);
      if (rewritten instanceof ToolError) return { kind: "answer", result: resultOfError(rewritten, facts(call, 0)) };
      current = rewritten;
      continue;
    }
    const ended = await act(call, tool, current, decision);
    if (ended.kind !== "run") return ended;
    current = ended.toolCall;
  }
  if (call.state() === "before") call.move("call.allowed");
  return { kind: "run", tool, toolCall: current };
}

async function act(
  call: CallAtWork,
  tool: Tool<never, never>,
  toolCall: ToolCall,
  decision: Exclude<BeforeToolDecision, { action: "allow" | "modify" }>,
): Promise<Prepared> {
  if (decision.action === "respond") {
    const output = toOutput(decision.output);
    return { kind: "answer", result: resultOf(output, facts(call, 0)) };
  }
  if (decision.action === "deny")
    return { kind: "answer", result: resultOfError(new ToolError("denied", decision.reason), facts(call, 0)) };
  const asked = call.scope.consult({
    id: `${call.scope.task.id}:${call.key}`,
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
  call.move("call.decided");
  if (verdict.args === undefined) return { kind: "run", tool, toolCall };
  const rewritten = rewrite(call, tool.spec, toolCall, verdict.args, "approval");
  if (rewritten instanceof ToolError) return { kind: "answer", result: resultOfError(rewritten, facts(call, 0)) };
  return { kind: "run", tool, toolCall: rewritten };
}

/** Anything but a clear yes is a no. */
function readApproval(answer: unknown): Exclude<ApprovalAnswer, boolean> {
  const parsed = parseWith(approval, answer);
  if (!parsed.ok) return { approved: false, reason: "the answer was not understood" };
  return typeof parsed.value === "boolean" ? { approved: parsed.value } : parsed.value;
}

function rewrite(
  call: CallAtWork,
  spec: ToolSpec,
  toolCall: ToolCall,
  args: unknown,
  by: string,
): ToolCall | ToolError {
  const parsed = parseArgs(spec, args);
  if (!parsed.ok)
    return ToolError.invalidArgs(`The arguments that "${by}" put in place do not fit: ${issuesText(parsed.issues)}.`);
  const rewritten: ToolCall = deepFreeze({ ...toolCall, args: parsed.value });
  event(call, { type: "tool.args_rewritten", by, args: rewritten.args });
  return rewritten;
}

/** From executing to a result; retries and around hooks stand inside. */
function execute(
  call: CallAtWork,
  tool: Tool<never, never>,
  toolCall: ToolCall,
  idempotencyKey: string,
): Promise<ToolResult> {
  if (call.state() === "before") call.move("call.allowed");
  let next = (current: ToolCall): Promise<ToolResult> => attempts(call, tool, current, idempotencyKey);
  for (const middleware of hooks(call).toReversed()) {
    const around = middleware.aroundTool;
    if (around === undefined) continue;
    const inner = next;
    next = (current) => around({ call: current, tool: tool.spec }, inner, hookRuntime(call.session, call.scope));
  }
  return next(toolCall).then((result) => {
    call.move("call.settled");
    return result;
  });
}

async function attempts(
  call: CallAtWork,
  tool: Tool<never, never>,
  toolCall: ToolCall,
  idempotencyKey: string,
): Promise<ToolResult> {
  const { session } = call;
  const { retry } = tool.spec;
  for (let attempt = 1; ; attempt++) {
    try {
      const returned = await attemptOnce(call, tool, toolCall, idempotencyKey, attempt);
      return checkedResult(call, tool.spec, returned, attempt);
    } catch (thrown) {
      if (isStatewrightError(thrown)) throw thrown;
      const error = toToolError(thrown);
      const again =
        retry !== undefined &&
        attempt < retry.attempts &&
        error.kind !== "cancelled" &&
        !session.abort.signal.aborted &&
        wanted(tool.spec, error, attempt);
      if (!again) return resultOfError(error, facts(call, attempt));
      const delayMs = error.retryAfterMs ?? retryDelayMs(retry, attempt, session.world.random.next());
      call.move("call.failed_attempt");
      event(call, { type: "tool.retried", attempt, delayMs, error: error.userMessage });
      await pause(session, delayMs);
      call.move("call.retried");
    }
  }
}

function wanted(spec: ToolSpec, error: ToolError, attempt: number): boolean {
  const on = spec.retry?.on;
  if (on === undefined) return spec.effect === "once" ? error.kind === "unavailable" : error.disposition === "retry";
  return typeof on === "function" ? on(error, attempt) : on.includes(error.kind);
}

/** One attempt: ends by the tool, by its time limit, or by the run's cancellation, whichever is first; what comes later is dropped and logged. */
function attemptOnce(
  call: CallAtWork,
  tool: Tool<never, never>,
  toolCall: ToolCall,
  idempotencyKey: string,
  attempt: number,
): Promise<unknown> {
  const { session, scope } = call;
  return new Promise((resolve, reject) => {
    const controller = new AbortController();
    const outer = scope.signal();
    let settled = false;
    let cancelTimer: (() => void) | undefined;
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
      outer.removeEventListener("abort", onAbort);
      act();
    };
    const stop = (error: ToolError): void => {
      settle(() => reject(error));
      controller.abort(error);
    };
    const onAbort = (): void => stop(ToolError.cancelled());
    outer.addEventListener("abort", onAbort, { once: true });
    const { timeoutMs } = tool.spec;
    if (timeoutMs !== undefined)
      cancelTimer = session.world.schedule.after(timeoutMs, () => stop(ToolError.timeout(timeoutMs)));
    if (outer.aborted) {
      onAbort();
      return;
    }
    const runtime = toolRuntime(call, tool.spec, idempotencyKey, attempt, controller.signal, () => !settled);
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
  idempotencyKey: string,
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
    injected: undefined,
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

function sendUpdate(call: CallAtWork, partial: ToolOutput, open: () => boolean): void {
  if (!open()) return;
  let shown: ToolOutput | null = structuredClone(partial);
  const toolCall: ToolCall = { id: call.block.id, name: call.block.name, args: call.block.args };
  for (const middleware of hooks(call))
    shown = shown === null ? null : (middleware.onToolUpdate?.({ call: toolCall, partial: shown }) ?? shown);
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
  toolCall: ToolCall,
  idempotencyKey: string,
): Promise<ToolResult | undefined> {
  const runtime = toolRuntime(call, tool.spec, idempotencyKey, 1, call.scope.signal(), () => true);
  const happened = await tool.reconcile?.(call.session.state as never, runtime as never, toolCall);
  if (happened === undefined) return undefined;
  if (call.state() === "before") call.move("call.allowed");
  call.move("call.settled");
  return conclude(call, resultOf(happened, facts(call, 1)));
}

/** After hooks, in reverse order: from the state after to persisted. */
async function conclude(call: CallAtWork, result: ToolResult): Promise<ToolResult> {
  let reviewed = result;
  const toolCall: ToolCall = { id: call.block.id, name: call.block.name, args: call.block.args };
  for (const middleware of hooks(call).toReversed()) {
    reviewed =
      (await middleware.afterTool?.({ call: toolCall, result: reviewed }, hookRuntime(call.session, call.scope))) ?? reviewed;
  }
  call.move("call.reviewed");
  call.move("call.persisted");
  return deepFreeze({ ...reviewed, callId: call.block.id });
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
    key: call.key,
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
    what: `the recorded call ${idempotencyKeyOf(call.session, call.scope.task, call.key)} was about to run again`,
    next: "Report this with the thread's rows",
  });
}
