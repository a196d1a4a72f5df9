/**
 * Events for a durable machine, queued in the inbox of its branch. Any process with the store posts events; the run
 * that owns the thread takes them in posting order.
 */
import type { AnyEventObject } from "xstate";
import { createId } from "../../../base/ids.ts";
import { isPlainObject } from "../../../base/json.ts";
import type { World } from "../../../base/world.ts";
import type { RunRow } from "../../../checkpoint/checkpoint.ts";
import type { Codec } from "../../../state/codec.ts";
import { inDoubtKey } from "../../../tool/policy/approval.ts";
import { getThreadRegistry } from "../thread-registry.ts";
import type { InboxLocation } from "./inbox.ts";

/** Content of an inbox message of the kind `event`. */
export interface EventMessage {
  /** Id of the run that the sender addressed. */
  readonly run: string;
  /** Author, as passed by the sender. */
  readonly by?: string | undefined;
  /** An event, or the answer about a promise in doubt by interrupt id. */
  readonly content:
    | { readonly event: AnyEventObject }
    | {
        readonly interrupt: string;
        readonly key: string;
        /** Start of the promise that the answer is about. */
        readonly about: string | undefined;
        readonly value: unknown;
      };
}

/** Queued event. `message` is undefined when the stored text is not an event message. */
export interface QueuedEvent {
  readonly id: string;
  readonly message: EventMessage | undefined;
}

/** Queued events of a branch. */
export interface EventInbox {
  /** Lists the queued events, oldest first; empty without a store. Rejects when the store fails. */
  readonly listEvents: () => Promise<readonly QueuedEvent[]>;
  /** True when the inbox has an event that no call of `listEvents` has returned. */
  readonly hasUnlistedEvents: () => Promise<boolean>;
  /** Records the arrival of an event. */
  readonly notifyArrival: () => void;
  /** Calls the listener at each arrival, until the returned function is called. */
  readonly subscribe: (listener: () => void) => () => void;
}

/** Creates the event inbox of a run, empty without a location. */
export function createEventInbox(location: InboxLocation | undefined): EventInbox {
  const listeners = new Set<() => void>();
  const listedIds = new Set<string>();
  const listRows = async () =>
    location === undefined
      ? []
      : (await location.store.inbox(location.thread, location.branch)).filter(({ kind }) => kind === "event");
  return {
    listEvents: async () => {
      const rows = await listRows();
      for (const { id } of rows) listedIds.add(id);
      return rows.map(({ id, messages }) => ({ id, message: location && parseMessage(location.codec, messages) }));
    },
    hasUnlistedEvents: async () => (await listRows()).some(({ id }) => !listedIds.has(id)),
    notifyArrival: () => {
      for (const listener of listeners) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * Posts an event message to the inbox of a branch, and notifies the active run of this process. Resolves to the id of
 * the message when it is durable. `key` is the id of the message; default: a new id.
 */
export async function postEvent(
  { store, codec, thread, branch }: InboxLocation,
  world: World,
  message: EventMessage,
  key?: string,
): Promise<string> {
  const id = key ?? createId("inbox_", world.random);
  const text = codec.encode(message, "the event");
  const row = await store.post({ thread, branch, id, kind: "event", messages: text, at: world.clock.now() });
  const activeRun = getThreadRegistry(store).active.get(thread);
  if (activeRun?.branch === row.branch) activeRun.notifyArrival(row);
  return row.id;
}

/**
 * True when a run at rest processes an event of its inbox now: an answer about a promise in doubt, an event that it
 * refuses, or any event while no promise is in doubt.
 */
export async function hasDeliverableEvents(
  { store, codec }: Pick<InboxLocation, "store" | "codec">,
  { id: run, thread, branch }: RunRow,
): Promise<boolean> {
  const rows = (await store.inbox(thread, branch)).filter(({ kind }) => kind === "event");
  if (rows.length === 0) return false;
  const open = await store.openInterrupts({ thread, key: inDoubtKey });
  if (!open.some((interrupt) => interrupt.branch === branch && interrupt.about !== undefined)) return true;
  return rows.some(({ messages }) => {
    const message = parseMessage(codec, messages);
    return message === undefined || message.run !== run || "interrupt" in message.content;
  });
}

/** Parses the text of an event message; undefined for other texts. */
export function parseMessage(codec: Codec, text: string): EventMessage | undefined {
  let message: unknown;
  try {
    message = codec.decode(text);
  } catch {
    return undefined;
  }
  return isEventMessage(message) ? message : undefined;
}

function isEventMessage(value: unknown): value is EventMessage {
  if (!isPlainObject(value) || typeof value["run"] !== "string" || !isPlainObject(value["content"])) return false;
  const { event, interrupt, key } = value["content"];
  if (isPlainObject(event)) return typeof event["type"] === "string";
  return typeof interrupt === "string" && typeof key === "string";
}

/** Returns the key of an event: its type, or the key of the answered interrupt. */
export function getEventKey({ message }: Pick<QueuedEvent, "message">): string {
  if (message === undefined) return "unknown";
  return "event" in message.content ? message.content.event.type : message.content.key;
}
