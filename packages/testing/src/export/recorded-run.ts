/** Recording of a run for a test, and the extraction from a store. */
import {
  type AssistantMessage,
  type Graph,
  getHistory,
  getState,
  type Json,
  type Message,
  type ModelReply,
  type Store,
  type ToolMessage,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { type CheckpointRow, type Codec, type Delta, storeRules } from "@statewright/core/store";
import { normalizeIds } from "../run/normalize-ids.ts";
import { omitFailedAttempts } from "../run/omit-failed-attempts.ts";
import { type LineCheckpoint, type LineEnd, listLineParts, loadLine } from "./thread-line.ts";

/** A model request and the reply. The request is undefined until the run was replayed once. */
export interface RecordedReply {
  /** Namespace, task and key of the model call. */
  readonly place: string;
  readonly request?: unknown;
  readonly reply: ModelReply;
}

/** Result of a tool call. Recordings store results by namespace and call id. */
export interface RecordedResult {
  readonly tool: string;
  readonly content: ToolMessage["content"];
  readonly isError: boolean;
}

/** An answer to an interrupt. */
export interface RecordedInterruptAnswer {
  readonly node: string;
  readonly key: string;
  readonly answer: Json;
}

/** Write to a channel: added items of a list, or a value. */
export type RecordedWrite = { readonly items: Json } | { readonly value: Json };

/** Writes of an execution of a node, and its `goto` target. */
export interface RecordedExecution {
  readonly writes: Readonly<Record<string, RecordedWrite>>;
  readonly goto?: string;
}

/** A run as plain data: the recording next to an exported test. */
export interface RecordedRun {
  readonly form: typeof recordingForm;
  readonly graph: string;
  readonly version: number;
  /** Start time in milliseconds since the epoch. The clock of a replay starts at this time. */
  readonly startedAt: number;
  /** Inputs of the thread, in order. */
  readonly inputs: readonly Readonly<Record<string, Json>>[];
  readonly models: readonly RecordedReply[];
  readonly tools: Readonly<Record<string, RecordedResult>>;
  /** Step outcomes saved in the store, by namespace, task and key. */
  readonly steps: Readonly<Record<string, Json>>;
  readonly answers: readonly RecordedInterruptAnswer[];
  /** Executions of nodes whose bodies cannot be replayed, by the path of the node. */
  readonly written: Readonly<Record<string, readonly RecordedExecution[]>>;
  /** Node names of each superstep. */
  readonly path: readonly (readonly string[])[];
  readonly status: string;
  readonly state: Readonly<Record<string, Json>>;
  /** Number of commits, of inputs and supersteps, after which the replay is held; absent for a whole run. */
  readonly commits?: number;
}

/** Version of the form of recordings. */
const recordingForm = 2;

/** A loaded recording and the parts that could not be recorded. */
export interface LoadedRecording {
  readonly recorded: RecordedRun;
  readonly unrecorded: readonly string[];
  readonly line: readonly LineCheckpoint[];
}

/** Part of a thread to record: a branch, up to a checkpoint. */
export interface RecordedPart {
  readonly thread: string;
  readonly branch: string | undefined;
  /** Last checkpoint; undefined for the newest one. */
  readonly upTo: number | undefined;
}

/**
 * Loads the recording of a branch, with the part before a fork, up to a checkpoint. Throws `unknown_thread` and
 * `unknown_checkpoint`.
 */
export async function loadRecording(
  graph: Graph,
  store: Store,
  part: RecordedPart,
  codec: Codec,
): Promise<LoadedRecording> {
  const { thread } = part;
  const options = { store, thread, codec };
  const last = part.upTo === undefined ? undefined : await loadLast(store, part, part.upTo);
  const { state, branch, status } = await getState(graph, {
    ...options,
    ...(last !== undefined ? { at: last.id } : part.branch === undefined ? {} : { branch: part.branch }),
  });
  const line = await loadLine(store, thread, { branch, last }, codec);
  const ownIds = new Set<number>();
  const page = { branch, pageSize: 200, ...(last === undefined ? {} : { before: last.id + 1 }) };
  for await (const { checkpointId } of getHistory(graph, { ...options, ...page })) ownIds.add(checkpointId);
  const outer = line.filter(({ row, inside }) => inside === "" && ownIds.has(row.id));
  const unrecorded: string[] = [];
  for (const { row, changes } of outer) {
    if (row.source === "input" || row.source === "step") continue;
    if (row.source === "fork" && Object.keys(changes).length === 0) continue;
    unrecorded.push(
      `checkpoint ${row.id} was written by ${row.source === "update" ? "an edit" : `a ${row.source}`}, which the test does not repeat`,
    );
  }
  const { models, tools } = collectMessages(line, unrecorded);
  const untracked = Object.entries(graph.state.channels).flatMap(([name, { kind }]) =>
    kind === "untracked" ? [name] : [],
  );
  if (untracked.length > 0)
    unrecorded.push(
      `the untracked ${untracked.length === 1 ? "channel" : "channels"} ${untracked.map((name) => `"${name}"`).join(", ")}, whose values no store has`,
    );
  return {
    line,
    unrecorded,
    recorded: {
      form: recordingForm,
      graph: graph.name,
      version: graph.version,
      startedAt: outer[0]?.row.at ?? 0,
      inputs: outer.flatMap(({ row, changes, values }) => (row.source === "input" ? [toInput(changes, values)] : [])),
      models,
      tools,
      steps: await loadSteps(store, thread, { line, last }, codec),
      answers: await loadAnswers(store, thread, { branch, last }, codec),
      written: {},
      path: outer.flatMap(({ row: { source, nodes } }) => (source === "step" && nodes.length > 0 ? [nodes] : [])),
      status: status ?? "running",
      state: toRecordedState(graph, state, codec),
      ...(last === undefined
        ? {}
        : { commits: outer.filter(({ row }) => row.source === "input" || row.source === "step").length }),
    },
  };
}

/** Loads the last checkpoint of a part. Throws unless it is a checkpoint of the outermost graph on the branch. */
async function loadLast(store: Store, { thread, branch }: RecordedPart, upTo: number): Promise<CheckpointRow> {
  const row = await store.checkpoint(thread, upTo);
  if (row === undefined && (await store.thread(thread)) !== undefined)
    throw storeRules.createUnknownCheckpointError(thread, upTo);
  if (row === undefined) throw storeRules.createUnknownThreadError(thread);
  const isOnBranch =
    branch === undefined ||
    (await listLineParts(store, thread, { branch, last: undefined })).some(
      (part) => part.branch === row.branch && row.seq <= part.until,
    );
  if (isOnBranch && !row.branch.includes("/")) return row;
  throw invalidOption({
    where: "exportTest",
    option: "upTo",
    expected: branch === undefined ? "a checkpoint of the outermost graph" : `a checkpoint of the branch "${branch}"`,
    found: `the checkpoint ${upTo} of "${row.branch}"`,
    fix: "Pass the id of a checkpoint that getHistory lists for the branch",
    place: { thread },
  });
}

/** Collects the model replies and the tool results that checkpoints of a line contain. */
function collectMessages(
  line: readonly LineCheckpoint[],
  unrecorded: string[],
): Pick<RecordedRun, "models"> & { readonly tools: Record<string, RecordedResult> } {
  const models = new Map<string, RecordedReply>();
  const tools: Record<string, RecordedResult> = {};
  for (const { row, inside, changes } of line) {
    if (row.source === "input") continue;
    for (const message of findMessages(Object.values(changes))) {
      if (message.role === "assistant") {
        const place = toReplyPlace(inside, message.id);
        models.set(place, { place, reply: toReply(message) });
      } else if (message.role === "tool") {
        const { callId, name, content, isError } = message;
        tools[toCallPlace(inside, callId)] = { tool: name, content: toPlainJson(content), isError: isError === true };
        if (content.some((block) => "ref" in block))
          unrecorded.push(
            `the artifacts of the call ${callId} of "${name}": the test contains only the content that the model received`,
          );
      }
    }
  }
  return { models: [...models.values()], tools };
}

/** Returns the place of a model call from the id of its message, which ends with task and key. */
function toReplyPlace(inside: string, messageId: string): string {
  const [, task = "", key = messageId] = /(\d+:\d+):(.*)$/s.exec(messageId) ?? [];
  return `${inside}/${task}/${key}`;
}

/** Returns the place of a tool call. */
export function toCallPlace(inside: string, callId: string): string {
  return `${inside}/${callId}`;
}

/** Returns namespace, task and key of an idempotency key: everything after thread, random part and branch. */
export function toEffectPlace(idempotencyKey: string): string {
  return idempotencyKey.replace(/^[^/]*\/[^/]*\/[^/]*/, "");
}

async function loadSteps(
  store: Store,
  thread: string,
  { line, last }: { readonly line: readonly LineCheckpoint[]; readonly last: CheckpointRow | undefined },
  codec: Codec,
): Promise<Record<string, Json>> {
  const steps: Record<string, Json> = {};
  const namespaces = new Map(line.map(({ row, inside }) => [row.branch, inside]));
  for (const [namespace, inside] of namespaces)
    for (const row of await store.effects(thread, namespace))
      if (
        row.kind === "step" &&
        row.state === "ok" &&
        row.outcome !== undefined &&
        (inside !== "" || last === undefined || row.step < last.step)
      )
        steps[`${inside}/${row.task}/${row.key}`] = toPlainJson(codec.decode(row.outcome));
  return steps;
}

/** Loads the answers on a line, those before a fork first. */
async function loadAnswers(
  store: Store,
  thread: string,
  end: LineEnd,
  codec: Codec,
): Promise<readonly RecordedInterruptAnswer[]> {
  const found = new Map<string, RecordedInterruptAnswer>();
  const parts = await listLineParts(store, thread, end);
  for (const part of parts.toReversed())
    for (const { id, step, node, key, answer } of await store.interrupts(thread, part.branch))
      if (answer !== undefined && step < part.step)
        found.set(id, { node, key, answer: toPlainJson(codec.decode(answer)) });
  return [...found.values()];
}

/**
 * Converts a state to the form of a recording: encoded, without generated ids, failed model attempts, and channels
 * that a store or a caller of the run does not see.
 */
export function toRecordedState(graph: Graph, state: object, codec: Codec): Readonly<Record<string, Json>> {
  const isSeen = (name: string): boolean =>
    !graph.private.has(name) && graph.state.channels[name]?.kind !== "untracked";
  const encoded = Object.fromEntries(
    Object.entries(state).flatMap(([name, value]) =>
      isSeen(name) ? [[name, JSON.parse(codec.encode(value, `the channel "${name}"`))]] : [],
    ),
  );
  return normalizeIds(removeMessageIds(omitFailedAttempts(encoded))) as Readonly<Record<string, Json>>;
}

/** Converts the changes of an input to the input: appended items, or complete values. */
function toInput(changes: LineCheckpoint["changes"], values: LineCheckpoint["values"]): Readonly<Record<string, Json>> {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([channel, delta]) =>
      delta.kind === "clear" ? [] : [[channel, toPlainJson(delta.kind === "append" ? delta.items : values[channel])]],
    ),
  );
}

