/**
 * The inbox of a run at work: what people have sent to it and its state does not hold yet. With a store it is the inbox of
 * the run's branch, which anyone may write to, also from another process; without one it is a list in memory.
 */
import { StatewrightError } from "../../base/errors.ts";
import { freshId } from "../../base/ids.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { LetterKind, LetterRow } from "../../checkpoint/inbox-message.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Plan } from "../../compile/plan.ts";
import { type Message, messageIssue } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import { deskOf } from "./thread-registry.ts";

/** What a person says to a run: a text, or messages of users and the system. */
export type LetterInput = string | readonly Message[];

/** Messages that wait to be taken in together. */
export interface Letter {
  readonly id: string;
  readonly kind: LetterKind;
  readonly messages: readonly Message[];
}

/** What waits for a run, and word of what comes. */
export interface Inbox {
  /** Whether it is worth looking: false only when nothing can be there. */
  readonly mayHold: () => boolean;
  /** What waits, oldest first. Rejects when the store cannot say. */
  readonly waiting: () => Promise<readonly Letter[]>;
  /** Keep a letter; it is kept when the promise resolves. */
  readonly put: (kind: LetterKind, messages: readonly Message[]) => Promise<void>;
  /** Letters with these ids have come that steer. */
  readonly arrived: (ids: readonly string[]) => void;
  /** Fires while a message steers that the state does not hold; one signal for all who ask until the superstep is over. */
  readonly steered: () => AbortSignal;
  /** The superstep is over: these letters are in the state. */
  readonly passed: (taken: readonly Letter[]) => void;
}

/** Where the inbox of a run with a store is. */
export interface InboxPlace {
  readonly store: Store;
  readonly codec: Codec;
  readonly thread: string;
  readonly branch: string;
}

/** The inbox of a run; without a place it is in memory. */
export function createInbox(plan: Plan, world: World, place: InboxPlace | undefined): Inbox {
  const hears = hearsMessages(plan);
  let kept: readonly Letter[] = [];
  let steering: AbortController | undefined;
  /** Ids of letters that steer and are not in the state, as far as they were told of or seen. */
  const steers = new Set<string>();

  function arrived(ids: readonly string[]): void {
    if (!hears) return;
    for (const id of ids) steers.add(id);
    steering?.abort(spoken());
  }

  async function letters(): Promise<readonly Letter[]> {
    if (place === undefined) return kept;
    const rows = await place.store.inbox(place.thread, place.branch);
    return rows.map((row) => letterOf(place.codec, row));
  }

  return {
    mayHold: place === undefined ? () => kept.length > 0 : () => hears,
    waiting: async () => {
      const before = [...steers];
      const found = await letters();
      // Word of a letter may come when it was taken in already.
      for (const id of before) if (!found.some((letter) => letter.id === id)) steers.delete(id);
      for (const { id, kind } of found) if (kind === "steer") steers.add(id);
      return found;
    },
    put: async (kind, messages) => {
      refuseDeaf(plan);
      if (place !== undefined) return post(place, world, kind, messages);
      const id = freshId("letter_", world.random);
      kept = [...kept, { id, kind, messages: deepFreeze(messages) }];
      if (kind === "steer") arrived([id]);
    },
    arrived,
    steered: () => {
      steering ??= new AbortController();
      if (steers.size > 0) steering.abort(spoken());
      return steering.signal;
    },
    passed: (taken) => {
      steering = undefined;
      if (taken.length === 0) return;
      const ids = new Set(taken.map(({ id }) => id));
      kept = kept.filter(({ id }) => !ids.has(id));
      for (const id of ids) steers.delete(id);
    },
  };
}

function spoken(): Error {
  return new Error("a message for this run has come");
}

/** Whether what is sent to a run of this graph has a place in its state. */
export function hearsMessages({ graph }: Plan): boolean {
  return graph.state.channels["messages"]?.kind === "messages";
}

/** Throws `invalid_option` for a graph without a conversation. */
export function refuseDeaf(plan: Plan): void {
  if (hearsMessages(plan)) return;
  throw new StatewrightError("invalid_option", {
    what: `a message was sent to the graph "${plan.graph.name}", which has no channel messages`,
    next: "Give its state messages: messages(), or send it to a graph that has a conversation",
    place: { graph: plan.graph.name },
  });
}

/** Put a letter into a store, and tell the run at work here that it has come. */
export async function post(
  { store, codec, thread, branch }: Omit<InboxPlace, "branch"> & { readonly branch: string | undefined },
  world: World,
  kind: LetterKind,
  messages: readonly Message[],
): Promise<void> {
  const id = freshId("letter_", world.random);
  const text = codec.encode(messages, "the messages");
  const row = await store.post({ thread, branch, id, kind, messages: text, at: world.clock.now() });
  const atWork = deskOf(store).atWork.get(thread);
  if (kind === "steer" && atWork?.branch === row.branch) atWork.arrived([row.id]);
}

function letterOf(codec: Codec, { id, kind, messages }: LetterRow): Letter {
  return { id, kind, messages: deepFreeze(codec.decode(messages)) as readonly Message[] };
}

/** The messages of a person's words. Throws `invalid_input` for what no conversation can take in at any moment. */
export function messagesOf(input: LetterInput, world: World): readonly Message[] {
  if (typeof input === "string") {
    if (input.trim() === "") throw empty();
    return [{ role: "user", id: freshId("user_", world.random), content: [{ type: "text", text: input }] }];
  }
  const given: unknown = input;
  const wrong = Array.isArray(given) ? given.find((message) => !isSaid(message)) : given;
  if (Array.isArray(given) && given.length > 0 && wrong === undefined) return input;
  throw new StatewrightError("invalid_input", {
    what: `a run was sent ${describeValue(wrong ?? given)}, which is no text and no message of a user or the system`,
    next: "Send a text, or a list of messages with the role user or system: answers of models and tools have their own place",
  });
}

function empty(): StatewrightError {
  return new StatewrightError("invalid_input", {
    what: "a run was sent an empty text",
    next: "Send words: providers refuse a message that has none",
  });
}

function isSaid(message: unknown): boolean {
  if (!isPlainObject(message) || messageIssue(message) !== undefined) return false;
  return message["role"] === "user" || message["role"] === "system";
}
