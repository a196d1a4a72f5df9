/** Random graphs match the reference model in every completion order and after any number of interruptions. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  END,
  fork,
  type Graph,
  getHistory,
  getState,
  type HistoryEntry,
  isStatewrightError,
  type MemoryStore,
  memoryStore,
  type OpenInterrupt,
  type RunHandle,
  resume,
  run,
  type Store,
} from "../../../src/index.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { fromJavaScript } from "../../support/from-javascript.ts";
import {
  buildGraph,
  type Chance,
  createChance,
  createRandomDescription,
  type Probe,
  type Traits,
} from "../../support/random-graph-descriptions.ts";
import {
  createAnswer,
  emptyState,
  interpret,
  type ModelGraph,
  type ModelState,
} from "../../support/reference-model.ts";

const seeds = fc.noShrink(fc.integer({ min: 0, max: 2 ** 30 }));
const maxSteps = 12;
const thread = "t";

/** Result of a run in the terms of the reference model. */
interface Trace {
  readonly error: string | undefined;
  readonly state: Omit<ModelState, "flash">;
  readonly steps: readonly {
    readonly state: Omit<ModelState, "flash">;
    readonly tasks: readonly string[];
    readonly next: readonly string[];
  }[];
}

describe("conformance with the reference model", () => {
  test("a random graph matches the reference model for every completion order: state, nodes per superstep and error", async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        const chance = createChance(seed + 1);
        const described = createRandomDescription(seed, { inner: seed % 5 === 0 });
        const graph = soundGraph(described, { before: () => turns(chance.share(0.3) ? 1 + chance.below(2) : 0) });
        if (graph === undefined) return;
        compared++;
        const store = memoryStore();
        const limit = chance.share(0.3) ? { maxConcurrency: 1 + chance.below(3) } : {};
        const handle = run(graph, { store, thread, maxSteps, ...limit });
        const started: string[][] = [[]];
        handle.on((event) => {
          if (event.within !== undefined) return;
          if (event.type === "task.started") started[started.length - 1]?.push(event.node);
          if (event.type === "step.committed" && event.step > 0) started.push([]);
        });
        const error = await handle.result.then(() => undefined, getCode);
        expect(await getTrace(graph, store, error)).toEqual(modelTrace(described));
        const { steps } = interpret(described, maxSteps);
        expect(started.slice(0, steps.length)).toEqual(steps.map(({ tasks }) => tasks));
      }),
      { numRuns: 660 },
    );
    expect(compared).toBeGreaterThan(500);
  });

  test("a random graph matches the reference model with interrupts, fixed failures and stops, and keeps each result", async () => {
    await fc.assert(
      fc.asyncProperty(seeds, (seed) => runWithTrouble(seed, { failures: 3, stops: 3, deaths: 0 })),
      { numRuns: 30 },
    );
  });

  test("a random graph matches the reference model when its process dies repeatedly at any commit", async () => {
    await fc.assert(
      fc.asyncProperty(seeds, (seed) => runWithTrouble(seed, { failures: 2, stops: 2, deaths: 5 })),
      { numRuns: 40 },
    );
  });

  test("a random graph matches the reference model for a fork from every checkpoint, and the original run is unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(seeds, async (seed) => {
        const described = createRandomDescription(seed, { asks: true, inner: true });
        const graph = soundGraph(described, {});
        const expected = modelTrace(described);
        if (graph === undefined || expected.error !== undefined) return;
        const store = memoryStore();
        await runToEnd(graph, store, run(graph, { store, thread, maxSteps }));
        const before = await listEntries(graph, store, "main");
        for (const { checkpointId: at } of before) {
          const branch = await fork(graph, { store, thread, at, name: `from-${at}` });
          await runToEnd(graph, store, resume(graph, { store, thread, branch, maxSteps }), branch);
          expect(await getTrace(graph, store, undefined, branch)).toEqual(expected);
        }
        expect(await listEntries(graph, store, "main")).toEqual(before);
      }),
      { numRuns: 40 },
    );
  });
});

interface FaultCounts {
  readonly failures: number;
  readonly stops: number;
  readonly deaths: number;
}

/**
 * Runs a graph to its end through failures, cancels, drains, interrupts and crashes, each continued by a new process.
 */
