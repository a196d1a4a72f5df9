/** Supervisor of a process or a connection: restarts an ended resource at the next tool call, a few times in a row. */
import { isToolError, ToolError } from "@statewright/core";

/** Supervised resource, from its start to its end. */
export interface SupervisedResource {
  readonly isAlive: () => boolean;
  /** Requests the end of the resource, then forces it. */
  readonly close: () => Promise<void>;
}

/** Options for restarts of an ended resource. */
export interface SupervisorOptions<Resource extends SupervisedResource> {
  /** Name of the resource in messages, after "The". */
  readonly name: string;
  /** Verb for a start in messages. */
  readonly verb: "started" | "connected";
  readonly restart: "lazy" | "never";
  /** Maximum number of restarts without an answered call in between. */
  readonly maxRestarts: number;
  /** Trust check before each restart. */
  readonly canStart: StartCheck;
  readonly startNext: (previous: Resource) => Promise<Resource>;
  /** Runs after a restart, before the tool call that caused the restart. */
  readonly onStarted?: (next: Resource) => Promise<void>;
}

/** Trust check before a restart; undefined without a check. */
export type StartCheck = (() => Promise<boolean>) | undefined;

/** Supervisor of one resource. */
export interface Supervisor<Resource extends SupervisedResource> {
  /** Most recently started resource. */
  readonly latest: Resource;
  /** Active resource; undefined after its end and during a restart. */
  readonly active: Resource | undefined;
  /** True after `close`. */
  readonly isClosed: boolean;
  /** Returns the active resource, or restarts an ended one. Rejects with a tool error for the model. */
  ensureActive(): Promise<Resource>;
  /** Resets the number of restarts after an answered call. */
  resetRestarts(): void;
  /**
   * Closes the resource and starts another one, regardless of earlier failures. The resource of `start` becomes
   * active.
   */
  restart(start: () => Promise<Resource>): Promise<void>;
  close(): Promise<void>;
}

/** Creates a supervisor of a started resource. */
export function createSupervisor<Resource extends SupervisedResource>(
  first: Resource,
  options: SupervisorOptions<Resource>,
): Supervisor<Resource> {
  const { name, verb, restart, maxRestarts, canStart, startNext, onStarted } = options;
  let latest = first;
  let restarts = 0;
  /** Number of pending `restart` calls: no resource is active during a restart. */
  let pendingRestarts = 0;
  let isClosed = false;
  let pending: Promise<unknown> | undefined;
  let stopWaiting = (): void => undefined;

  const getActive = (): Resource | undefined => (pendingRestarts === 0 && latest.isAlive() ? latest : undefined);

  /** Reports a failed start. The cause is for people only: a model cannot fix a command or an address. */
  const throwStartError = (cause: unknown): never => {
    if (isToolError(cause)) throw cause;
    const modelMessage = `The ${name} has ended and could not be ${verb} again. The tool call was not made.`;
    throw ToolError.unavailable(cause instanceof Error ? cause.message : String(cause), { modelMessage, cause });
  };

  /** Runs one start or close at a time. */
  const runExclusive = <Value>(work: () => Promise<Value>): Promise<Value> => {
    const turn = Promise.allSettled([pending])
      .then(work)
      .finally(() => {
        if (pending === turn) pending = undefined;
      });
    pending = turn;
    return turn;
  };

  /** Awaits a slow external decision. Returns undefined if the supervisor closes or restarts in the meantime. */
  const awaitUnlessClosing = async <Value>(decide: () => Promise<Value>): Promise<Value | undefined> => {
    if (isClosed || pendingRestarts > 0) return undefined;
    const closing = new Promise<undefined>((resolve) => {
      stopWaiting = () => resolve(undefined);
    });
    return Promise.race([decide(), closing]);
  };

  /** Restarts the resource. Returns without a restart if the supervisor closes or restarts in the meantime. */
  const restartResource = async (): Promise<void> => {
    const isTrusted = await awaitUnlessClosing(canStart ?? (async () => true));
    if (isTrusted === undefined) return;
    if (!isTrusted) throw createUntrustedError();
    restarts += 1;
    const next = await startNext(latest).catch(throwStartError);
    latest = next;
    if (onStarted !== undefined) await awaitUnlessClosing(() => onStarted(next));
  };

  return {
    get latest() {
      return latest;
    },
    get active() {
      return getActive();
    },
    get isClosed() {
      return isClosed;
    },
    ensureActive: async () => {
      for (;;) {
        if (isClosed) throw ToolError.unavailable(`The ${name} is closed.`);
        const active = getActive();
        if (active !== undefined) return active;
        if (pending !== undefined) await pending.catch(throwStartError);
        else if (restart === "never" || restarts >= maxRestarts)
          throw ToolError.unavailable(describeEnd(name, verb, restarts));
        else await runExclusive(restartResource);
      }
    },
    resetRestarts: () => {
      restarts = 0;
    },
    restart: (start) => {
      isClosed = false;
      restarts = 0;
      pendingRestarts += 1;
      stopWaiting();
      return runExclusive(async () => {
        try {
          await latest.close();
          latest = await start();
        } finally {
          pendingRestarts -= 1;
        }
      });
    },
    close: () => {
      isClosed = true;
      stopWaiting();
      return runExclusive(() => latest.close());
    },
  };
}

/** Creates the tool error for a program without approval of its current state. */
export function createUntrustedError(): ToolError {
  return new ToolError(
    "denied",
    "The program of this tool has ended and was not restarted: its current state is not approved.",
  );
}

function describeEnd(name: string, verb: string, restarts: number): string {
  const retries = restarts === 0 ? "" : ` It was ${verb} again ${restarts} times and ended each time before an answer.`;
  return `The ${name} has ended.${retries}`;
}
