/**
 * Event buffer of a slow reader (rule E59): memory is bounded, and no durable event is dropped. Deltas of a message
 * are merged. Of the updates of a call, of its lines of progress, and of the lines of a node, only the newest stays,
 * with a count of the dropped ones. Transient events are dropped above a limit, and an `events.dropped` event reports
 * their number. A queue that keeps all events has no limit.
 */
import type { RunEvent } from "./run-event.ts";

/** Ordered queue of events for a single reader. */
export interface EventQueue {
  push(event: RunEvent): void;
  shift(): RunEvent | undefined;
  clear(): void;
}

interface Entry {
  event: RunEvent;
  next: Entry | undefined;
}

/** Queue lengths above which mergeable events are merged, and above which transient events are dropped. */
const mergeThreshold = 1_000;
const dropThreshold = 10_000;

const durableTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "run.started",
  "run.waiting",
  "run.paused",
  "run.failed",
  "run.cancelled",
  "run.completed",
  "step.committed",
  "event.received",
  "event.refused",
]);

/** Returns true for an event that the store persists under its own sequence number. */
export function isDurable({ type }: Pick<RunEvent, "type">): boolean {
  return durableTypes.has(type);
}

/**
 * Handling of a slow reader: `merge` merges and drops transient events above the limits, `keep` keeps all events in
 * memory.
 */
export type EventOverflow = "merge" | "keep";

/** Creates a queue without a limit for durable events. */
export function createEventQueue(overflow: EventOverflow = "merge"): EventQueue {
  let first: Entry | undefined;
  let last: Entry | undefined;
  let queuedCount = 0;
  let transientCount = 0;
  /** Per task: the newest queued entry of each message and call that can still be merged. */
  const mergeable = new Map<string, Map<string, Entry>>();

  function append(event: RunEvent): Entry {
    const entry: Entry = { event, next: undefined };
    if (last === undefined) first = entry;
    else last.next = entry;
    last = entry;
    queuedCount += 1;
    return entry;
  }

  /** Counts a dropped event at the end of the queue, so that the reader sees the gap at the right position. */
  function drop(event: RunEvent): void {
    if (last?.event.type === "events.dropped") last.event = { ...last.event, count: last.event.count + 1 };
    else append({ type: "events.dropped", count: 1, seq: event.seq, at: event.at, branch: event.branch });
  }

  return {
    push: (event) => {
      if (overflow === "keep") {
        append(event);
        return;
      }
      const task = getTaskKey(event);
      const key = getMergeKey(event);
      const previous = key === undefined || queuedCount < mergeThreshold ? undefined : mergeable.get(task)?.get(key);
      if (previous !== undefined) previous.event = mergeEvents(previous.event, event);
      else if (!isDurable(event) && transientCount >= dropThreshold) drop(event);
      else {
        const entry = append(event);
        if (!isDurable(event)) transientCount += 1;
        // A merge must not move an event ahead of another event of the task.
        if (key === undefined) mergeable.delete(task);
        else mergeable.set(task, (mergeable.get(task) ?? new Map<string, Entry>()).set(key, entry));
      }
    },
    shift: () => {
      const entry = first;
      if (entry === undefined) return undefined;
      first = entry.next;
      if (first === undefined) last = undefined;
      const key = getMergeKey(entry.event);
      if (key !== undefined && mergeable.get(getTaskKey(entry.event))?.get(key) === entry)
        mergeable.get(getTaskKey(entry.event))?.delete(key);
      queuedCount -= 1;
      if (!isDurable(entry.event) && entry.event.type !== "events.dropped") transientCount -= 1;
      return entry.event;
    },
    clear: () => {
      first = last = undefined;
      queuedCount = transientCount = 0;
      mergeable.clear();
    },
  };
}

/**
 * Merges queued events as a slow reader receives them: deltas of a message become one, and of updates and progress the
 * newest stays with a count of the dropped ones. No event moves ahead of another event of its task. Pure.
 */
export function mergeQueuedEvents(events: readonly RunEvent[]): readonly RunEvent[] {
  const merged: RunEvent[] = [];
  /** Per task: the place of the newest event of each message and call that can still be merged. */
  const mergeable = new Map<string, Map<string, number>>();
  for (const event of events) {
    const task = getTaskKey(event);
    const key = getMergeKey(event);
    const place = key === undefined ? undefined : mergeable.get(task)?.get(key);
    const previous = place === undefined ? undefined : merged[place];
    if (place !== undefined && previous !== undefined)
      merged[place] = { ...mergeEvents(previous, event), seq: previous.seq };
    else {
      merged.push(event);
      if (key === undefined) mergeable.delete(task);
      else mergeable.set(task, (mergeable.get(task) ?? new Map<string, number>()).set(key, merged.length - 1));
    }
  }
  return merged;
}

function getTaskKey(event: RunEvent): string {
  return "task" in event ? `${event.withinId ?? ""}/${event.task}` : "";
}

/** Returns the merge key of an event while queued: parts of a message, updates of a call. */
function getMergeKey(event: RunEvent): string | undefined {
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

function mergeEvents(previous: RunEvent, event: RunEvent): RunEvent {
  if (previous.type === "message.delta" && event.type === "message.delta")
    return { ...event, text: previous.text + event.text };
  if (previous.type === "message.call_delta" && event.type === "message.call_delta")
    return { ...event, argsText: previous.argsText + event.argsText };
  if (event.type === "tool.update" || event.type === "tool.progress" || event.type === "node.progress")
    return { ...event, dropped: ("dropped" in previous ? (previous.dropped ?? 0) : 0) + 1 };
  return event;
}
