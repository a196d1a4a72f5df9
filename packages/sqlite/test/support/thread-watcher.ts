/** A client that follows a thread of a file through a relay, and shows saved messages and the open ones. */
import { getMessageText, type Message, type Relay, type RunEvent, type Store, streamEvents } from "@statewright/core";

export interface ThreadWatcher {
  /** Text of all shown messages, with a line per message. */
  readonly getText: () => string;
  readonly events: readonly RunEvent[];
  /** Resolves when the shown text equals `text`. Rejects when the reader fails. */
  readonly waitForText: (text: string) => Promise<void>;
  readonly waitForEvent: (type: RunEvent["type"]) => Promise<void>;
  /** Ends the reader and returns the number with which the next one continues. */
  readonly stop: () => Promise<number>;
}

interface WatchOptions {
  readonly thread: string;
  readonly relay: Relay;
  readonly after?: number;
  /** Called after each event with the text shown then. */
  readonly onText?: (text: string) => void;
}

/** Follows a thread. The client knows nothing of relays: it follows the rules of the documentation. */
export function watchThread(store: Store, { thread, relay, after = 0, onText }: WatchOptions): ThreadWatcher {
  const stop = new AbortController();
  const saved: string[] = [];
  const open = new Map<string, string>();
  const events: RunEvent[] = [];
  const waiting = new Set<() => void>();
  const getText = (): string => [...saved, ...open.values()].join("\n");
  const show = (event: RunEvent): void => {
    if (event.type === "message.delta") open.set(event.messageId, (open.get(event.messageId) ?? "") + event.text);
    else if (event.type === "message.retracted") open.delete(event.messageId);
    else if (event.type === "message.completed") open.set(event.message.id, getMessageText(event.message));
    else if (event.type === "snapshot") {
      open.clear();
      for (const { id, text } of event.messages) open.set(id, text);
    } else if (event.type === "step.committed" && event.source === "step") {
      const delta = event.changes["messages"];
      for (const message of (delta?.kind === "append" ? delta.items : []) as readonly Message[]) {
        open.delete(message.id);
        if (message.role === "assistant") saved.push(getMessageText(message));
      }
    }
  };
  const reading = (async () => {
    for await (const event of streamEvents({ store, thread, relay, after, follow: stop.signal, everyMs: 50 })) {
      events.push(event);
      show(event);
      onText?.(getText());
      for (const check of waiting) check();
    }
  })();
  const waitUntil = (isReached: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        if (!isReached()) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      reading.catch(reject);
      check();
    });
  return {
    getText,
    events,
    waitForText: (text) => waitUntil(() => getText() === text),
    waitForEvent: (type) => waitUntil(() => events.some((event) => event.type === type)),
    stop: async () => {
      stop.abort();
      await reading;
      return events.at(-1)?.seq ?? after;
    },
  };
}
