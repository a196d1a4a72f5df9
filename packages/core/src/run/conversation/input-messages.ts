/**
 * Messages that come from outside under ids that the conversation knows. An input may give messages again, as a client does
 * that sends its whole conversation with each turn; it may not take a message out of a call and its answers, or put another
 * speaker's words in its place. What is sent to a run is always new.
 */
import { StatewrightError } from "../../base/errors.ts";
import type { Plan } from "../../compile/plan.ts";
import { callsOf, type Message, type MessageWrite } from "../../model/message.ts";
import { hasAnyOf } from "../../state/message-index.ts";
import type { Letter } from "../session/inbox.ts";
import type { State, Write } from "../session/returns.ts";

/** Throws `invalid_input` where an input would break a conversation. Looked at before it is folded, while the ids are at hand. */
export function checkGiven({ graph }: Plan, state: State, writes: readonly Write[]): void {
  for (const { channel: name, kind, value } of writes) {
    const channel = graph.state.channels[name];
    if (kind !== "fold" || channel?.kind !== "messages") continue;
    const given = (Array.isArray(value) ? value : [value]) as readonly MessageWrite[];
    const known = (state[name] ?? []) as readonly Message[];
    const wrong =
      twice(given) ?? misplaced(known, given, () => channel.fold(known, [given]).value as readonly Message[]);
    if (wrong === undefined) continue;
    throw new StatewrightError("invalid_input", {
      what: `the input of graph "${graph.name}" ${wrong}`,
      next: "Give each new message an id of its own; to say something else at one place of the conversation, use editMessage",
      place: { graph: graph.name, channel: name },
    });
  }
}

/** The same message twice is one message. */
function twice(given: readonly MessageWrite[]): string | undefined {
  if (given.length < 2) return undefined;
  const seen = new Map<string, Message>();
  for (const message of given) {
    if ("remove" in message) continue;
    const first = seen.get(message.id);
    if (first === undefined) seen.set(message.id, message);
    else if (JSON.stringify(first) !== JSON.stringify(message)) return `has two messages with the id "${message.id}"`;
  }
  return undefined;
}

function misplaced(
  known: readonly Message[],
  given: readonly MessageWrite[],
  after: () => readonly Message[],
): string | undefined {
  const removes = given.some((message) => "remove" in message);
  const messages = given.filter((message): message is Message => !("remove" in message));
  if (!removes && !messages.some(isOfCalls) && !hasAnyOf(known, messages)) return undefined;
  const roles = new Map(known.map(({ id, role }) => [id, role]));
  for (const { id, role } of messages) {
    const was = roles.get(id);
    if (was !== undefined && was !== role)
      return `has a message of the role ${role} with the id "${id}", which a message of the role ${was} has`;
  }
  const broken = brokenAt(known) === undefined ? brokenAt(after()) : undefined;
  return broken && `would part calls from their answers: ${broken}`;
}

function isOfCalls(message: Message): boolean {
  return message.role === "tool" || (message.role === "assistant" && callsOf(message).length > 0);
}

/** What a change would break of conversations that were whole, or nothing. */
export function partedBy({ graph }: Plan, before: State, after: State): string | undefined {
  for (const [name, { kind }] of Object.entries(graph.state.channels)) {
    if (kind !== "messages" || before[name] === after[name]) continue;
    const broken = brokenAt((after[name] ?? []) as readonly Message[]);
    if (broken !== undefined && brokenAt((before[name] ?? []) as readonly Message[]) === undefined) return broken;
  }
  return undefined;
}

/** What of a conversation no provider would take, or nothing. Calls at its end may still wait for their answers. */
function brokenAt(messages: readonly Message[]): string | undefined {
  let open: readonly string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.includes(message.callId)) return `the message "${message.id}" would answer no call`;
      open = open.filter((id) => id !== message.callId);
      continue;
    }
    if (open.length > 0) return `the call "${open[0]}" would have no answer`;
    if (message.role === "assistant") open = callsOf(message).map(({ id }) => id);
  }
  return undefined;
}

/** Letters whose messages have ids that no message of the conversation has, and no other one of them. */
export function withNewIds(known: readonly Message[], letters: readonly Letter[]): readonly Letter[] {
  const said = letters.flatMap(({ messages }) => messages);
  const distinct = new Set(said.map(({ id }) => id)).size === said.length;
  if (distinct && !hasAnyOf(known, said)) return letters;
  const taken = new Set(known.map(({ id }) => id));
  return letters.map((letter) => ({
    ...letter,
    messages: letter.messages.map((message, index) => {
      const id = taken.has(message.id) ? `${letter.id}:${index}` : message.id;
      taken.add(id);
      return id === message.id ? message : { ...message, id };
    }),
  }));
}
