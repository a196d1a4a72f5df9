/** Runtime of a tool call, and the path of its progress, updates and custom events to event listeners. */
import { findInvalidData, resultBounds } from "../../base/bounds.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import type { InjectionSource } from "../../base/injection.ts";
import { describeValue, type Json } from "../../base/json.ts";
import { redactPartialResult } from "../../tool/artifacts/redaction-policy.ts";
import type { ToolRuntime, ToolSpec } from "../../tool/definition/tool.ts";
import { getContentText, type ToolOutput, toOutput } from "../../tool/result.ts";
import { emit } from "../events/event-emitter.ts";
import { createCallLongTerm } from "../journal/long-term-writes.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { getRunIdentity, sleep } from "../session/scope.ts";
import { validateEncodable } from "../session/validate-writes.ts";
import { createToolArtifacts } from "./artifact-access.ts";
import { emitCallEvent, listCallMiddleware, type ToolCallContext } from "./context.ts";
import { flushWithheld, redactLines, redactPartial, redactPayload } from "./redact-progress.ts";

/** Values of a tool execution that are the same in every attempt. */
export interface Execution {
  readonly idempotencyKey: string;
  readonly injected: unknown;
}

/**
 * Creates the source of injected values of a call. Progress and events through injected values are emitted only
 * during an active attempt.
 */
export function createInjectionSource(call: ToolCallContext): InjectionSource {
  const { position, env, progress, journal, scope } = call;
  const isOpen = (): boolean => call.isAttemptActive;
  return {
    context: env.context,
    state: progress.state,
    secrets: env.secrets,
    run: getRunIdentity(position, scope.task),
    longTerm: journal.longTerm === undefined ? undefined : createCallLongTerm(call),
    signal: scope.getSignal(),
    progress: createProgressEmitter(call, isOpen),
    emit: createCustomEventEmitter(call, isOpen),
  };
}

/** One attempt of a tool execution; `isOpen` is true while the attempt may emit. */
interface Attempt {
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly isOpen: () => boolean;
}

/**
 * Creates the runtime of a tool. No function depends on `this`; printing or serializing the runtime shows ids only.
 */
export function createToolRuntime(
  call: ToolCallContext,
  spec: ToolSpec,
  { idempotencyKey, injected }: Execution,
  { attempt, signal, isOpen }: Attempt,
): ToolRuntime {
  const { position, env, events, inboxes, signals, scope, block } = call;
  const run = getRunIdentity(position, scope.task);
  call.longTerm = [];
  const update =
    env.emitsUpdates && events.stream.hasReaders()
      ? (partial: ToolOutput): void => {
          if (isOpen()) emitUpdate(call, partial);
        }
      : undefined;
  const toPrintable = (): Json => ({
    ...{ callId: block.id, toolName: spec.name, attempt, run: { ...run }, idempotencyKey },
    ...{ progress: "[function]", emit: "[function]" },
    ...(update === undefined ? {} : { update: "[function]" }),
  });
  // Each field by name: a spread would grow the object field by field, for every call.
  return {
    callId: block.id,
    toolName: spec.name,
    attempt,
    run,
    idempotencyKey,
    context: env.context,
    injected,
    signal,
    steered: inboxes.inbox.getSteerSignal(),
    clock: env.world.clock,
    wait: async (ms) => {
      await sleep(signals, env.world, ms, signal);
      signal.throwIfAborted();
    },
    secrets: env.secrets,
    longTerm: createCallLongTerm(call),
    artifacts: createToolArtifacts(call),
    progress: createProgressEmitter(call, isOpen),
    emit: createCustomEventEmitter(call, isOpen),
    update,
    toJSON: toPrintable,
    [inspectSymbol]: toPrintable,
  };
}

const inspectSymbol: symbol = Symbol.for("nodejs.util.inspect.custom");

function createProgressEmitter(call: ToolCallContext, isOpen: () => boolean): ToolRuntime["progress"] {
  return (text) => {
    if (typeof text !== "string") throw new TypeError(`progress: expected a line of text, got ${describeValue(text)}`);
    if (isOpen() && call.env.emitsUpdates) emitProgress(call, text);
  };
}

function createCustomEventEmitter(call: ToolCallContext, isOpen: () => boolean): ToolRuntime["emit"] {
  return (name, payload) => {
    const { position, env, events, scope, block } = call;
    const { node, id: task } = scope.task;
    const place = getErrorPlace(position, { node, task, tool: block.name });
    validateEncodable(env.codec, payload, `the event "${name}"`, place);
    if (isOpen()) emit(events, { type: "custom", node, task, name, payload: redactPayload(call, name, payload) });
  };
}

/**
 * Emits a line of progress. The line passes the update filters too, since progress may contain data that a result
 * must not show.
 */
function emitProgress(call: ToolCallContext, text: string): void {
  if (!call.events.stream.hasReaders()) return;
  const hasRedaction = getRedaction(call) !== undefined;
  const shown =
    hasRedaction || listCallMiddleware(call).some(({ onToolUpdate }) => onToolUpdate !== undefined)
      ? filterUpdate(call, { content: text }, (partial) => partial)
      : { content: text };
  if (shown === null) return;
  for (const text of redactLines(call, getContentText(shown.content)))
    emitCallEvent(call, { type: "tool.progress", text });
}

/** Emits text that was held back as the possible start of a secret. */
export function emitHeldProgress(call: ToolCallContext): void {
  const { line, events } = flushWithheld(call);
  const { node, id: task } = call.scope.task;
  if (line !== "") emitCallEvent(call, { type: "tool.progress", text: line });
  for (const [name, payload] of events) emit(call.events, { type: "custom", node, task, name, payload });
}

/** Emits a partial result as a copy of its value at call time. */
function emitUpdate(call: ToolCallContext, partial: ToolOutput): void {
  const shown = filterUpdate(call, partial, cloneOutput);
  if (shown !== null) emitCallEvent(call, { type: "tool.update", partial: redactPartial(call, shown) });
}

function cloneOutput(partial: ToolOutput): ToolOutput {
  const invalid = findInvalidData(partial, resultBounds);
  if (invalid?.reason === "bounds") throw new TypeError(`its values ${invalid.text}`);
  // Artifacts are stored for results only.
  const { artifacts: _, ...output } = toOutput(partial);
  return structuredClone(output);
}

/**
 * Applies the update filters of the middleware, then the redaction of the tool. Returns null for an unreadable value
 * or after a failed filter.
 */
function filterUpdate(
  call: ToolCallContext,
  partial: ToolOutput,
  readOutput: (partial: ToolOutput) => ToolOutput,
): ToolOutput | null {
  try {
    let shown: ToolOutput | null = readOutput(partial);
    for (const { onToolUpdate } of listCallMiddleware(call))
      if (shown !== null && onToolUpdate !== undefined) shown = onToolUpdate({ call: call.toolCall, partial: shown });
    const redact = getRedaction(call);
    return redact === undefined || shown === null ? shown : redactPartialResult(redact, shown);
  } catch (thrown) {
    ignoreRejections(partial);
    call.env.world.log("warn", `an update of the tool "${call.toolCall.name}" was withheld`, {
      callId: call.block.id,
      error: toRedactedRecord(call.env.redactor, thrown),
    });
    return null;
  }
}

function getRedaction({ tool }: ToolCallContext): ((text: string) => string) | undefined {
  return tool?.spec.safety.redact?.result;
}
