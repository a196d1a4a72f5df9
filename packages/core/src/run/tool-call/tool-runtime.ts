/** What a tool gets beside its arguments, and how what it says while it works comes to the readers of events. */
import { resultBounds, unfitData } from "../../base/bounds.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import type { InjectionSource } from "../../base/injection.ts";
import { describeValue, type Json } from "../../base/json.ts";
import { redactedPartial } from "../../tool/artifacts/redaction-policy.ts";
import type { ToolRuntime, ToolSpec } from "../../tool/definition/tool.ts";
import { type ToolOutput, textOfBlocks, toOutput } from "../../tool/result.ts";
import { longTermOfCall } from "../journal/long-term-writes.ts";
import { heldOf, maskedLines, maskedPartial, maskedPayload } from "../model-call/redact-progress.ts";
import { recordOf } from "../session/redact-error.ts";
import { identityOf, pause } from "../session/scope.ts";
import { emit, placeOf } from "../session/session.ts";
import { admit } from "../session/validate-writes.ts";
import { artifactsOf } from "./artifact-access.ts";
import { type CallAtWork, event, hooks } from "./context.ts";

/** What an execution has beside its call: the same in every attempt. */
export interface Execution {
  readonly idempotencyKey: string;
  readonly injected: unknown;
}

/** Where the hidden values of a call are found. What it says through them counts while an attempt is at work. */
export function injectionSource(call: CallAtWork): InjectionSource {
  const { session, scope } = call;
  const { context, state, secrets } = session;
  const voice = voiceOf(call, () => call.isOpen);
  const run = identityOf(session, scope.task);
  const longTerm = session.longTerm === undefined ? undefined : longTermOfCall(call);
  return { context, state, secrets, run, longTerm, signal: scope.signal(), ...voice };
}

/** What the tool gets. No function of it depends on `this`, and printing it, or a copy of it, shows ids. */
export function toolRuntime(
  call: CallAtWork,
  spec: ToolSpec,
  { idempotencyKey, injected }: Execution,
  attempt: number,
  signal: AbortSignal,
  isOpen: () => boolean,
): ToolRuntime {
  const { session, scope, block } = call;
  const run = identityOf(session, scope.task);
  const voice = voiceOf(call, isOpen);
  call.longTerm = [];
  const update =
    session.updates && session.events.listening()
      ? (partial: ToolOutput): void => {
          if (isOpen()) sendUpdate(call, partial);
        }
      : undefined;
  const ids = { callId: block.id, toolName: spec.name, attempt, run, idempotencyKey };
  const printed = (): Json => ({
    ...{ callId: ids.callId, toolName: ids.toolName, attempt, run: { ...run }, idempotencyKey },
    ...{ progress: "[function]", emit: "[function]" },
    ...(update === undefined ? {} : { update: "[function]" }),
  });
  return {
    ...ids,
    context: session.context,
    injected,
    signal,
    steered: session.inbox.steered(),
    clock: session.world.clock,
    wait: async (ms) => {
      await pause(session, ms, signal);
      signal.throwIfAborted();
    },
    secrets: session.secrets,
    longTerm: longTermOfCall(call),
    artifacts: artifactsOf(call),
    ...voice,
    update,
    toJSON: printed,
    [inspecting]: printed,
  };
}

const inspecting: symbol = Symbol.for("nodejs.util.inspect.custom");

function voiceOf(call: CallAtWork, isOpen: () => boolean): Pick<ToolRuntime, "progress" | "emit"> {
  const { session, scope } = call;
  return {
    progress: (text) => {
      if (typeof text !== "string") throw new TypeError(`progress takes a line of text, not ${describeValue(text)}`);
      if (isOpen() && session.updates) sendProgress(call, text);
    },
    emit: (name, payload) => {
      const { node, id: task } = scope.task;
      const place = placeOf(session, { node, task, tool: call.block.name });
      admit(session.codec, payload, `the event "${name}"`, place);
      if (isOpen()) emit(session, { type: "custom", node, task, name, payload: maskedPayload(call, name, payload) });
    },
  };
}

/** A line on its way to the readers: it passes the filters of updates too, since both may show what a result may not. */
function sendProgress(call: CallAtWork, text: string): void {
  if (!call.session.events.listening()) return;
  const redacts = redactionOf(call) !== undefined;
  const shown =
    redacts || hooks(call).some(({ onToolUpdate }) => onToolUpdate !== undefined)
      ? filtered(call, { content: text }, (partial) => partial)
      : { content: text };
  if (shown === null) return;
  for (const text of maskedLines(call, textOfBlocks(shown.content))) event(call, { type: "tool.progress", text });
}

/** What was held back while it could have been the beginning of a secret. */
export function tellRest(call: CallAtWork): void {
  const { line, events } = heldOf(call);
  const { node, id: task } = call.scope.task;
  if (line !== "") event(call, { type: "tool.progress", text: line });
  for (const [name, payload] of events) emit(call.session, { type: "custom", node, task, name, payload });
}

/** A partial result on its way to the readers, as it was when it was sent. */
function sendUpdate(call: CallAtWork, partial: ToolOutput): void {
  const shown = filtered(call, partial, copyOf);
  if (shown !== null) event(call, { type: "tool.update", partial: maskedPartial(call, shown) });
}

function copyOf(partial: ToolOutput): ToolOutput {
  const unfit = unfitData(partial, resultBounds);
  if (unfit?.why === "bounds") throw new TypeError(`its values ${unfit.text}`);
  // Artifacts are kept of results only.
  const { artifacts: _, ...output } = toOutput(partial);
  return structuredClone(output);
}

/** What the filters of the call's middleware and the tool's own redaction leave. What cannot be read, or whose filter fails, is withheld. */
function filtered(call: CallAtWork, partial: ToolOutput, read: (partial: ToolOutput) => ToolOutput): ToolOutput | null {
  try {
    let shown: ToolOutput | null = read(partial);
    for (const { onToolUpdate } of hooks(call))
      if (shown !== null && onToolUpdate !== undefined) shown = onToolUpdate({ call: call.toolCall, partial: shown });
    const redact = redactionOf(call);
    return redact === undefined || shown === null ? shown : redactedPartial(redact, shown);
  } catch (thrown) {
    disregardPromises(partial);
    call.session.world.log("warn", `an update of the tool "${call.toolCall.name}" was withheld`, {
      callId: call.block.id,
      error: recordOf(call.session, thrown),
    });
    return null;
  }
}

function redactionOf({ tool }: CallAtWork): ((text: string) => string) | undefined {
  return tool?.spec.safety.redact?.result;
}
