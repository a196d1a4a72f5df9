/** A run as it is written down for a test, and how it is read out of a store. */
import {
  type AssistantMessage,
  type Codec,
  type Delta,
  type Graph,
  getState,
  type HistoryEntry,
  history,
  type Json,
  type Message,
  type ModelReply,
  StatewrightError,
  type Store,
  type ToolMessage,
} from "@statewright/core";
import { withNormalIds } from "../run/normalize-ids.ts";
import { withoutLost } from "../simulation/omit-failed-attempts.ts";

/** What a model was asked and what it said. The request is known when the run was played once. */
export interface RecordedAnswer {
  readonly request?: unknown;
  readonly reply: ModelReply;
}

/** What a tool answered, by the id of its call. */
export interface RecordedResult {
  readonly tool: string;
  readonly content: ToolMessage["content"];
  readonly isError: boolean;
}

/** An answer of a person. */
export interface RecordedAnswerToQuestion {
  readonly node: string;
  readonly key: string;
  readonly answer: Json;
}

/** A run in plain data: the file beside an exported test. */
export interface RecordedRun {
  readonly form: 1;
  readonly graph: string;
  readonly version: number;
  /** When it began, in milliseconds since the epoch: what its clock says when it is played. */
  readonly startedAt: number;
  /** The inputs of the thread, in order. */
  readonly inputs: readonly Readonly<Record<string, Json>>[];
  readonly models: readonly RecordedAnswer[];
  readonly tools: Readonly<Record<string, RecordedResult>>;
  /** Outcomes of steps that the store has kept, by branch, task and key. */
  readonly steps: Readonly<Record<string, Json>>;
  readonly answers: readonly RecordedAnswerToQuestion[];
  /** Nodes whose bodies cannot be played, with what they wrote each time. */
  readonly written: Readonly<Record<string, readonly Readonly<Record<string, Json>>[]>>;
  /** The nodes of each superstep. */
  readonly path: readonly (readonly string[])[];
  readonly status: string;
  readonly state: Readonly<Record<string, Json>>;
}

/** What is read, and what of it could not be. */
export interface ReadRun {
  readonly recorded: RecordedRun;
  readonly unrecorded: readonly string[];
  readonly line: readonly HistoryEntry[];
}

/** Read a thread. Throws `unknown_thread`. */
export async function readRun(graph: Graph, store: Store, thread: string, codec: Codec): Promise<ReadRun> {
  const at = { store, thread, codec };
  const { state, branch, status } = await getState(graph, at);
  const line: HistoryEntry[] = [];
  for await (const entry of history(graph, { ...at, branch, pageSize: 200 })) line.unshift(entry);
  const unrecorded: string[] = [];
  const inputs: Record<string, Json>[] = [];
  for (const entry of line) {
    if (entry.source === "input") inputs.push(await inputOf(graph, at, entry));
    else if (entry.source !== "step")
      unrecorded.push(
        `checkpoint ${entry.checkpointId} was written by ${entry.source === "update" ? "an edit" : `a ${entry.source}`}, which a test does not repeat`,
      );
  }
  const messages = await messagesOf(store, thread, codec);
  const tools: Record<string, RecordedResult> = {};
  for (const message of messages)
    if (message.role === "tool") {
      const { callId, name, content, isError } = message;
      tools[callId] = { tool: name, content: plain(content), isError: isError === true };
      if (content.some((block) => "ref" in block))
        unrecorded.push(`the artifacts of the call ${callId} of "${name}": the test has what the model saw of them`);
    }
  const steps: Record<string, Json> = {};
  for (const row of await store.effects(thread, branch))
    if (row.kind === "step" && row.state === "ok" && row.outcome !== undefined)
      steps[`${branch}/${row.task}/${row.key}`] = plain(codec.decode(row.outcome));
  const questions = await store.interrupts(thread, branch);
  const [first] = line;
  return {
    line,
    unrecorded,
    recorded: {
      form: 1,
      graph: graph.name,
      version: graph.version,
      startedAt: first?.at ?? 0,
      inputs,
      models: messages.flatMap((message) => (message.role === "assistant" ? [{ reply: replyOf(message) }] : [])),
      tools,
      steps,
      answers: questions.flatMap(({ node, key, answer }) =>
        answer === undefined ? [] : [{ node, key, answer: plain(codec.decode(answer)) }],
      ),
      written: {},
      path: line.flatMap(({ source, nodes }) => (source === "step" && nodes.length > 0 ? [nodes] : [])),
      status: status ?? "running",
      state: shownState(state, codec),
    },
  };
}

