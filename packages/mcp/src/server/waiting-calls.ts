/** Tool calls that wait for a form of a person, each with a thread in the store. */
import { isStatewrightError, type Store, type World } from "@statewright/core";
import { deleteThread } from "@statewright/core/inspect";
import type { McpCaller } from "./caller.ts";

/** Threads of waiting tool calls, up to a limit. */
export class WaitingCalls {
  readonly #store: Store;
  readonly #world: World;
  readonly #limit: number;
  /** Client ids by thread, oldest first. */
  readonly #callers = new Map<string, string>();

  constructor(store: Store, world: World, limit: number) {
    this.#store = store;
    this.#world = world;
    this.#limit = limit;
  }

  /**
   * Adds a waiting tool call. Above the limit it deletes the oldest call of the client with the most waiting calls,
   * so that a client cannot displace the calls of other clients.
   */
  async add(thread: string, caller: McpCaller): Promise<void> {
    this.#callers.set(thread, caller.id);
    while (this.#callers.size > this.#limit) {
      const oldest = findEvictedThread(this.#callers);
      this.#callers.delete(oldest);
      await this.deleteThread(oldest);
    }
  }

  /** Removes a tool call that continues; its thread stays. */
  remove(thread: string): void {
    this.#callers.delete(thread);
  }

  /** Deletes the thread of a tool call from the store. A failure is logged. */
  async deleteThread(thread: string): Promise<void> {
    try {
      await deleteThread(this.#store, thread);
    } catch (error) {
      // A call cancelled before its start has no thread.
      if (!isStatewrightError(error, "unknown_thread"))
        this.#world.log("warn", "could not delete the thread of a tool call", { thread, error });
    }
  }

  /** Deletes the threads of all waiting tool calls. */
  async close(): Promise<void> {
    for (const thread of this.#callers.keys()) await this.deleteThread(thread);
    this.#callers.clear();
  }
}

/** Returns the oldest thread of the client with the most waiting calls. */
function findEvictedThread(waiting: ReadonlyMap<string, string>): string {
  const threads = new Map<string, string[]>();
  for (const [thread, caller] of waiting) threads.set(caller, [...(threads.get(caller) ?? []), thread]);
  const [longest = []] = [...threads.values()].sort((a, b) => b.length - a.length);
  return longest[0] ?? "";
}
