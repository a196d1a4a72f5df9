/** Keeps a process or a connection at work: one that has ended is started anew with the next call, a few times in a row. */
import { isToolError, ToolError } from "@statewright/core";

/** What is kept, from its start to its end. */
export interface Life {
  readonly isAlive: () => boolean;
  /** Ask it to end, and end it. */
  readonly close: () => Promise<void>;
}

/** How another one is started when the last has ended. */
export interface KeeperOptions<Kept extends Life> {
  /** What messages call it, after "The". */
  readonly name: string;
  /** What messages call a start. */
  readonly verb: "started" | "connected";
  readonly restart: "lazy" | "never";
  /** How often it is started anew without an answer in between. */
  readonly maxRestarts: number;
  /** Whether somebody still trusts what would be started. It is asked each time. */
  readonly mayStart: MayStart;
  readonly startAnew: (before: Kept) => Promise<Kept>;
  /** What is done with one that was started anew and is at work, before the call goes on that it was started for. */
  readonly begun?: (next: Kept) => Promise<void>;
}

/** Whether what was started may be started anew; absent where nobody has to be asked. */
export type MayStart = (() => Promise<boolean>) | undefined;

/** Keeps one at work. */
export interface Keeper<Kept extends Life> {
  /** The one that was started last. */
  readonly last: Kept;
  /** The one that answers now. */
  readonly atWork: Kept | undefined;
  /** Whether it was ended by `close`. */
  readonly isClosed: boolean;
  /** The one at work, or a new one where the last has ended. Rejects with what a model reads. */
  ready(): Promise<Kept>;
  /** A call was answered: restarts are counted from here on. */
  answered(): void;
  /** End the last one and start another, whatever came of those before. What `start` gives is at work. */
  restart(start: () => Promise<Kept>): Promise<void>;
  close(): Promise<void>;
}

/** Keep what was started. */
export function keeper<Kept extends Life>(first: Kept, options: KeeperOptions<Kept>): Keeper<Kept> {
  const { name, verb, restart, maxRestarts, mayStart, startAnew, begun } = options;
  let last = first;
  let restarts = 0;
  /** How many restarts are asked for and not over: until then none that is there counts. */
  let replacing = 0;
  let isClosed = false;
  let busy: Promise<unknown> | undefined;
  let stopAsking = (): void => undefined;

  const atWork = (): Kept | undefined => (replacing === 0 && last.isAlive() ? last : undefined);

  /** Why a start has failed is for people: a model can do nothing about a command or an address. */
  const notStarted = (cause: unknown): never => {
    if (isToolError(cause)) throw cause;
    const modelMessage = `The ${name} has ended and could not be ${verb} anew, so this call was not made.`;
    throw ToolError.unavailable(cause instanceof Error ? cause.message : String(cause), { modelMessage, cause });
  };

  /** One start or end at a time. */
  const inTurn = <Value>(work: () => Promise<Value>): Promise<Value> => {
    const turn = Promise.allSettled([busy])
      .then(work)
      .finally(() => {
        if (busy === turn) busy = undefined;
      });
    busy = turn;
    return turn;
  };

  /** What somebody else decides, who may take long, or end it meanwhile: nothing where it is to end or to be replaced. */
  const unlessEnding = async <Value>(decide: () => Promise<Value>): Promise<Value | undefined> => {
    if (isClosed || replacing > 0) return undefined;
    const ended = new Promise<undefined>((resolve) => {
      stopAsking = () => resolve(undefined);
    });
    return Promise.race([decide(), ended]);
  };

  /** Where it is to end or to be replaced meanwhile, what was asked for comes after. */
  const anew = async (): Promise<void> => {
    const isTrusted = await unlessEnding(mayStart ?? (async () => true));
    if (isTrusted === undefined) return;
    if (!isTrusted) throw untrusted();
    restarts += 1;
    const next = await startAnew(last).catch(notStarted);
    last = next;
    if (begun !== undefined) await unlessEnding(() => begun(next));
  };

  return {
    get last() {
      return last;
    },
    get atWork() {
      return atWork();
    },
    get isClosed() {
      return isClosed;
    },
    ready: async () => {
      for (;;) {
        if (isClosed) throw ToolError.unavailable(`The ${name} was closed.`);
        const known = atWork();
        if (known !== undefined) return known;
        if (busy !== undefined) await busy.catch(notStarted);
        else if (restart === "never" || restarts >= maxRestarts)
          throw ToolError.unavailable(ended(name, verb, restarts));
        else await inTurn(anew);
      }
    },
    answered: () => {
      restarts = 0;
    },
    restart: (start) => {
      isClosed = false;
      restarts = 0;
      replacing += 1;
      stopAsking();
      return inTurn(async () => {
        try {
          await last.close();
          last = await start();
        } finally {
          replacing -= 1;
        }
      });
    },
    close: () => {
      isClosed = true;
      stopAsking();
      return inTurn(() => last.close());
    },
  };
}

/** Nobody has said yes to a program as it is now. */
export function untrusted(): ToolError {
  return new ToolError(
    "denied",
    "The program behind this tool has ended, and is not started again: nobody has said yes to it as it is now.",
  );
}

function ended(name: string, verb: string, restarts: number): string {
  const tried = restarts === 0 ? "" : ` It was ${verb} anew ${restarts} times and ended each time before it answered.`;
  return `The ${name} has ended.${tried}`;
}
