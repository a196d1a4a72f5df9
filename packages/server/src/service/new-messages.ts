/** Posted messages: of a conversation that a client sends, only new messages of the user are believed. */
import {
  type Graph,
  getState,
  isStatewrightError,
  type Message,
  StatewrightError,
  type Store,
} from "@statewright/core";
import { checkId, createId, createSha256 } from "@statewright/core/adapter";
import type { CheckpointRow, RunRow } from "@statewright/core/store";
import type { CallerScope } from "./caller-scope.ts";
import { omitUndefined } from "./omit-undefined.ts";

/** Posted message, as far as it is believed. */
export interface PostedMessage {
  readonly id?: string | undefined;
  readonly role: string;
}

/** Conversation that a client posted, and what the thread knows of it. */
export interface PostedConversation<Posted extends PostedMessage> {
  /** Id of the thread as the caller knows it. */
  readonly thread: string;
  readonly posted: readonly Posted[];
  /** Ids of the messages in the state of the thread. */
  readonly known: ReadonlySet<string>;
}

/**
 * Returns the messages of the user that follow the newest message that the thread knows, with ids of our grammar where
 * the message has one. All else of a posted conversation is ignored: known messages, and messages of the system, the
 * model and tools. Pure.
 */
export function selectNewMessages<Posted extends PostedMessage>({
  thread,
  posted,
  known,
}: PostedConversation<Posted>): readonly Posted[] {
  const identified = posted.map((message) =>
    message.id === undefined ? message : { ...message, id: toMessageId(thread, message.id) },
  );
  const newestKnown = identified.findLastIndex(({ id }) => id !== undefined && known.has(id));
  return identified.slice(newestKnown + 1).filter(({ role }) => role === "user");
}

/** Returns the id of a client's message: the id itself within our grammar, else `c:` and a hash of thread and id. */
export function toMessageId(thread: string, id: string): string {
  try {
    return checkId("message", id);
  } catch (error) {
    if (!isStatewrightError(error, "invalid_id")) throw error;
    return createMessageId([thread, id]);
  }
}

/** Returns an id that is the same for the same parts. */
function createMessageId(parts: readonly unknown[]): string {
  const hash = createSha256();
  hash.add(new TextEncoder().encode(JSON.stringify(parts)));
  return `c:${hash.finish().slice(0, 32)}`;
}

/** Lists the messages of a state; none in a state without a conversation. */
export function listMessages(state: object): readonly Message[] {
  const messages: unknown = "messages" in state ? state.messages : undefined;
  return Array.isArray(messages) ? messages.filter(isMessage) : [];
}

function isMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && "id" in value && "role" in value;
}

/** Run whose input is selected. */
interface InputPlace {
  readonly graph: Graph;
  readonly stored: string;
  readonly branch: string | undefined;
  readonly key: string | undefined;
  /** Run that a request with this key has started before. */
  readonly known?: Pick<RunRow, "id" | "branch"> | undefined;
}

/**
 * Returns the input with the new messages of the user in each channel of messages. Throws `invalid_input` for an input
 * that is no object, and for one that has messages and nothing else, of which none is a new message of the user.
 */
export async function selectInput(scope: CallerScope, place: InputPlace, input: unknown): Promise<object | undefined> {
  if (input === undefined) return undefined;
  if (typeof input !== "object" || input === null || Array.isArray(input))
    throw new StatewrightError("invalid_input", {
      what: "the input is not an object",
      next: "Pass an object with the channels of the graph",
      place: { graph: place.graph.name },
    });
  const channels = Object.entries(place.graph.state.channels).filter(([, { kind }]) => kind === "messages");
  const given = channels.map(([name]) => name).filter((name) => Object.hasOwn(input, name));
  if (given.length === 0) return input;
  const state = await loadState(scope, place);
  const selected = given.map((name) => {
    const value: unknown = Reflect.get(input, name);
    const posted: readonly unknown[] = Array.isArray(value) ? value : [value];
    return [name, selectPosted(scope, place, { posted, known: listIds(Reflect.get(state, name)) })] as const;
  });
  const isEmpty = selected.every(([, messages]) => messages.length === 0);
  if (isEmpty && place.key !== undefined && place.known === undefined) {
    // A request with the same key may have saved its run meanwhile.
    const [known] = await scope.store.runs({ thread: place.stored, key: place.key, limit: 1 });
    if (known !== undefined) return await selectInput(scope, { ...place, known }, input);
  }
  if (isEmpty && Object.keys(input).length === given.length)
    throw new StatewrightError("invalid_input", {
      what: "the input has no new message of the user",
      next: "Post a message with the role user and a new id",
      place: { graph: place.graph.name },
    });
  return { ...input, ...Object.fromEntries(selected) };
}

