/**
 * Runtime of a tool call: injected values, progress, updates and custom events for listeners, the artifacts of the
 * thread, and the redaction of progress over its chunks.
 */

import { findInvalidData, resultBounds } from "../../base/bounds.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import type { InjectionSource } from "../../base/injection.ts";
import { describeValue, type Json } from "../../base/json.ts";
import { findContinuationIndex, redactSplitSecrets } from "../../base/redaction/redact-chunks.ts";
import { type PreviousChunk, redactChunk, redactText } from "../../base/redaction/redact-text.ts";
import {
  type ArtifactRow,
  getArtifactHandle,
  handleLength,
  type StoredArtifacts,
} from "../../tool/artifacts/artifact.ts";
import type { ArtifactPage, ToolArtifacts } from "../../tool/artifacts/artifact-access.ts";
import { applyRedaction, redactPartialResult } from "../../tool/artifacts/redaction-policy.ts";
import type { ToolRuntime, ToolSpec } from "../../tool/definition/tool.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { getContentText, type ToolOutput, toOutput } from "../../tool/result.ts";
import { emit } from "../events/events.ts";
import { createCallLongTerm } from "../journal/long-term-writes.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { getRunIdentity, sleep } from "../session/scope.ts";
import { validateEncodable } from "../session/validate-writes.ts";
import { createResultDataCopier, emitCallEvent, listCallMiddleware, type ToolCallContext } from "./context.ts";
import { createCallGenerate } from "./generate-in-call.ts";

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

/** An attempt of a tool execution; `isOpen` is true while the attempt may emit. */
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
    generate: createCallGenerate(call, { signal, isOpen }),
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

/** Emits withheld text, the possible start of a secret. */
export function emitWithheldProgress(call: ToolCallContext): void {
  const { line, events } = flushWithheld(call);
  const { node, id: task } = call.scope.task;
  if (line !== "") emitCallEvent(call, { type: "tool.progress", text: line });
  for (const [name, payload] of events) emit(call.events, { type: "custom", node, task, name, payload });
}

/** Emits a partial result as a copy of its value at call time. */
export function emitUpdate(call: ToolCallContext, partial: ToolOutput): void {
  const shown = filterUpdate(call, partial, (output) => copyOutput(call, output));
  if (shown !== null) emitCallEvent(call, { type: "tool.update", partial: redactPartial(call, shown) });
}

/** Copies an update. Its data is copied like the data of a result. */
function copyOutput(call: ToolCallContext, partial: ToolOutput): ToolOutput {
  const invalid = findInvalidData(partial, resultBounds);
  if (invalid?.reason === "bounds") throw new TypeError(`its values ${invalid.text}`);
  // Artifacts are stored for results only.
  const { copy, logDropped } = createResultDataCopier(call, "an update");
  const { artifacts: _, value, details, provider, ...output } = toOutput(partial, copy);
  const copied: { -readonly [Key in keyof ToolOutput]: ToolOutput[Key] } =
    typeof output.content === "string" && output.command === undefined && output.usage === undefined
      ? output
      : structuredClone(output);
  if (value !== undefined) copied.value = copy(value, "value");
  if (details !== undefined) copied.details = copy(details, "details");
  if (provider !== undefined) copied.provider = copy(provider, "provider") as ToolOutput["provider"];
  logDropped();
  return copied;
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
    call.withheldUpdates += 1;
    emitCallEvent(call, { type: "tool.update_withheld", count: call.withheldUpdates });
    return null;
  }
}

function getRedaction({ tool }: ToolCallContext): ((text: string) => string) | undefined {
  return tool?.spec.safety.redact?.result;
}

/** Creates the artifact reader of a tool call. */
function createToolArtifacts(call: ToolCallContext): ToolArtifacts {
  const { node, position, journal } = call;
  const { thread } = position.run;
  const getStore = (): StoredArtifacts | undefined => node.artifacts ?? journal.saved?.store.artifacts;
  return {
    list: async () => (await getStore()?.list(thread)) ?? [],
    read: async (artifact) => {
      const { at, rows } = await findArtifact(getStore(), thread, artifact);
      return readBody(at, thread, artifact, rows);
    },
    page: async (artifact, range) => {
      const { at, rows } = await findArtifact(getStore(), thread, artifact);
      return readPage(call, at, range, { artifact, rows });
    },
  };
}

