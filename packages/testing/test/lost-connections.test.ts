/** Runs on a store whose connections are lost. */
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  getState,
  memoryStore,
  run,
  START,
  type Store,
} from "@statewright/core";
import { listRuns } from "@statewright/core/inspect";
import { faults, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

/** Runs 20 threads of three nodes on a store that loses connections, and returns how they ended. */
async function runThreads(
  seed: number,
  { losesAnswer, effect }: { readonly losesAnswer: boolean; readonly effect: "once" | "idempotent" },
) {
  const effects = new Map<string, number>();
  const graph = defineGraph({
    name: "line",
    state: defineState({ word: z.string().default(""), log: channel.list(z.string()) }),
  })
    .nodes({
      first: () => ({ log: ["first"] }),
      pay: async ({ word }, { step }) => {
        await step(
          "pay",
          () => {
            effects.set(word, (effects.get(word) ?? 0) + 1);
            return word;
          },
          { effect },
        );
        return { log: ["pay"] };
      },
      last: () => ({ log: ["last"] }),
    })
    .edges({ [START]: "first", first: "pay", pay: "last", last: END });
  const world = virtualClock({ seed });
  const inner = memoryStore();
  let lost = 0;
  const started = new Set<string>();
  const faulty = faults.store(inner, { chance: 0.2, seed, error: "store_unreachable", losesAnswer });
  const store: Store = {
    ...faulty,
    commit: (commit, onCommitted) => {
      // The first commit of a thread accepts its input.
      const target = started.has(commit.thread) ? faulty : inner;
      started.add(commit.thread);
      target.commit(commit, (failure, queued) => {
        if (failure !== undefined) lost += 1;
        onCommitted(failure, queued);
      });
    },
  };
  const host = engine({ store, graphs: [graph], world });
  await host.start();
  const words = Array.from({ length: 20 }, (_, index) => `w${index}`);
  const results = Promise.allSettled(words.map((word) => host.run(graph, { thread: word, input: { word } }).result));
  for (let second = 0; second < 600; second++) await world.advance(1_000);
  const settled = await results;
  const runs = await listRuns(inner);
  const logs = await Promise.all(
    words.map(async (thread) => (await getState(graph, { store: inner, thread })).state.log),
  );
  await host.stop();
  return {
    logs,
    lost,
    rejected: settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : [])),
    statuses: new Set(settled.flatMap((each) => (each.status === "fulfilled" ? [each.value.status] : []))),
    ended: runs.map(({ thread, status }) => `${thread} ${status}`).sort(),
    effects: [...effects.values()],
    words,
  };
}

for (const seed of [1, 2, 3])
  test(`runs on a store that loses a fifth of its connections (seed ${seed}) are paused and continued: no handle rejects, no effect runs twice [PK10]`, async () => {
    const options = { losesAnswer: false, effect: "once" } as const;
    const { lost, rejected, statuses, ended, effects, words } = await runThreads(seed, options);
    expect(rejected).toEqual([]);
    expect(lost).toBeGreaterThan(20);
    expect(statuses).toEqual(new Set(["done", "paused"]));
    expect(ended).toEqual(words.map((word) => `${word} done`).sort());
    expect(effects).toEqual(words.map(() => 1));
  });

for (const seed of [1, 2, 3])
  test(`runs on a store that loses a fifth of the answers to its commits (seed ${seed}) are paused and continued, and each ends once [PK10]`, async () => {
    const options = { losesAnswer: true, effect: "idempotent" } as const;
    const { lost, rejected, ended, logs, words } = await runThreads(seed, options);
    expect(rejected).toEqual([]);
    expect(lost).toBeGreaterThan(10);
    expect(ended).toEqual(words.map((word) => `${word} done`).sort());
    expect(logs).toEqual(words.map(() => ["first", "pay", "last"]));
  });

test("a run whose input could not be saved for lack of a connection rejects, and leaves no run [PK10]", async () => {
  const graph = defineGraph({ name: "one", state: defineState({ log: channel.list(z.string()) }) })
    .nodes({ only: () => ({ log: ["only"] }) })
    .edges({ [START]: "only", only: END });
  const inner = memoryStore();
  const store = faults.store(inner, { failNth: 1, error: "store_unreachable" });
  await expect(run(graph, { store, thread: "t" }).result).rejects.toMatchObject({ code: "store_unreachable" });
  expect(await listRuns(inner)).toEqual([]);
  expect(await run(graph, { store, thread: "t" }).result).toMatchObject({ status: "done", state: { log: ["only"] } });
});
