/** Requests at random moments of a run, with and without hints, and with a death of the owner. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  cancelRun,
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  type MemoryStore,
  memoryStore,
  pauseRun,
  recover,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Pseudo-random integers from a seed. */
function createDice(seed: number): (sides: number) => number {
  let value = seed * 2_654_435_761 + 1;
  return (sides) => {
    value = (value * 48_271) % 2_147_483_647;
    return Math.abs(value) % sides;
  };
}

/** Creates a graph of parallel and sequential supersteps whose once effects are counted. */
function createGraph(effects: Map<string, number>) {
  const count = (name: string): string => {
    effects.set(name, (effects.get(name) ?? 0) + 1);
    return name;
  };
  return defineGraph({ name: "work", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({
      first: async (_, { step }) => ({ log: [await step("a", () => count("a"), { effect: "once" })] }),
      each: inputNode(z.string(), async (_, { input, step }) => ({
        log: [await step(input, () => count(input), { effect: "once" })],
      })),
      last: async (_, { step }) => ({ log: [await step("z", () => count("z"), { effect: "once" })] }),
    })
    .edges({ [START]: "first", first: fanOut("each", () => ["b", "c", "d"]), each: "last", last: END });
}

interface Moments {
  readonly kind: "cancel" | "pause";
  readonly requestAt: number;
  readonly crashAt: number;
  readonly hints: boolean;
}

/** Wraps a store: the request comes before its commit of that number, the crash after. */
function addMoments(mine: MemoryStore, { requestAt, crashAt, hints }: Moments, request: () => void): Store {
  let commits = 0;
  const { watch, ...rest } = mine;
  return {
    ...rest,
    local: false,
    ...(hints && watch !== undefined ? { watch } : {}),
    commit: (commit, onCommitted) => {
      const nth = commits++;
      if (nth === requestAt) request();
      mine.commit(commit, (failure, counts) => {
        if (nth === crashAt) mine.crash();
        else onCommitted(failure, counts);
      });
    },
  };
}

test("a request at any moment of a run is handled once: no effect repeats, no request stays, and the run ends as its last request says [PK11, SE5]", async () => {
  const ends = new Map<string, number>();
  for (let seed = 1; seed <= 300; seed++) {
    const dice = createDice(seed);
    const moments: Moments = {
      kind: dice(2) === 0 ? "cancel" : "pause",
      requestAt: dice(10),
      crashAt: dice(3) === 0 ? dice(10) : -1,
      hints: dice(2) === 0,
    };
    const world = createVirtualWorld();
    const effects = new Map<string, number>();
    const graph = createGraph(effects);
    const mine = memoryStore();
    const other = mine.peer();
    let requested: Promise<unknown> = Promise.resolve();
    const store = addMoments(mine, moments, () => {
      const call = moments.kind === "cancel" ? cancelRun : pauseRun;
      // Before its first commit the run is unknown to other processes.
      requested = call(other, { thread: "t", world }).catch((error: { code?: string }) => error.code);
    });
    const handle = run(graph, { store, thread: "t", world });
    ignoreResult(handle.result);
    await world.waitUntilIdle();
    await world.waitUntilIdle();
    const outcome = await requested;
    for (const { result } of await recover({ store: other, graphs: [graph], world })) await result;
    await world.waitUntilIdle();
    const label = `seed ${seed}: ${JSON.stringify(moments)}, ${JSON.stringify(outcome)}`;
    const [row] = await listRuns(other, { thread: "t" });
    expect(await other.requests("t"), label).toEqual([]);
    expect(await other.countInputs(["t"]), label).toEqual([{ queued: 0, messages: 0, requests: 0 }]);
    const status = row?.status ?? "none";
    // Refused before the first commit, or never made: a crash may leave an effect in doubt.
    const withoutRequest = moments.crashAt < 0 ? ["done"] : ["done", "waiting", "none"];
    const requestedEnds = moments.kind === "cancel" ? ["cancelled", "done"] : ["paused", "done"];
    expect(typeof outcome === "object" ? requestedEnds : withoutRequest, label).toContain(status);
    for (const [name, times] of effects) expect(times, `${label}: effect ${name}`).toBe(1);
    if (status === "paused") {
      const continued = await resume(graph, { store: other, thread: "t", world }).result;
      if (continued.status === "done") expect([...effects.keys()].toSorted(), label).toEqual(["a", "b", "c", "d", "z"]);
      for (const [name, times] of effects) expect(times, `${label}: effect ${name} after the resume`).toBe(1);
    }
    ends.set(`${moments.kind} ${status}`, (ends.get(`${moments.kind} ${status}`) ?? 0) + 1);
  }
  for (const end of ["cancel cancelled", "cancel done", "pause paused", "pause done"])
    expect(ends.get(end) ?? 0, `${end}: ${JSON.stringify([...ends])}`).toBeGreaterThan(5);
});
