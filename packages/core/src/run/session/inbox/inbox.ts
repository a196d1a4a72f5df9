/**
 * The inbox of an active run: messages sent to the run and not yet in its state. With a store, the inbox belongs to
 * the branch of the run, and any process may write to the inbox; without a store, the inbox is a list in memory. A
 * buffer holds the messages of a handle until the run has started.
 */

import { StatewrightError } from "../../../base/errors.ts";
import { createId } from "../../../base/ids.ts";
import { invalidOption } from "../../../base/invalid-option.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../../base/json.ts";
import type { World } from "../../../base/world.ts";
import type { ConversationMessageKind, InboxMessage } from "../../../checkpoint/inbox-message.ts";
import type { Store } from "../../../checkpoint/store.ts";
import type { Plan } from "../../../compile/plan.ts";
import { findMessageIssue, type Message } from "../../../model/message.ts";
import { type Codec, isMalformedText } from "../../../state/codec.ts";
import { getThreadRegistry } from "../thread-registry.ts";
import type { Arrivals } from "./arrivals.ts";
import type { InboxInput } from "./inbox-input.ts";

/** Messages delivered together. */
export interface QueuedMessage {
  readonly id: string;
  readonly kind: ConversationMessageKind;
  /** Empty for an unreadable row. */
  readonly messages: readonly Message[];
  /** Set for a row that no run can deliver, such as one of a foreign export. */
  readonly error?: StatewrightError;
}

/** Queued messages of a run, with notification of arrivals. */
export interface Inbox {
  /** Returns false only when the inbox is certainly empty. */
  readonly mayHaveMessages: () => boolean;
  /**
   * Lists the readable queued messages, oldest first. Asks the store after an arrival only, or with `last`: after the
   * last boundary of a run, a message of another process would wait for the next run. Rejects when the store fails.
   */
  readonly listMessages: (boundary?: "last") => Promise<readonly QueuedMessage[]>;
  /** Lists the unreadable rows that `listMessages` found last. The next delivery removes them from the inbox. */
  readonly listUnreadable: () => readonly QueuedMessage[];
  /** Adds messages to the inbox; resolves when they are saved. */
  readonly add: (kind: ConversationMessageKind, messages: readonly Message[]) => Promise<void>;
  /** Records the arrival of steering messages with these ids. */
  readonly notifyArrival: (ids: readonly string[]) => void;
  /**
   * Returns a signal that aborts while a steering message is undelivered; all callers in a single superstep share the
   * signal.
   */
  readonly getSteerSignal: () => AbortSignal;
  /** Ends the superstep: these messages are in the state now. */
  readonly acknowledge: (taken: readonly QueuedMessage[]) => void;
}

/** Location of the inbox of a run with a store. */
export interface InboxLocation {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  readonly branch: string;
  /** Arrivals since the claim; version 0 for an inbox that was empty at the claim. Default: every read asks the store. */
  readonly arrivals?: Arrivals | undefined;
}

