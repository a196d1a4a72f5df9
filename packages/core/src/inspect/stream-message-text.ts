/** Text of the events of a thread: of saved messages, and of messages in progress across reconnects. */
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import type { AssistantMessage } from "../model/message.ts";
import type { OpenMessage } from "../run/events/open-message.ts";
import { createOpenWork } from "../run/events/open-work.ts";
import type { RunEvent } from "../run/events/run-event.ts";
import { checkTextOptions, streamText, type TextOptions } from "../run/session/text-stream.ts";
import type { Delta } from "../state/delta.ts";

/**
 * Streams the text of a thread's model messages from the events of `streamEvents` with `follow`: words as they come,
 * and the rest of each message with its commit. Shows every word once, also after a snapshot. Text that did not become
 * part of the conversation is followed by a notice, as in `run.text()`. Keeps the id of each message in memory. Throws
 * `invalid_option`.
 *
 * @example
 * const events = streamEvents({ store, thread: "t1", follow: signal, relay });
 * for await (const text of streamMessageText(events)) process.stdout.write(text);
 */
export function streamMessageText(
  events: AsyncIterable<RunEvent>,
  options: TextOptions = {},
): AsyncGenerator<string, undefined, undefined> {
  checkEvents(events);
  checkTextOptions(options);
  return streamText(completeMessages(events), options);
}

function checkEvents(events: unknown): void {
  if (typeof events === "object" && events !== null && Symbol.asyncIterator in events) return;
  const expected = "the events of streamEvents";
  throw invalidOption({ where: "streamMessageText", option: "events", expected, got: events });
}

/** Replaces snapshots by the deltas that are missing, and adds `message.completed` of saved messages without one. */
async function* completeMessages(events: AsyncIterable<RunEvent>): AsyncGenerator<RunEvent, undefined, undefined> {
  const completed = new Set<string>();
  let open = createOpenWork();
  for await (const event of events) {
    if (event.type === "snapshot") {
      yield* listMissingDeltas(event, open.read().messages);
      open = createOpenWork(event);
      continue;
    }
    if (event.type === "message.completed") completed.add(event.message.id);
    if (event.type === "step.committed") {
      open.apply({ committed: event.withinId ?? "" });
      if (event.source === "step")
        for (const message of listSavedMessages(event.changes)) {
          if (completed.has(message.id)) continue;
          completed.add(message.id);
          yield { ...getPosition(event), type: "message.completed", node: "", task: "", message };
        }
    } else open.apply({ event });
    yield event;
  }
  return undefined;
}

type Snapshot = Extract<RunEvent, { readonly type: "snapshot" }>;

/** Lists the events that lead from the messages shown so far to those of the snapshot. */
function* listMissingDeltas(snapshot: Snapshot, shown: readonly OpenMessage[]): Generator<RunEvent> {
  const isSame = (one: OpenMessage, other: OpenMessage): boolean =>
    one.id === other.id && one.withinId === other.withinId;
  for (const message of shown)
    if (!message.complete && !snapshot.messages.some((other) => isSame(message, other)))
      yield createRetraction(snapshot, message);
  for (const message of snapshot.messages) {
    const before = shown.find((other) => isSame(message, other));
    if (before?.complete === true) continue;
    const continues = before === undefined || isContinued(before, message);
    if (!continues) yield createRetraction(snapshot, message);
    yield* listDeltas(snapshot, message, continues ? before : undefined);
  }
}

function isContinued(before: OpenMessage, message: OpenMessage): boolean {
  return (
    message.text.startsWith(before.text) &&
    before.calls.every(({ callId, argsText }) => findArgs(message, callId).startsWith(argsText))
  );
}

function findArgs(message: OpenMessage | undefined, id: string): string {
  return message?.calls.find(({ callId }) => callId === id)?.argsText ?? "";
}

function* listDeltas(snapshot: Snapshot, message: OpenMessage, before: OpenMessage | undefined): Generator<RunEvent> {
  const place = { ...getPosition(snapshot), ...getTask(message), messageId: message.id };
  const text = message.text.slice(before?.text.length ?? 0);
  if (text !== "") yield { ...place, type: "message.delta", kind: "text", text };
  for (const { callId, tool, argsText } of message.calls) {
    const rest = argsText.slice(findArgs(before, callId).length);
    if (rest !== "") yield { ...place, type: "message.call_delta", callId, tool, argsText: rest };
  }
}

function createRetraction(snapshot: Snapshot, message: OpenMessage): RunEvent {
  const place = { ...getPosition(snapshot), ...getTask(message), messageId: message.id };
  return { ...place, type: "message.retracted", model: "", kind: "unrecorded", text: message.text };
}

function getPosition({ seq, at, branch, within, withinId }: RunEvent): Pick<RunEvent, "seq" | "at" | "branch"> {
  return {
    ...{ seq, at, branch },
    ...(within === undefined ? {} : { within }),
    ...(withinId === undefined ? {} : { withinId }),
  };
}

function getTask({ node, task, branch, within, withinId }: OpenMessage): Pick<OpenMessage, "node" | "task" | "branch"> {
  return {
    ...{ node, task, branch },
    ...(within === undefined ? {} : { within }),
    ...(withinId === undefined ? {} : { withinId }),
  };
}

/** Lists the assistant messages that a superstep added or replaced. */
function listSavedMessages(changes: Readonly<Record<string, Delta>>): readonly AssistantMessage[] {
  return Object.values(changes).flatMap((delta) => {
    if (delta.kind === "append") return delta.items.filter(isAssistantMessage);
    return delta.kind === "patch" ? delta.patches.map(({ value }) => value).filter(isAssistantMessage) : [];
  });
}

function isAssistantMessage(value: unknown): value is AssistantMessage {
  return (
    isPlainObject(value) &&
    value["role"] === "assistant" &&
    typeof value["id"] === "string" &&
    Array.isArray(value["content"])
  );
}
