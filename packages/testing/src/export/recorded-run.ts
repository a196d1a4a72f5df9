/** Recording of a run for a test, and the extraction from a store. */
import {
  type AssistantMessage,
  type Codec,
  type Graph,
  getHistory,
  getState,
  type HistoryEntry,
  type Json,
  type Message,
  type ModelReply,
  type Store,
  type ToolMessage,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import type { Delta } from "@statewright/core/store";
import { normalizeIds } from "../run/normalize-ids.ts";
import { omitFailedAttempts } from "../run/omit-failed-attempts.ts";

/** A model request and the reply. The request is undefined until the run was replayed once. */
export interface RecordedReply {
  readonly request?: unknown;
  readonly reply: ModelReply;
}

/** Result of a tool call. Recordings store results by call id. */
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

/** A run as plain data: the recording next to an exported test. */
export interface RecordedRun {
  readonly form: 1;
  readonly graph: string;
  readonly version: number;
  /** Start time in milliseconds since the epoch. The clock of a replay starts at this time. */
  readonly startedAt: number;
  /** Inputs of the thread, in order. */
  readonly inputs: readonly Readonly<Record<string, Json>>[];
  readonly models: readonly RecordedReply[];
  readonly tools: Readonly<Record<string, RecordedResult>>;
  /** Step outcomes saved in the store, by branch, task and key. */
  readonly steps: Readonly<Record<string, Json>>;
  readonly answers: readonly RecordedInterruptAnswer[];
  /** Writes of nodes whose bodies cannot be replayed, an entry per execution. */
  readonly written: Readonly<Record<string, readonly Readonly<Record<string, Json>>[]>>;
  /** Node names of each superstep. */
  readonly path: readonly (readonly string[])[];
  readonly status: string;
  readonly state: Readonly<Record<string, Json>>;
}

/** A loaded recording and the parts that could not be recorded. */
export interface LoadedRecording {
  readonly recorded: RecordedRun;
  readonly unrecorded: readonly string[];
  readonly entries: readonly HistoryEntry[];
}

/** Loads the recording of a thread. Throws `unknown_thread`. */
export async function loadRecording(
  graph: Graph,
  store: Store,
  thread: string,
  codec: Codec,
): Promise<LoadedRecording> {
  const at = { store, thread, codec };
  const { state, branch, status } = await getState(graph, at);
  const entries: HistoryEntry[] = [];
  for await (const entry of getHistory(graph, { ...at, branch, pageSize: 200 })) entries.unshift(entry);
  const unrecorded: string[] = [];
  const inputs: Record<string, Json>[] = [];
  for (const entry of entries) {
    if (entry.source === "input") inputs.push(await loadInput(graph, at, entry));
    else if (entry.source !== "step")
      unrecorded.push(
        `checkpoint ${entry.checkpointId} was written by ${entry.source === "update" ? "an edit" : `a ${entry.source}`}, which the test does not repeat`,
      );
  }
  const messages = await loadMessages(store, thread, codec);
  const tools: Record<string, RecordedResult> = {};
  for (const message of messages)
    if (message.role === "tool") {
      const { callId, name, content, isError } = message;
      tools[callId] = { tool: name, content: toPlainJson(content), isError: isError === true };
      if (content.some((block) => "ref" in block))
        unrecorded.push(
          `the artifacts of the call ${callId} of "${name}": the test contains only the content that the model received`,
        );
    }
  const steps: Record<string, Json> = {};
  for (const row of await store.effects(thread, branch))
    if (row.kind === "step" && row.state === "ok" && row.outcome !== undefined)
      steps[`${branch}/${row.task}/${row.key}`] = toPlainJson(codec.decode(row.outcome));
  const interrupts = await store.interrupts(thread, branch);
  const [first] = entries;
  return {
    entries,
    unrecorded,
    recorded: {
      form: 1,
      graph: graph.name,
      version: graph.version,
      startedAt: first?.at ?? 0,
      inputs,
      models: messages.flatMap((message) => (message.role === "assistant" ? [{ reply: toReply(message) }] : [])),
      tools,
      steps,
      answers: interrupts.flatMap(({ node, key, answer }) =>
        answer === undefined ? [] : [{ node, key, answer: toPlainJson(codec.decode(answer)) }],
      ),
      written: {},
      path: entries.flatMap(({ source, nodes }) => (source === "step" && nodes.length > 0 ? [nodes] : [])),
      status: status ?? "running",
      state: toRecordedState(state, codec),
    },
  };
}

/** Converts a state to the form of a recording: encoded, without generated ids and without failed model attempts. */
export function toRecordedState(state: object, codec: Codec): Readonly<Record<string, Json>> {
  const encoded = Object.fromEntries(
    Object.entries(state).map(([name, value]) => [name, JSON.parse(codec.encode(value, `the channel "${name}"`))]),
  );
  return normalizeIds(removeMessageIds(omitFailedAttempts(encoded))) as Readonly<Record<string, Json>>;
}

/** Converts the changes of a superstep to an update: appended items, or complete values. */
export function toUpdate(changes: Readonly<Record<string, Delta | undefined>>, state: object): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([channel, delta]) => {
      if (delta === undefined || delta.kind === "clear") return [];
      return [
        [channel, toPlainJson(delta.kind === "append" ? delta.items : (state as Record<string, unknown>)[channel])],
      ];
    }),
  );
}

async function loadInput(
  graph: Graph,
  at: { readonly store: Store; readonly thread: string; readonly codec: Codec },
  { checkpointId, changes }: HistoryEntry,
): Promise<Record<string, Json>> {
  const { state } = await getState(graph, { ...at, at: checkpointId });
  return toUpdate(changes as Readonly<Record<string, Delta | undefined>>, state);
}

/** Loads all messages of a thread in all namespaces, in the order of the checkpoints. */
async function loadMessages(store: Store, thread: string, codec: Codec): Promise<readonly Message[]> {
  const found = new Map<string, Message>();
  for (let after = 0; ; ) {
    const page = await store.events(thread, { after, limit: 200 });
    for (const event of page) {
      after = "checkpoint" in event ? event.checkpoint.seq : event.durableEvent.seq;
      if (!("checkpoint" in event) || event.checkpoint.source === "input") continue;
      for (const { text } of event.checkpoint.deltas)
        for (const message of findMessages(codec.decode(text))) found.set(message.id, message);
    }
    if (page.length < 200) return [...found.values()];
  }
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

/** Throws `invalid_option` when the value is no recording. */
export function checkRecording(recorded: unknown): asserts recorded is RecordedRun {
  if (typeof recorded === "object" && recorded !== null && "form" in recorded && recorded.form === 1) return;
  throw invalidOption({
    where: "replayRun",
    expected: "a recorded run",
    got: recorded,
    fix: "Pass the JSON file that exportTest wrote next to the test",
  });
}
