/** Supervisor of a process or a connection: restarts an ended resource at the next tool call, a few times in a row. */
import { isToolError, ToolError } from "@statewright/core";

/** Supervised resource, from its start to its end. */
export interface SupervisedResource {
  /** Returns false after the end of the resource. */
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
  /** `lazy` restarts an ended resource at the next call, `never` does not. */
  readonly restart: "lazy" | "never";
  /** Maximum number of restarts without an answered call in between. */
  readonly maxRestarts: number;
  /** Trust check before each restart. */
  readonly canStart: StartCheck;
  /** Starts the successor of an ended resource. */
  readonly startNext: (previous: Resource) => Promise<Resource>;
  /** Runs after a restart, before the tool call that caused the restart. */
  readonly onStarted?: (next: Resource) => Promise<void>;
}

/** Trust check before a restart; undefined without a check. */
export type StartCheck = (() => Promise<boolean>) | undefined;

/** Supervisor of a resource. */
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
  /** Closes the resource; it is not restarted again. */
  close(): Promise<void>;
}

/** Creates a supervisor of a started resource. */
export function createSupervisor<Resource extends SupervisedResource>(
  first: Resource,
  options: SupervisorOptions<Resource>,
): Supervisor<Resource> {
  return new ResourceSupervisor(first, options);
}

class ResourceSupervisor<Resource extends SupervisedResource> implements Supervisor<Resource> {
  readonly #options: SupervisorOptions<Resource>;
  #latest: Resource;
  #restarts = 0;
  /** Number of pending `restart` calls: no resource is active during a restart. */
  #pendingRestarts = 0;
  #isClosed = false;
  /** Running start or close. */
  #pending: Promise<unknown> | undefined;
  #stopWaiting = (): void => undefined;

  constructor(first: Resource, options: SupervisorOptions<Resource>) {
    this.#latest = first;
    this.#options = options;
  }

  get latest(): Resource {
    return this.#latest;
  }

  get active(): Resource | undefined {
    return this.#pendingRestarts === 0 && this.#latest.isAlive() ? this.#latest : undefined;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async ensureActive(): Promise<Resource> {
    const { name, verb, restart, maxRestarts } = this.#options;
    for (;;) {
      if (this.#isClosed) throw ToolError.unavailable(`The ${name} is closed.`);
      const { active } = this;
      if (active !== undefined) return active;
      if (this.#pending !== undefined) await this.#pending.catch((cause: unknown) => this.#throwStartError(cause));
      else if (restart === "never" || this.#restarts >= maxRestarts)
        throw ToolError.unavailable(describeEnd(name, verb, this.#restarts));
      else await this.#runExclusive(() => this.#restartResource());
    }
  }

  resetRestarts(): void {
    this.#restarts = 0;
  }

  restart(start: () => Promise<Resource>): Promise<void> {
    this.#isClosed = false;
    this.#restarts = 0;
    this.#pendingRestarts += 1;
    this.#stopWaiting();
    return this.#runExclusive(async () => {
      try {
        await this.#latest.close();
        this.#latest = await start();
      } finally {
        this.#pendingRestarts -= 1;
      }
    });
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#stopWaiting();
    return this.#runExclusive(() => this.#latest.close());
  }

  /** Restarts the resource. Returns without a restart if the supervisor closes or restarts in the meantime. */
  async #restartResource(): Promise<void> {
    const { canStart = async () => true, startNext, onStarted } = this.#options;
    const isTrusted = await this.#awaitUnlessClosing(canStart);
    if (isTrusted === undefined) return;
    if (!isTrusted) throw createUntrustedError();
    this.#restarts += 1;
    const next = await startNext(this.#latest).catch((cause: unknown) => this.#throwStartError(cause));
    this.#latest = next;
    if (onStarted !== undefined) await this.#awaitUnlessClosing(() => onStarted(next));
  }

  /** Reports a failed start. The cause is for people only: a model cannot fix a command or an address. */
  #throwStartError(cause: unknown): never {
    if (isToolError(cause)) throw cause;
    const { name, verb } = this.#options;
    const modelMessage = `The ${name} has ended and could not be ${verb} again. The tool call was not made.`;
    throw ToolError.unavailable(cause instanceof Error ? cause.message : String(cause), { modelMessage, cause });
  }

  /** Runs a single start or close at a time. */
  #runExclusive<Value>(work: () => Promise<Value>): Promise<Value> {
    const turn = Promise.allSettled([this.#pending])
      .then(work)
      .finally(() => {
        if (this.#pending === turn) this.#pending = undefined;
      });
    this.#pending = turn;
    return turn;
  }

  /** Awaits a slow external decision. Returns undefined if the supervisor closes or restarts in the meantime. */
  async #awaitUnlessClosing<Value>(decide: () => Promise<Value>): Promise<Value | undefined> {
    if (this.#isClosed || this.#pendingRestarts > 0) return undefined;
    const closing = new Promise<undefined>((resolve) => {
      this.#stopWaiting = () => resolve(undefined);
    });
    return Promise.race([decide(), closing]);
  }
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