type Rows = readonly [ArtifactRow, ...ArtifactRow[]];

const handlePattern = new RegExp(`^(?:[0-9a-f]{${handleLength}}|[0-9a-f]{64})$`);

/** Finds all rows of a body. Calls of several tools may have stored the same body. */
async function findArtifact(
  at: StoredArtifacts | undefined,
  thread: string,
  artifact: string,
): Promise<{ readonly at: StoredArtifacts; readonly rows: Rows }> {
  const [first, ...others] =
    at === undefined || !handlePattern.test(artifact) ? [] : await at.list(thread, { key: artifact });
  if (at === undefined || first === undefined)
    throw ToolError.notFound(`There is no artifact "${truncateHandle(artifact)}" in this thread.`);
  return { at, rows: [first, ...others.filter(({ key }) => key === first.key)] };
}

function truncateHandle(artifact: string): string {
  return artifact.length > 100 ? `${artifact.slice(0, 100)}…` : artifact;
}

async function readBody(store: StoredArtifacts, thread: string, artifact: string, [row]: Rows): Promise<Uint8Array> {
  const body = await store.read(thread, row.key);
  if (body === undefined) throw createDeletedError(artifact, row);
  return body;
}

function createDeletedError(artifact: string, { name, bytes }: ArtifactRow): ToolError {
  return ToolError.notFound(
    `The artifact "${artifact}" (${JSON.stringify(name)}, ${bytes} bytes) is no longer stored.`,
  );
}

async function readPage(
  call: ToolCallContext,
  store: StoredArtifacts,
  { offset, limit }: { readonly offset: number; readonly limit: number },
  { artifact, rows }: { readonly artifact: string; readonly rows: Rows },
): Promise<ArtifactPage> {
  const { thread } = call.position.run;
  const [{ key, name, mimeType, text, bytes }] = rows;
  if (!text)
    throw ToolError.failed(
      `The artifact "${artifact}" (${mimeType}, ${bytes} bytes) is not text and cannot be read here.`,
    );
  const policies = listRedactions(call, artifact, rows);
  const header = { handle: getArtifactHandle(key), name, mimeType };
  if (policies.length === 0) {
    // Reads a single code point more than the page: the byte after the last code point shows that the code point is
    // complete.
    const part = await store.read(thread, key, { offset, limit: limit + 4 });
    if (part === undefined) throw createDeletedError(artifact, rows[0]);
    return { ...header, ...slicePage(part, limit, offset), bytes, ...getNextOffset(part, limit, offset, bytes) };
  }
  const body = await readBody(store, thread, artifact, rows);
  const fullText = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const redacted = new TextEncoder().encode(
    policies.reduce((shown, redact) => applyRedaction(redact, shown), fullText),
  );
  const part = redacted.subarray(offset, offset + limit + 4);
  const total = redacted.length;
  return { ...header, ...slicePage(part, limit, offset), bytes: total, ...getNextOffset(part, limit, offset, total) };
}

/**
 * Lists the redaction functions to apply before a model reads the body: one of each tool that returned the body,
 * unless the stored text was redacted already.
 */
function listRedactions(
  { node }: ToolCallContext,
  artifact: string,
  rows: Rows,
): readonly ((text: string) => string)[] {
  const policies = new Set<(text: string) => string>();
  for (const { tool, redaction } of rows) {
    if (redaction === "done") continue;
    const spec = node.registry.get(tool)?.spec;
    const redact = spec?.safety.redact?.result;
    if (redact !== undefined) policies.add(redact);
    // The tool with the redaction function is not registered here: refuse to show the text.
    else if (redaction === "skipped")
      throw new ToolError("denied", `The artifact "${artifact}" cannot be shown: only "${tool}" could redact it.`);
  }
  return [...policies];
}

/**
 * Cuts a page from bytes that start at `offset`: from the first complete code point, at most `limit` bytes, at least
 * a single code point.
 */
function slicePage(part: Uint8Array, limit: number, offset: number): Pick<ArtifactPage, "text" | "offset"> {
  const [start, end] = findPageBounds(part, limit);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(part.subarray(start, end));
  return { text, offset: offset + start };
}

function getNextOffset(part: Uint8Array, limit: number, offset: number, bytes: number): Pick<ArtifactPage, "next"> {
  const next = offset + findPageBounds(part, limit)[1];
  return next < bytes ? { next } : {};
}