/** Creates the inbox of a run, in memory without a location. */
export function createInbox(plan: Plan, world: World, location: InboxLocation | undefined): Inbox {
  const isConversation = hasConversation(plan);
  let queued: readonly QueuedMessage[] = [];
  let unreadable: readonly QueuedMessage[] = [];
  const undecodableIds = new Set<string>();
  /** Version of the arrivals that `queued` includes. */
  let knownVersion: number | undefined = 0;
  /** Number of started reads. */
  let loads = 0;
  let deliveries = 0;
  let steerController: AbortController | undefined;
  /** Ids of known steering messages that are not yet in the state. */
  const steerIds = new Set<string>();

  function notifyArrival(ids: readonly string[]): void {
    if (!isConversation) return;
    for (const id of ids) steerIds.add(id);
    steerController?.abort(createSteerReason());
  }

  async function loadMessages({ isLast }: { readonly isLast: boolean }): Promise<readonly QueuedMessage[]> {
    if (location === undefined) return queued;
    const { store, codec, thread, branch, arrivals } = location;
    const mayHaveMissed = isLast && store.local !== true;
    if (arrivals !== undefined && arrivals.version === knownVersion && !mayHaveMissed) return queued;
    const version = arrivals?.version;
    const load = ++loads;
    const deliveriesBefore = deliveries;
    const rows = await store.inbox(thread, branch);
    const all = rows.flatMap((row) => toQueuedMessages(codec, row) ?? reportUndecodable(row));
    const readable = all.filter(({ error }) => error === undefined);
    // The rows may include a message delivered meanwhile.
    if (deliveries !== deliveriesBefore) return queued;
    if (load === loads) {
      queued = readable;
      unreadable = all.filter(({ error }) => error !== undefined);
      knownVersion = version;
    }
    return readable;
  }

  /** Leaves a row in the inbox for a process that can decode it; logs it once. */
  function reportUndecodable({ id }: InboxMessage): readonly QueuedMessage[] {
    if (!undecodableIds.has(id)) world.log("warn", "an inbox message cannot be decoded here", { inboxMessage: id });
    undecodableIds.add(id);
    return [];
  }

  return {
    mayHaveMessages: location === undefined ? () => queued.length > 0 : () => isConversation,
    listMessages: async (boundary) => {
      const knownIds = [...steerIds];
      const found = await loadMessages({ isLast: boundary === "last" });
      // An arrival may be reported after the message was delivered.
      for (const id of knownIds) if (!found.some((message) => message.id === id)) steerIds.delete(id);
      for (const { id, kind } of found) if (kind === "steer") steerIds.add(id);
      return found;
    },
    listUnreadable: () => unreadable,
    add: async (kind, messages) => {
      checkConversation(plan);
      if (location !== undefined) return postMessages(location, world, { kind, messages });
      const id = createId("inbox_", world.random);
      queued = [...queued, { id, kind, messages: deepFreeze(messages) }];
      if (kind === "steer") notifyArrival([id]);
    },
    notifyArrival,
    getSteerSignal: () => {
      steerController ??= new AbortController();
      if (steerIds.size > 0) steerController.abort(createSteerReason());
      return steerController.signal;
    },
    acknowledge: (delivered) => {
      steerController = undefined;
      if (delivered.length === 0) return;
      deliveries += 1;
      const ids = new Set(delivered.map(({ id }) => id));
      queued = queued.filter(({ id }) => !ids.has(id));
      unreadable = unreadable.filter(({ id }) => !ids.has(id));
      for (const id of ids) steerIds.delete(id);
    },
  };
}

function createSteerReason(): Error {
  return new Error("a message for this run arrived");
}

/** Returns true when the state of the graph has a conversation channel for messages. */
export function hasConversation({ graph }: Plan): boolean {
  return graph.state.channels["messages"]?.kind === "messages";
}

/** Throws `invalid_option` for a graph without a conversation. */
export function checkConversation(plan: Plan): void {
  if (hasConversation(plan)) return;
  throw invalidOption({
    where: "inbox message",
    expected: "a graph with a messages channel",
    found: `the graph "${plan.graph.name}"`,
    fix: "Add messages: channel.messages() to its state, or send to a graph with a conversation",
    place: { graph: plan.graph.name },
  });
}

/** Messages to post. */
export interface PostedMessages {
  readonly kind: ConversationMessageKind;
  readonly messages: readonly Message[];
  /** Id of the inbox message. Default: a new id. */
  readonly id?: string | undefined;
}

/** Posts messages to the store, and notifies the active run of this process. */
export async function postMessages(
  { store, codec, thread, branch }: Omit<InboxLocation, "branch"> & { readonly branch: string | undefined },
  world: World,
  { kind, messages, id = createId("inbox_", world.random) }: PostedMessages,
): Promise<void> {
  const text = codec.encode(messages, "the messages");
  const row = await store.post({ thread, branch, id, kind, messages: text, at: world.clock.now() });
  const activeRun = getThreadRegistry(store).active.get(thread);
  if (activeRun?.branch === row.branch) activeRun.notifyArrival(row);
}

/**
 * Returns the conversation messages of a row; none for an event of a durable machine, and undefined for a row that
 * another process may be able to decode, such as one with an unknown class.
 */
function toQueuedMessages(codec: Codec, { id, kind, messages }: InboxMessage): readonly QueuedMessage[] | undefined {
  if (kind === "event") return [];
  try {
    const decoded = deepFreeze(codec.decode(messages));
    if (isSendableList(decoded)) return [{ id, kind, messages: decoded }];
    return [{ id, kind, messages: [], error: createUnreadableError(id, describeValue(decoded)) }];
  } catch (cause) {
    if (!isMalformedText(cause)) return undefined;
    return [{ id, kind, messages: [], error: createUnreadableError(id, "text that is no JSON", cause) }];
  }
}

