/** Calls sent to a plugin, and the assignment of its replies to the calls. */
import type { World } from "@statewright/core";
import { waitUnlessAborted } from "./call-slots.ts";
import type { PluginNotification, PluginReply } from "./protocol.ts";

/** Tool call to a plugin. */
export interface PluginCall {
  readonly callId: string;
  /** Tool name, for a plugin with a list of tools. */
  readonly tool: string | undefined;
  readonly args: unknown;
  readonly signal: AbortSignal;
  readonly onNotification: (notification: PluginNotification) => void;
}

/** Sent call. An aborted call keeps its position until its reply arrives. */
export interface PendingCall {
  readonly sentId: string;
  readonly call: PluginCall;
  readonly complete: (outcome: { readonly reply: PluginReply } | { readonly error: unknown }) => void;
  isOpen: boolean;
  /** Monotonic time of the abort, in milliseconds, for a plugin that replies in order. */
  abandonedAt?: number;
}

/** Matching of replies to calls, and the log of unmatched replies. */
export interface PendingCallsOptions {
  readonly command: string;
  /** Replies carry the call id, or come in the order of the calls. */
  readonly matching: "id" | "order";
  readonly world: World;
}

/** Calls without a reply, in the order of sending. */
export class PendingCalls {
  readonly #options: PendingCallsOptions;
  readonly #calls: PendingCall[] = [];
  /** Ids of aborted calls that may still receive a reply. */
  readonly #abandonedIds = new Set<string>();
  /** Ids of replied calls, for a plugin that replies in order. */
  readonly #answeredIds = new Set<string>();
  /** Resolves the wait for the replies to aborted calls. */
  #onEmpty: (() => void) | undefined;

  constructor(options: PendingCallsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#calls.length;
  }

  /** Tool of the oldest call with a waiting caller. */
  get openTool(): string | undefined {
    return this.#calls.find(({ isOpen }) => isOpen)?.call.tool;
  }

  /** Returns the call id, with a suffix if another thread's call or an aborted attempt uses the same id. */
  createId(callId: string): string {
    let id = callId;
    for (let n = 2; this.#abandonedIds.has(id) || this.#find(id) !== undefined; n++) id = `${callId}#${n}`;
    return id;
  }

  add(pending: PendingCall): void {
    this.#calls.push(pending);
  }

  /**
   * Forgets an aborted call of a plugin that replies by id, whose late reply may never arrive. A plugin that replies
   * in order still owes its reply.
   */
  abandon(pending: PendingCall): void {
    if (this.#options.matching === "order") {
      pending.abandonedAt = this.#options.world.clock.monotonic();
      return;
    }
    this.#calls.splice(this.#calls.indexOf(pending), 1);
    rememberId(this.#abandonedIds, pending.sentId);
  }

  /** Completes the call of a reply. Drops a late reply, and a reply without a call. */
  handleReply(reply: PluginReply): void {
    const { command, matching, world } = this.#options;
    const index = matching === "id" ? this.#calls.findIndex(({ sentId }) => sentId === reply.callId) : 0;
    const pending = this.#calls[index];
    // Many plugins return the call id even without the capability: the id identifies a duplicate reply, which must
    // not count as the reply of the next call.
    const isDuplicate = reply.callId !== pending?.sentId && this.#answeredIds.has(reply.callId ?? "");
    if (pending === undefined || isDuplicate) {
      const isLate = reply.callId !== undefined && this.#abandonedIds.delete(reply.callId);
      const event = isLate ? "dropped a late reply" : "dropped a reply without a call";
      world.log("warn", `plugin "${command}": ${event}`, { callId: reply.callId });
      return;
    }
    this.#calls.splice(index, 1);
    if (matching === "order") rememberId(this.#answeredIds, pending.sentId);
    if (!pending.isOpen)
      world.log("warn", `dropped a late reply of plugin "${command}"`, { callId: pending.call.callId });
    pending.complete({ reply });
    if (this.#calls.length === 0) this.#onEmpty?.();
  }

  /** Passes a notification to its call, unless the call was aborted. */
  notify(notification: PluginNotification): void {
    const pending = this.#find(notification.callId);
    if (pending?.isOpen === true) pending.call.onNotification(notification);
  }

  /**
   * Waits for the replies to aborted calls of a plugin that replies in order. Returns false `graceMs` after the oldest
   * of these calls was aborted: a waiting call may end earlier, and the next one must not wait anew.
   */
  async awaitStaleReplies(signal: AbortSignal, graceMs: number): Promise<boolean> {
    if (this.#options.matching === "id" || this.#calls.length === 0) return true;
    const { clock } = this.#options.world;
    const abandonedAt = this.#calls[0]?.abandonedAt ?? clock.monotonic();
    const remainingMs = abandonedAt + graceMs - clock.monotonic();
    if (remainingMs <= 0) return false;
    let cancel: (() => void) | undefined;
    const stopWaiting = (): void => {
      cancel?.();
      this.#onEmpty = undefined;
    };
    return waitUnlessAborted<boolean>(signal, (resolve) => {
      this.#onEmpty = () => resolve(true);
      cancel = this.#options.world.schedule.after(remainingMs, () => resolve(false));
      return stopWaiting;
    }).finally(stopWaiting);
  }

  /** Fails all calls at the end of the process. */
  end(error: unknown): void {
    for (const pending of this.#calls.splice(0)) pending.complete({ error });
    this.#onEmpty?.();
  }

  #find(id: string): PendingCall | undefined {
    return this.#calls.find(({ sentId }) => sentId === id);
  }
}

/** Maximum number of remembered call ids, for late and duplicate replies. */
const maxRememberedIds = 10_000;

/** Adds an id, and removes the oldest id above the limit. */
function rememberId(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest = id] = ids;
  if (ids.size > maxRememberedIds) ids.delete(oldest);
}