/** Selects the new messages. A message without an id gets one, under a key always the same one; a text becomes a block. */
function selectPosted(
  scope: CallerScope,
  { stored, key }: InputPlace,
  { posted, known }: { readonly posted: readonly unknown[]; readonly known: ReadonlySet<string> },
): readonly unknown[] {
  const invalid = posted.find((message) => !isPosted(message));
  if (invalid !== undefined)
    throw new StatewrightError("invalid_input", {
      what: "the input has a message without a role, or with an id that is not a text",
      next: "Post messages with a role and a content",
    });
  const messages = posted.filter(isPosted);
  const selected = selectNewMessages({ thread: scope.toWireId(stored), posted: messages, known });
  return selected.map((message, index) => {
    const id = key === undefined ? createId("user_", scope.world.random) : createMessageId([stored, key, index]);
    return toBlocks(message.id === undefined ? { ...message, id } : message);
  });
}

/**
 * Returns an input with only the messages of the user in each channel of messages, for a run that starts later: the
 * messages keep their ids, and one without an id gets a new one in each run. Pure.
 */
export function keepUserMessages({ state }: Pick<Graph, "state">, input: object): object {
  const kept = Object.entries(input).map(([name, value]: [string, unknown]) => {
    if (state.channels[name]?.kind !== "messages") return [name, value];
    const posted: readonly unknown[] = Array.isArray(value) ? value : [value];
    const fromUser = posted.filter(isPosted).filter(({ role }) => role === "user");
    // An empty id becomes a new one when the message is written.
    return [name, fromUser.map((message) => toBlocks({ ...message, id: message.id ?? "" }))];
  });
  return Object.fromEntries(kept);
}

/** Returns a message whose content is a list of blocks: a text becomes a single block. */
function toBlocks<Posted extends PostedMessage>(message: Posted): Posted {
  if (!("content" in message) || typeof message.content !== "string") return message;
  return { ...message, content: [{ type: "text", text: message.content }] };
}

function isPosted(value: unknown): value is PostedMessage {
  if (typeof value !== "object" || value === null || !("role" in value) || typeof value.role !== "string") return false;
  return !("id" in value) || value.id === undefined || typeof value.id === "string";
}

function listIds(messages: unknown): ReadonlySet<string> {
  return new Set(Array.isArray(messages) ? messages.filter(isMessage).map(({ id }) => id) : []);
}

/**
 * Loads the newest state of the branch, or the state before the known run of the key: a repeated request has the same
 * new messages as the first. An empty state before the first checkpoint.
 */
async function loadState({ store, codec }: CallerScope, { graph, stored, branch, known }: InputPlace): Promise<object> {
  const row = known === undefined ? await store.head(stored, branch) : await findRowBefore(store, stored, known);
  if (row === undefined) return {};
  return (await getState(graph, { store, codec, thread: stored, at: row.id })).state;
}

const pageSize = 50;

/** Finds the newest checkpoint before those of a run: the head of the branch for a run that has none. */
async function findRowBefore(
  store: Store,
  stored: string,
  { id, branch }: Pick<RunRow, "id" | "branch">,
): Promise<CheckpointRow | undefined> {
  let hasSeenRun = false;
  for (let before: number | undefined; ; ) {
    const page = { branch, limit: pageSize, ...omitUndefined({ before }) };
    const rows: readonly CheckpointRow[] = await store.history(stored, page);
    for (const row of rows) {
      if (row.run === id) hasSeenRun = true;
      else if (hasSeenRun) return row;
    }
    before = rows.at(-1)?.id;
    if (rows.length < pageSize) return hasSeenRun ? undefined : await store.head(stored, branch);
  }
}