/** Converts the changes of a superstep to the writes of its node. */
export function toWrites({ changes, values }: LineCheckpoint): RecordedExecution["writes"] {
  const toWrite = (channel: string, delta: Delta): RecordedWrite =>
    delta.kind === "append" ? { items: toPlainJson(delta.items) } : { value: toPlainJson(values[channel]) };
  return Object.fromEntries(
    Object.entries(changes).flatMap(([channel, delta]) =>
      delta.kind === "clear" ? [] : [[channel, toWrite(channel, delta)]],
    ),
  );
}

function findMessages(value: unknown): readonly Message[] {
  if (Array.isArray(value)) return value.flatMap(findMessages);
  if (typeof value !== "object" || value === null) return [];
  if ("role" in value && "id" in value && (value.role === "assistant" || value.role === "tool"))
    return [value as Message];
  return Object.values(value).flatMap(findMessages);
}

function toReply({ content, finish, usage }: AssistantMessage): ModelReply {
  return JSON.parse(JSON.stringify({ content, finish, ...(usage === undefined ? {} : { usage }) })) as ModelReply;
}

/** Removes message ids, because ids differ between runs. */
function removeMessageIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(removeMessageIds);
  if (typeof value !== "object" || value === null) return value;
  const isMessage = "role" in value && "content" in value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (isMessage && key === "id" ? [] : [[key, removeMessageIds(each)]])),
  );
}

function toPlainJson(value: unknown): Json & ToolMessage["content"] {
  const text = JSON.stringify(value);
  return (text === undefined ? null : JSON.parse(text)) as Json & ToolMessage["content"];
}

/** Throws `invalid_option` when the value is no recording of the current form. */
export function checkRecording(recorded: unknown): asserts recorded is RecordedRun {
  const form = typeof recorded === "object" && recorded !== null && "form" in recorded ? recorded.form : undefined;
  if (form === recordingForm) return;
  throw invalidOption({
    where: "replayRun",
    expected: `a recorded run of form ${recordingForm}`,
    ...(form === undefined ? { got: recorded } : { found: `a run of form ${String(form)}` }),
    fix:
      form === undefined
        ? "Pass the JSON file that exportTest wrote next to the test"
        : "Export the run again with this version",
  });
}