function createUnreadableError(id: string, found: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: `inbox message "${id}": expected a list of messages with the role user or system, got ${found}`,
    next: "Send the message again with steer; the row was removed from the inbox",
    cause,
  });
}

/** Converts a text or messages to messages. Throws `invalid_input` for input that no conversation can accept. */
export function toMessages(input: InboxInput, world: World): readonly Message[] {
  if (typeof input === "string") {
    if (input.trim() === "") throw createEmptyTextError();
    return [{ role: "user", id: createId("user_", world.random), content: [{ type: "text", text: input }] }];
  }
  const value: unknown = input;
  if (isSendableList(value)) return value;
  const invalid = Array.isArray(value) ? value.find((message) => !isSendable(message)) : value;
  throw new StatewrightError("invalid_input", {
    what: `a run was sent ${describeValue(invalid ?? value)}; expected a text, or messages with the role user or system`,
    next: "Send a text, or a list of messages with the role user or system; assistant and tool messages cannot be sent",
  });
}

function createEmptyTextError(): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: "a run was sent an empty text",
    next: "Send a text with words; providers reject an empty message",
  });
}

function isSendableList(value: unknown): value is readonly Message[] {
  return Array.isArray(value) && value.length > 0 && value.every(isSendable);
}

function isSendable(message: unknown): boolean {
  if (!isPlainObject(message) || findMessageIssue(message) !== undefined) return false;
  return message["role"] === "user" || message["role"] === "system";
}

/** Forwards messages from a handle to the inbox of its run. */
export interface InboxBuffer {
  /** Sends messages to the run; resolves when they are saved. */
  readonly send: (kind: ConversationMessageKind, messages: readonly Message[]) => Promise<void>;
  /** Opens the buffer when the run has started, and forwards the buffered messages. */
  readonly open: (inbox: Pick<Inbox, "add">) => void;
  /** Closes the buffer when the run has finished in this process; `failure` is the rejection of the run. */
  readonly end: (failure?: { readonly error: unknown }) => void;
}

interface BufferedMessage {
  readonly kind: ConversationMessageKind;
  readonly messages: readonly Message[];
  readonly resolve: (delivery: Promise<void>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Creates an empty buffer. `hasStore`: the run has a store, whose inbox outlives the run. */
export function createInboxBuffer(thread: string, { hasStore }: { readonly hasStore: boolean }): InboxBuffer {
  let buffered: readonly BufferedMessage[] = [];
  let inbox: Pick<Inbox, "add"> | undefined;
  // Created lazily: an error with a stack for every finished run took a tenth of the time of a small run.
  let createClosedError: (() => unknown) | undefined;
  return {
    send: (kind, messages) => {
      if (createClosedError !== undefined) return Promise.reject(createClosedError());
      if (inbox !== undefined) return inbox.add(kind, messages);
      return new Promise((resolve, reject) => {
        buffered = [...buffered, { kind, messages, resolve, reject }];
      });
    },
    open: (opened) => {
      inbox = opened;
      for (const { kind, messages, resolve } of buffered) resolve(opened.add(kind, messages));
      buffered = [];
    },
    end: (failure) => {
      if (createClosedError !== undefined || (hasStore && inbox !== undefined)) return;
      createClosedError =
        inbox === undefined ? () => failure?.error ?? createQueuedError(thread) : () => createFinishedError(thread);
      for (const { reject } of buffered) reject(createClosedError());
      buffered = [];
    },
  };
}

function createFinishedError(thread: string): StatewrightError {
  return new StatewrightError("missing_store", {
    what: "a message was sent to a finished run without a store, so no later run can receive it",
    next: "Start a run with the message as its input, or pass a store to the runs",
    place: { thread },
  });
}

function createQueuedError(thread: string): StatewrightError {
  return new StatewrightError("thread_busy", {
    what: `a message was sent to a run of the thread "${thread}" that is queued behind another run`,
    next: "Send it after the run has started, or use steer(graph, { store, thread, input }) to reach the active run",
    place: { thread },
  });
}