async function runWithTrouble(seed: number, trouble: FaultCounts): Promise<void> {
  const chance = createChance(seed + 1);
  const traits: Traits = { asks: true, inner: chance.share(0.6) };
  const described = createRandomDescription(seed, traits);
  if (soundGraph(described, {}) === undefined) return;
  const left = { ...trouble };
  let bodies = 0;
  let owner: MemoryStore = memoryStore();
  let answers: Readonly<Record<string, unknown>> = {};
  let error: string | undefined;
  for (let process = 0; error === undefined; process++) {
    expect(process).toBeLessThan(2_000);
    const dying = createCrashingStore(
      owner,
      left.deaths > 0 ? 1 + chance.below(6) : 0,
      chance.share(0.5) ? "before" : "after",
    );
    const graph = buildGraph(described, {
      before: async () => {
        await turns(chance.below(3));
        if (dying.isDead()) await new Promise<never>(() => undefined);
        if (left.failures === 0 || !chance.share(0.15)) return;
        left.failures--;
        throw new Error("made up");
      },
      ended: () => {
        bodies++;
      },
    });
    const { store } = dying;
    const began = (await owner.head(thread)) !== undefined;
    const handle = began
      ? resume(graph, { store, thread, answers, maxSteps })
      : run(graph, { store, thread, maxSteps });
    if (left.stops > 0 && chance.share(0.5)) {
      left.stops--;
      stopLater(handle, chance, dying.isDead);
    }
    answers = {};
    try {
      const result = await Promise.race([handle.result, dying.dead]);
      if (result === "dead") {
        left.deaths--;
        owner = owner.peer();
        if (chance.share(0.5)) answers = answersTo(await listOpenInterrupts(graph, owner), chance);
      } else if (result.status === "done") break;
      else if (result.status === "waiting") answers = answersTo(result.interrupts, chance);
    } catch (thrown) {
      if (!(thrown instanceof Error && thrown.message.includes("made up"))) error = getCode(thrown);
    }
  }
  const expected = modelTrace(described);
  const cancelled = (await owner.runs({ thread, status: "cancelled" })).length > 0;
  // After a cancel a new run continues and counts its own supersteps.
  if (cancelled && expected.error === "step_limit") return;
  expect(await getTrace(buildGraph(described), owner, error)).toEqual(expected);
  // A body abandoned by a cancel may have completed and runs again.
  if (trouble.deaths === 0 && !cancelled && error === undefined)
    expect(bodies).toBe(interpret(described, maxSteps).bodies);
}

function stopLater(handle: RunHandle<object>, chance: Chance, isDead: () => boolean): void {
  const cancels = chance.share(0.5);
  let left = chance.below(20);
  handle.on(() => {
    if (left-- !== 0 || isDead()) return;
    if (cancels) handle.cancel();
    else handle.drain();
  });
}

/** Answers at least one open interrupt, in random order. */
function answersTo(open: readonly OpenInterrupt[], chance: Chance): Readonly<Record<string, unknown>> {
  const picked = open.filter(() => chance.share(0.5));
  const some = picked.length > 0 || open.length === 0 ? picked : [chance.of(open)];
  return answersFor(chance.share(0.5) ? [...some].reverse() : some);
}

function answersFor(open: readonly OpenInterrupt[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(open.map(({ id, payload }) => [id, { to: payload, value: createAnswer(String(payload)) }]));
}

async function listOpenInterrupts(graph: Graph, store: Store): Promise<readonly OpenInterrupt[]> {
  return (await store.head(thread)) === undefined ? [] : (await getState(graph, { store, thread })).interrupts;
}

async function runToEnd(graph: Graph, store: Store, first: RunHandle<object>, branch = "main"): Promise<void> {
  let result = await first.result;
  while (result.status === "waiting") {
    const answers = answersFor(result.interrupts);
    result = await resume(graph, { store, thread, branch, answers, maxSteps }).result;
  }
  expect(result.status).toBe("done");
}

/** Compiles the description; undefined when it does not describe a sound graph. */
function soundGraph(described: ModelGraph, probe: Probe): Graph | undefined {
  try {
    return buildGraph(described, probe);
  } catch (error) {
    if (isStatewrightError(error, "invalid_graph")) return undefined;
    throw error;
  }
}

function modelTrace(described: ModelGraph): Trace {
  const { error, state, steps } = interpret(described, maxSteps);
  const observed = steps.map(({ tasks, next, state: left }) => ({
    state: toSavedState(left),
    tasks: removeDuplicates(tasks),
    next: next.length === 0 ? [END] : removeDuplicates(next),
  }));
  return { error, state: toSavedState(state), steps: observed };
}

async function getTrace(graph: Graph, store: Store, error: string | undefined, branch = "main"): Promise<Trace> {
  if ((await store.head(thread)) === undefined) return { error, state: toSavedState(emptyState), steps: [] };
  const stateAt = async (at?: number): Promise<Trace["state"]> => {
    const { state } = await getState(graph, { store, thread, branch, ...(at === undefined ? {} : { at }) });
    return toSavedState(fromJavaScript<ModelState>(state));
  };
  const steps: Trace["steps"][number][] = [];
  for (const { checkpointId, source, nodes, next } of await listEntries(graph, store, branch))
    if (source === "step") steps.unshift({ state: await stateAt(checkpointId), tasks: nodes, next });
  return { error, state: await stateAt(), steps };
}

async function listEntries(graph: Graph, store: Store, branch: string): Promise<readonly HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  for await (const entry of getHistory(graph, { store, thread, branch })) entries.push(entry);
  return entries;
}

function toSavedState({ log, sum, marks, last }: ModelState): Trace["state"] {
  return { log, sum, marks, last };
}

function removeDuplicates(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

/** Returns the code of the innermost StatewrightError; the first one of an aggregate. */
function getCode(error: unknown): string {
  if (!isStatewrightError(error)) return String(error);
  const cause = error.cause instanceof AggregateError ? error.cause.errors[0] : error.cause;
  return isStatewrightError(cause) ? getCode(cause) : error.code;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