/** A state as a recording has it: encoded, without generated ids, and without requests that were made in vain. */
export function shownState(state: object, codec: Codec): Readonly<Record<string, Json>> {
  const encoded = Object.fromEntries(
    Object.entries(state).map(([name, value]) => [name, JSON.parse(codec.encode(value, `the channel "${name}"`))]),
  );
  return withNormalIds(withoutIds(withoutLost(encoded))) as Readonly<Record<string, Json>>;
}

/** The update that a superstep wrote: what it appended, or whole values. */
export function updateIn(changes: Readonly<Record<string, Delta | undefined>>, state: object): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(changes).flatMap(([channel, delta]) => {
      if (delta === undefined || delta.kind === "clear") return [];
      return [[channel, plain(delta.kind === "append" ? delta.items : (state as Record<string, unknown>)[channel])]];
    }),
  );
}

async function inputOf(
  graph: Graph,
  at: { readonly store: Store; readonly thread: string; readonly codec: Codec },
  { checkpointId, changes }: HistoryEntry,
): Promise<Record<string, Json>> {
  const { state } = await getState(graph, { ...at, at: checkpointId });
  return updateIn(changes as Readonly<Record<string, Delta | undefined>>, state);
}

/** Every message that the thread has had, on all of its lines, in the order in which it was saved. */
async function messagesOf(store: Store, thread: string, codec: Codec): Promise<readonly Message[]> {
  const found = new Map<string, Message>();
  for (let after = 0; ; ) {
    const page = await store.events(thread, { after, limit: 200 });
    for (const event of page) {
      after = "checkpoint" in event ? event.checkpoint.seq : event.fact.seq;
      if (!("checkpoint" in event) || event.checkpoint.source === "input") continue;
      for (const { text } of event.checkpoint.deltas)
        for (const message of messagesIn(codec.decode(text))) found.set(message.id, message);
    }
    if (page.length < 200) return [...found.values()];
  }
}

function messagesIn(value: unknown): readonly Message[] {
  if (Array.isArray(value)) return value.flatMap(messagesIn);
  if (typeof value !== "object" || value === null) return [];
  if ("role" in value && "id" in value && (value.role === "assistant" || value.role === "tool"))
    return [value as Message];
  return Object.values(value).flatMap(messagesIn);
}

function replyOf({ content, finish, usage }: AssistantMessage): ModelReply {
  return plain({ content, finish, ...(usage === undefined ? {} : { usage }) }) as unknown as ModelReply;
}

/** Messages get other ids in another run. */
function withoutIds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutIds);
  if (typeof value !== "object" || value === null) return value;
  const isMessage = "role" in value && "content" in value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (isMessage && key === "id" ? [] : [[key, withoutIds(each)]])),
  );
}

function plain(value: unknown): Json & ToolMessage["content"] {
  const text = JSON.stringify(value);
  return (text === undefined ? null : JSON.parse(text)) as Json & ToolMessage["content"];
}

/** Throw for what is no recording. */
export function checkRecorded(recorded: unknown): asserts recorded is RecordedRun {
  if (typeof recorded === "object" && recorded !== null && "form" in recorded && recorded.form === 1) return;
  throw new StatewrightError("invalid_option", {
    what: "replayRun was given something else than a recorded run",
    next: "Give it the JSON that exportTest has written beside the test",
  });
}
