/**
 * Process of a crash matrix: starts or resumes the run, answers interrupts, and continues until the run
 * finishes or the process dies.
 */
import {
  type Graph,
  getState,
  type RunHandle,
  type RunResult,
  resume,
  run,
  type Store,
  type World,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { type Codec, type InterruptRow, plainCodec } from "@statewright/core/store";
import { normalizeIds } from "../run/normalize-ids.ts";
import { omitFailedAttempts } from "../run/omit-failed-attempts.ts";
import type { VirtualClock } from "../virtual-clock.ts";
import { wrapStore } from "../wrap-store.ts";
import { type CrashProgram, createRunOptions, getAnswer } from "./crash-program.ts";
import { describeCommit } from "./describe-commit.ts";
import type { CrashEffect } from "./external-world.ts";
import { type CrashHooks, watchGraph } from "./watch-graph.ts";

/** Thread id of every run of a crash matrix. */
const crashThread = "crash-matrix";

/** End of the last process of a run. */
export interface ProcessEnd {
  readonly status: "done" | "failed" | "in doubt" | "waits" | "cancelled" | "died";
  /** Error message of a failed run, or keys of the open interrupts. */
  readonly reason?: string | undefined;
}

/** Result of a run after the last process, as plain data. */
export interface CrashRunResult {
  readonly end: ProcessEnd;
  /** Channel values, encoded. */
  readonly state: Readonly<Record<string, string>>;
  /** Node names of each superstep. */
  readonly path: readonly string[];
}

/** Dependencies of a process. */
export interface ProcessContext extends Pick<CrashHooks, "alive" | "point"> {
  readonly store: Store;
  readonly world: World;
  readonly clock: VirtualClock;
}

const maxStops = 100;

/** Starts or resumes the run until it finishes, needs an unknown answer, or the process dies. */
export async function runProcess(program: CrashProgram, process: ProcessContext): Promise<ProcessEnd> {
  const { alive, world } = process;
  const { graph, model } = program;
  const watched = watchGraph(graph, { alive, point: process.point, model });
  const store = process.store;
  const common = { ...createRunOptions(program), thread: crashThread, store, world };
  let answers: Record<string, unknown> = {};
  for (let stops = 0; stops < maxStops; stops++) {
    const hasStarted = (await store.thread(crashThread)) !== undefined && (await store.head(crashThread)) !== undefined;
    const handle = hasStarted
      ? resume(watched, { ...common, answers })
      : run(watched, { ...common, ...createInput(program) });
    const end = await waitForRun(handle, process);
    if (!alive() || end === undefined) return { status: "died" };
    if ("error" in end) return toFailure(end.error);
    const { result } = end;
    if (result.status === "done" || result.status === "cancelled") return { status: result.status };
    answers = {};
    if (result.status !== "waiting") continue;
    for (const interrupt of result.interrupts) {
      const answer = getAnswer(program, interrupt);
      if (answer !== undefined) answers[interrupt.id] = answer;
    }
    if (Object.keys(answers).length > 0) continue;
    const keys = result.interrupts.map(({ key }) => key);
    const inDoubt = keys.some((key) => key.endsWith("in_doubt"));
    return { status: inDoubt ? "in doubt" : "waits", reason: keys.map((key) => `"${key}"`).join(", ") };
  }
  return { status: "waits", reason: `the end of the run: the run stopped ${maxStops} times` };
}

/** Hooks for the commits of a process. */
export interface CommitHooks extends Pick<CrashHooks, "alive" | "point"> {
  /**
   * Called when an answer to an interrupt is durable. `key` contains the payload, so that another payload is another
   * answer.
   */
  readonly recordAnswer: (answer: CrashEffect) => void;
}

/**
 * Wraps the store of a process with a crash point before each commit, and a point when the commit is durable but not
 * reported yet.
 */
export function addCommitPoints(store: Store, { alive, point, recordAnswer }: CommitHooks): Store {
  return wrapStore(store, {
    commit: (commit, onCommitted) => {
      const description = describeCommit(commit);
      point(`before the commit of ${description}`);
      if (!alive()) return;
      store.commit(commit, (failure, counts) => {
        if (!alive()) return;
        if (failure === undefined)
          for (const row of commit.interrupts ?? []) if (isAnswer(row)) recordAnswer(toAnswerEffect(row));
        point(`after the commit of ${description}`);
        if (alive()) onCommitted(failure, counts);
      });
    },
  });
}

function isAnswer({ key, answer }: InterruptRow): boolean {
  return answer !== undefined && !key.endsWith("in_doubt");
}

function toAnswerEffect({ id, key, node, payload }: InterruptRow): CrashEffect {
  return {
    what: `"${key}" in node "${node}"`,
    key: `${id} ${payload}`,
    place: { node, effect: key, kind: "interrupt" },
  };
}

/** Loads the result of a run from the store. */
export async function loadRunResult(
  graph: Graph,
  store: Store,
  end: ProcessEnd,
  codec: Codec = plainCodec,
): Promise<CrashRunResult> {
  const { state, branch } = await getState(graph, { store, thread: crashThread, codec });
  const entries = await store.history(crashThread, { branch, limit: 10_000 });
  return {
    end,
    state: encodeState(state as object, codec),
    path: entries.toReversed().map(({ nodes }) => nodes.join(" + ") || "start"),
  };
}

/** Encodes the state without values that differ between processes: generated ids and failed model attempts. */
function encodeState(state: object, codec: Codec): CrashRunResult["state"] {
  const encoded = Object.entries(state).map(([name, value]) => [
    name,
    JSON.parse(codec.encode(value, `the channel "${name}"`)),
  ]);
  const normalized = normalizeIds(omitFailedAttempts(Object.fromEntries(encoded))) as object;
  return Object.fromEntries(Object.entries(normalized).map(([name, value]) => [name, JSON.stringify(value)]));
}

function createInput({ graph, input }: CrashProgram): { readonly input?: object } {
  if (input === undefined) return {};
  const agent = graph as { readonly toInput?: (words: never) => object };
  const isAgentInput = typeof input === "string" || Array.isArray(input);
  return {
    input: isAgentInput && agent.toInput !== undefined ? agent.toInput(input as never) : (input as object),
  };
}

type RunEnd = { readonly result: RunResult<unknown> } | { readonly error: unknown };

/** Advances the clock until the run rests. Returns undefined when the process died first. */
async function waitForRun(handle: RunHandle<unknown>, { alive, clock }: ProcessContext): Promise<RunEnd | undefined> {
  let end: RunEnd | undefined;
  handle.result.then(
    (result) => {
      end = { result };
    },
    (error: unknown) => {
      end = { error };
    },
  );
  const isRunning = (): boolean => end === undefined && alive();
  while (isRunning()) {
    await clock.waitUntilIdle();
    if (isRunning() && !(await clock.next()) && !(await waitForExternalWork(isRunning)))
      return { error: new Error("the run is stuck: no timer is set and no operation is pending") };
  }
  return end;
}

/** Waits up to two seconds of real time for external work that can continue the run after the last timer. */
async function waitForExternalWork(isRunning: () => boolean): Promise<boolean> {
  const { clock, schedule } = systemWorld();
  const startedAt = clock.monotonic();
  while (isRunning() && clock.monotonic() - startedAt < 2_000)
    await new Promise<void>((resolve) => schedule.soon(resolve));
  return !isRunning();
}

function toFailure(error: unknown): ProcessEnd {
  return { status: "failed", reason: error instanceof Error ? error.message : String(error) };
}
