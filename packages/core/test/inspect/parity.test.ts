/**
 * Compares `checkGraph` with the engine on random graphs with failures, interrupts, timeouts, cancels and crashes:
 * every control state of a run was explored, and a graph reported as sound can always finish.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { getPlan } from "../../src/compile/plan.ts";
import {
  checkGraph,
  type Graph,
  isStatewrightError,
  memoryStore,
  type RunHandle,
  resume,
  run,
  type StatewrightError,
  type Store,
} from "../../src/index.ts";
import { type Exploration, exploreStates } from "../../src/inspect/check/explore-states.ts";
import { type Control, plainCodec } from "../../src/store.ts";
import { ignoreResult } from "../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../support/virtual-world.ts";
import {
  anyDescriptions,
  compileDescription,
  computeDistancesToEnd,
  createDescribedGraph,
  type GraphDescription,
} from "./random-graphs.ts";

/** Possible outcome of a task. */
const accidents = ["fails", "asks", "hangs", "is cancelled", "dies"] as const;

test("a run reaches only explored control states, and a sound graph can finish from any state where it stops [E57]", async () => {
  const seen = new Map<string, number>();
  const countEntry = (what: string): void => {
    seen.set(what, (seen.get(what) ?? 0) + 1);
  };
  let graphs = 0;
  const property = fc.asyncProperty(anyDescriptions, fc.infiniteStream(fc.nat()), async (description, chance) => {
    const randomRun = createRandomRun(description, (below) => (chance.next().value as number) % below, countEntry);
    fc.pre(randomRun !== undefined);
    if (randomRun === undefined) return;
    graphs += 1;
    const walk = exploreStates(getPlan(randomRun.graph), 100_000);
    const { violations } = checkGraph(randomRun.graph);
    countEntry(violations.length === 0 ? "clean" : "caught");
    const end = await randomRun.runToEnd();
    await expectWalked(randomRun.store(), walk, countEntry);
    if (end === "finished") return;
    if (end === "endless") {
      expect(violations.map(({ rule }) => rule)).toContain("endless_loop");
      return;
    }
    expect(violations.map(({ message }) => message.split(" (")[0])).toContainEqual(expect.stringContaining(end.what));
    const rule = end.error.code === "empty_fan_out" ? "empty_fan_out" : "dead_end";
    const shortest = Math.min(...violations.flatMap((each) => (each.rule === rule ? [each.path.length - 3] : [])));
    expect(end.error.place.step ?? -1).toBeGreaterThanOrEqual(shortest);
  });
  await fc.assert(property, { numRuns: 200 });
  expect(graphs).toBeGreaterThanOrEqual(200);
  for (const what of ["clean", "caught", "finished", "walked", ...accidents])
    expect([what, seen.get(what) ?? 0], what).toSatisfy(([, count]: [string, number]) => count > 20);
});

interface RandomRun {
  readonly graph: Graph;
  readonly store: () => Store;
  /** Runs until the end; returns the error that no resume fixes, if any. */
  readonly runToEnd: () => Promise<
    "finished" | "endless" | { readonly error: StatewrightError; readonly what: string }
  >;
}

/** Runs one thread: random choices first, then only choices that lead to the end. */
function createRandomRun(
  description: GraphDescription,
  pick: (below: number) => number,
  saw: (what: string) => void,
): RandomRun | undefined {
  const world = createVirtualWorld();
  const distances = computeDistancesToEnd(description);
  let homeward = false;
  let handle: RunHandle<object, unknown> | undefined;
  let store = memoryStore();
  let died = false;
  let luck = 12;
  const lead = (targets: readonly string[]): string | undefined =>
    homeward
      ? targets.toSorted((one, other) => (distances.get(one) ?? 99) - (distances.get(other) ?? 99))[0]
      : undefined;
  const graph = compileDescription(() =>
    createDescribedGraph(
      description,
      pick,
      async ({ interrupt }) => {
        const what = homeward || luck === 0 ? undefined : accidents[pick(16)];
        if (what === undefined) return;
        luck -= 1;
        saw(what);
        if (what === "fails") throw new Error("bad luck");
        if (what === "asks") await (interrupt as (key: string) => Promise<unknown>)("ask");
        if (what === "hangs") await new Promise(() => undefined);
        if (what === "is cancelled") handle?.cancel();
        if (what === "dies") {
          died = true;
          store.crash();
          store = store.peer();
          await new Promise(() => undefined);
        }
      },
      { lead, defaults: { timeoutMs: 50, retry: { attempts: 2, initialMs: 10, on: () => pick(2) === 0 } } },
    ),
  );
  if (graph === undefined) return undefined;
  const options = () => ({ store, world, thread: "t", maxSteps: 25 });
  return {
    graph,
    store: () => store,
    runToEnd: async () => {
      handle = run(graph, options());
      for (;;) {
        const end = await getEnd(handle, world, () => died);
        died = false;
        if (end.kind === "done") {
          saw("finished");
          return "finished";
        }
        if (end.kind === "long" && homeward) return "endless";
        if (end.kind === "stuck") return { error: end.error, what: end.error.message.split(" (")[0] ?? "" };
        homeward ||= end.kind === "long";
        const answers = end.kind === "asks" ? end.answers : {};
        handle = resume(graph, { ...options(), maxSteps: homeward ? 200 : 25, answers } as never);
      }
    },
  };
}

type End =
  | { readonly kind: "done" | "goesOn" | "long" }
  | { readonly kind: "asks"; readonly answers: Readonly<Record<string, boolean>> }
  | { readonly kind: "stuck"; readonly error: StatewrightError };

/** Returns the current end of a run and advances the clock meanwhile. */
async function getEnd(handle: RunHandle<object, unknown>, world: VirtualWorld, died: () => boolean): Promise<End> {
  let end: End | undefined;
  const ended = handle.result.then(
    (result) => {
      end =
        result.status === "waiting"
          ? { kind: "asks", answers: Object.fromEntries(result.interrupts.map(({ id }) => [id, true])) }
          : { kind: result.status === "done" ? "done" : "goesOn" };
    },
    (error: unknown) => {
      end = endByError(error);
    },
  );
  ignoreResult(ended);
  while (end === undefined && !died()) await world.advance(100);
  return end ?? { kind: "goesOn" };
}

function endByError(error: unknown): End {
  if (!isStatewrightError(error)) throw error;
  if (error.code === "step_limit") return { kind: "long" };
  if (error.code === "node_failed" || error.code === "task_timeout") return { kind: "goesOn" };
  expect(["dead_route", "empty_fan_out"]).toContain(error.code);
  return { kind: "stuck", error };
}

/** Checks that every checkpoint is an explored state and follows its parent by an explored step. */
async function expectWalked(store: Store, walk: Exploration, saw: (what: string) => void): Promise<void> {
  if (walk.truncatedAt !== undefined) return;
  const rows = (await store.history("t", { branch: "main", limit: 10_000 })).toReversed();
  let before = walk.states[0];
  for (const { control } of rows) {
    const state = walk.find(plainCodec.decode(control) as Control);
    expect(state, control).toBeDefined();
    expect(before === undefined || state === undefined || before.next.has(state), control).toBe(true);
    before = state;
    saw("walked");
  }
}