function findPageBounds(part: Uint8Array, limit: number): readonly [start: number, end: number] {
  let start = 0;
  while (start < 3 && isContinuationByte(part[start])) start++;
  let end = Math.min(limit, part.length);
  while (end > start && isContinuationByte(part[end])) end--;
  if (end <= start) {
    end = Math.min(start + 1, part.length);
    while (isContinuationByte(part[end])) end++;
  }
  return [start, end];
}

/** True for a UTF-8 continuation byte. */
function isContinuationByte(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Redaction state of the previous chunks of a tool call: last progress line, content by index, events by name. */
interface ProgressState {
  lastLine: PreviousChunk | undefined;
  readonly content: Map<number, PreviousChunk>;
  readonly events: Map<string, PreviousChunk>;
}

/** Redaction state of calls whose run has secrets. */
const progressStates: WeakMap<ToolCallContext, ProgressState> = new WeakMap();

/** Redacts a line of progress. Returns the lines to emit; text withheld from the previous line comes first. */
function redactLines(call: ToolCallContext, text: string): readonly string[] {
  const secrets = call.env.redactor.listSecrets();
  if (secrets.length === 0 || text === "") return [text];
  const state = getProgressState(call);
  const { released, text: redacted, previous } = redactChunk(text, secrets, state.lastLine);
  state.lastLine = previous;
  return [released, redacted].filter((line) => line !== "");
}

/** Redacts the payload of a custom tool event. String payloads under the same name count as chunks of the same text. */
function redactPayload(call: ToolCallContext, name: string, payload: Json): Json {
  const { redactor } = call.env;
  const secrets = redactor.listSecrets();
  if (secrets.length === 0 || typeof payload !== "string") return redactor.redact(payload);
  const { events } = getProgressState(call);
  const { released, text, previous } = redactChunk(payload, secrets, events.get(name));
  events.set(name, previous);
  return released + text;
}

const nothingWithheld: ReturnType<typeof flushWithheld> = { line: "", events: new Map() };

/** Returns and clears the text withheld until the end: of the last progress line, and of events by name. */
function flushWithheld(call: ToolCallContext): {
  readonly line: string;
  readonly events: ReadonlyMap<string, string>;
} {
  const state = progressStates.get(call);
  if (state === undefined) return nothingWithheld;
  progressStates.delete(call);
  const secrets = call.env.redactor.listSecrets();
  const redactWithheld = (before: PreviousChunk | undefined): string => redactText(before?.pending ?? "", secrets);
  const events = [...state.events].map(([name, before]) => [name, redactWithheld(before)] as const);
  return { line: redactWithheld(state.lastLine), events: new Map(events.filter(([, text]) => text !== "")) };
}

/**
 * Redacts a partial result. Each partial result is independent: withheld text reappears in the next partial result or
 * in the final result.
 */
function redactPartial(call: ToolCallContext, partial: ToolOutput): ToolOutput {
  const { redactor } = call.env;
  const secrets = redactor.listSecrets();
  if (secrets.length === 0) return partial;
  const { content } = getProgressState(call);
  const cleaned = typeof partial.content === "string" ? partial.content : redactSplitSecrets(partial.content, secrets);
  const shown = redactor.redactPartial(cleaned === partial.content ? partial : { ...partial, content: cleaned });
  const redactBlockText = (text: string, index: number): string => {
    const { text: redacted, previous } = redactChunk(text, secrets, content.get(index));
    content.set(index, previous);
    return redacted;
  };
  if (typeof cleaned === "string") return { ...shown, content: redactBlockText(cleaned, 0) };
  if (typeof shown.content === "string") return shown;
  const withheldFrom = findContinuationIndex(cleaned, secrets);
  const blocks = shown.content.map((block, index) => {
    const original = cleaned[index];
    if (block.type !== "text" || original?.type !== "text") return block;
    const text = redactBlockText(original.text, index);
    return { ...block, text: index < withheldFrom ? text : "" };
  });
  return { ...shown, content: blocks };
}

function getProgressState(call: ToolCallContext): ProgressState {
  const state: ProgressState = progressStates.get(call) ?? {
    lastLine: undefined,
    content: new Map(),
    events: new Map(),
  };
  progressStates.set(call, state);
  return state;
}
