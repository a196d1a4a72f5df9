/**
 * Matches lines with a linear-time regex engine. A step of the engine can take 100 ns, so a long text is matched in a
 * worker thread: the event loop keeps turning, and a deadline ends the work.
 */
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { ToolError, type World } from "@statewright/core";
import { HostError } from "@statewright/host";
import { RE2JS } from "re2js";

/** Indices of the matching lines, at most `limit`; undefined when the time of the matcher is over. */
type MatchLines = (
  lines: readonly string[],
  limit: number,
) => readonly number[] | Promise<readonly number[] | undefined>;

/** Matcher of a search. Disposal ends its worker. */
export interface LineMatcher extends AsyncDisposable {
  readonly match: MatchLines;
}

/** Context of a matcher: `signal` cancels a match that is under way. */
interface MatcherContext {
  readonly signal: AbortSignal;
  readonly schedule: World["schedule"];
}

/** Maximum steps of the engine on the event loop: at most about 100 ms, in most patterns less than 5 ms. */
const maxInlineSteps = 1_000_000;
/** Time of all matches of a search in the worker. */
const workerTimeMs = 10_000;

/** Creates a matcher. Throws an `invalid_args` ToolError for an invalid expression. */
export function createLineMatcher(pattern: string, context: MatcherContext): LineMatcher {
  if (!/[\\^$.*+?()[\]{}|]/.test(pattern))
    return {
      match: (lines, limit) => selectIndices(lines, limit, (line) => line.includes(pattern)),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  const expression = compilePattern(pattern);
  const size = expression.programSize();
  const worker = new MatchWorker(pattern, context);
  return {
    match: (lines, limit) => {
      const length = lines.reduce((sum, line) => sum + line.length + 1, 0);
      return length * size <= maxInlineSteps
        ? selectIndices(lines, limit, (line) => expression.matcher(line).find())
        : worker.match(lines, limit);
    },
    [Symbol.asyncDispose]: () => worker.end(),
  };
}

function selectIndices(lines: readonly string[], limit: number, isMatch: (line: string) => boolean): readonly number[] {
  const indices: number[] = [];
  for (let index = 0; index < lines.length && indices.length < limit; index++)
    if (isMatch(lines[index] ?? "")) indices.push(index);
  return indices;
}

function compilePattern(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw ToolError.invalidArgs(`The pattern is not a valid regular expression: ${reason}`, { cause });
  }
}

/** Program of the worker. Text instead of a file, so that bundlers need no entry for the worker. */
const workerProgram = `
const { parentPort, workerData } = require("node:worker_threads");
const { RE2JS } = require(workerData.engine);
const expression = RE2JS.compile(workerData.pattern);
parentPort.on("message", ({ lines, limit }) => {
  const indices = [];
  for (let index = 0; index < lines.length && indices.length < limit; index++)
    if (expression.matcher(lines[index]).find()) indices.push(index);
  parentPort.postMessage(indices);
});`;

/** Worker of a search, started by the first long text. Matches the texts in sequence. */
class MatchWorker {
  readonly #pattern: string;
  readonly #context: MatcherContext;
  #worker: Worker | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  #isOver = false;
  #stopClock: (() => void) | undefined;
  /** Settles the match under way. */
  #finish: ((end: readonly number[] | undefined | Error) => void) | undefined;

  constructor(pattern: string, context: MatcherContext) {
    this.#pattern = pattern;
    this.#context = context;
  }

  match(lines: readonly string[], limit: number): Promise<readonly number[] | undefined> {
    const matched = this.#queue.then(() => this.#match(lines, limit));
    this.#queue = matched.catch(ignoreError);
    return matched;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    this.#stopClock?.();
    await this.#worker?.terminate();
  }

  #match(lines: readonly string[], limit: number): Promise<readonly number[] | undefined> {
    const { signal } = this.#context;
    if (signal.aborted) throw createCancelledError();
    if (this.#isOver) return Promise.resolve(undefined);
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise<readonly number[] | undefined>((resolve, reject) => {
      const cancel = (): void => this.#finish?.(createCancelledError());
      this.#finish = (end) => {
        this.#finish = undefined;
        signal.removeEventListener("abort", cancel);
        if (end instanceof Error) reject(end);
        else resolve(end);
      };
      signal.addEventListener("abort", cancel);
      worker.postMessage({ lines, limit });
    });
  }

  #start(): Worker {
    const engine = createRequire(import.meta.url).resolve("re2js");
    const worker = new Worker(workerProgram, { eval: true, workerData: { engine, pattern: this.#pattern } });
    worker.on("message", (indices: readonly number[]) => this.#finish?.(indices));
    worker.on("error", (error: Error) => this.#finish?.(error));
    this.#stopClock = this.#context.schedule.after(workerTimeMs, () => {
      this.#isOver = true;
      this.#finish?.(undefined);
    });
    return worker;
  }
}

function createCancelledError(): HostError {
  return new HostError("cancelled", "The search was cancelled.");
}

/** The caller of the failed match gets its error; the next match starts anyway. */
function ignoreError(): void {}
