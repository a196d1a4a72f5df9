/**
 * What waits for a slow reader of events (rule E59): memory is bounded, and nothing durable is lost to make it so. Deltas of
 * one message are joined, of updates the newest of each call stays with a count of those before it, what is told in passing
 * is dropped when far too much of it waits, and said so.
 */
import type { RunEvent } from "./events.ts";

/** Events on their way to one reader, in order. */
export interface EventQueue {
  push(event: RunEvent): void;
  shift(): RunEvent | undefined;
  clear(): void;
}

interface Entry {
  event: RunEvent;
  next: Entry | undefined;
}

/** How many events may wait before those that can be joined are, and how many before passing ones are dropped. */
const joinedAbove = 1_000;
const droppedAbove = 10_000;

const durable: ReadonlySet<RunEvent["type"]> = new Set([
  "run.started",
  "run.waiting",
  "run.paused",
  "run.failed",
  "run.cancelled",
  "run.completed",
  "step.committed",
]);

/** Whether an event is kept in the store: it has a number of its own. */
export function isDurable({ type }: Pick<RunEvent, "type">): boolean {
  return durable.has(type);
}

/** A queue without limits for what is durable. */
export function createEventQueue(): EventQueue {
  let first: Entry | undefined;
  let last: Entry | undefined;
  let waiting = 0;
  let passing = 0;
  /** By task: the newest waiting entry of its message, and of each of its calls, that may still be joined. */
  const open = new Map<string, Map<string, Entry>>();

  function append(event: RunEvent): Entry {
    const entry: Entry = { event, next: undefined };
    if (last === undefined) first = entry;
    else last.next = entry;
    last = entry;
    waiting += 1;
    return entry;
  }

  /** Count what is dropped at the end of the queue, so that a reader learns of it where it happened. */
  function drop(event: RunEvent): void {
    if (last?.event.type === "events.dropped") last.event = { ...last.event, count: last.event.count + 1 };
    else append({ type: "events.dropped", count: 1, seq: event.seq, at: event.at });
  }

  return {
    push: (event) => {
      const task = taskOf(event);
      const key = joinedBy(event);
      const before = key === undefined || waiting < joinedAbove ? undefined : open.get(task)?.get(key);
      if (before !== undefined) before.event = joined(before.event, event);
      else if (!isDurable(event) && passing >= droppedAbove) drop(event);
      else {
        const entry = append(event);
        if (!isDurable(event)) passing += 1;
        // What comes after another event of its task must not be told before it.
        if (key === undefined) open.delete(task);
        else open.set(task, (open.get(task) ?? new Map<string, Entry>()).set(key, entry));
      }
    },
    shift: () => {
      const entry = first;
      if (entry === undefined) return undefined;
      first = entry.next;
      if (first === undefined) last = undefined;
      const key = joinedBy(entry.event);
      if (key !== undefined && open.get(taskOf(entry.event))?.get(key) === entry)
        open.get(taskOf(entry.event))?.delete(key);
      waiting -= 1;
      if (!isDurable(entry.event) && entry.event.type !== "events.dropped") passing -= 1;
      return entry.event;
    },
    clear: () => {
      first = last = undefined;
      waiting = passing = 0;
      open.clear();
    },
  };
}

function taskOf(event: RunEvent): string {
  return "task" in event ? `${event.withinId ?? ""}/${event.task}` : "";
}

/** What an event may be joined with while it waits: the parts of one message, the updates of one call. */
function joinedBy(event: RunEvent): string | undefined {
  switch (event.type) {
    case "message.delta":
      return `${event.type} ${event.kind} ${event.messageId}`;
    case "message.call_delta":
    case "tool.update":
    case "tool.progress":
      return `${event.type} ${event.callId}`;
    case "node.progress":
      return event.type;
    default:
      return undefined;
  }
}

function joined(before: RunEvent, event: RunEvent): RunEvent {
  if (before.type === "message.delta" && event.type === "message.delta")
    return { ...event, text: before.text + event.text };
  if (before.type === "message.call_delta" && event.type === "message.call_delta")
    return { ...event, argsText: before.argsText + event.argsText };
  if (event.type === "tool.update" || event.type === "tool.progress" || event.type === "node.progress")
    return { ...event, dropped: ("dropped" in before ? (before.dropped ?? 0) : 0) + 1 };
  return event;
}
