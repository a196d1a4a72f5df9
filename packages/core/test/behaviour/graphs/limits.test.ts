import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type CommonOptions,
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  memoryStore,
  resume,
  route,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

describe("step limit", () => {
  const Count = defineState({ n: z.number().default(0) });
  const listNumbersUpTo = (last: number) =>
    defineGraph({ name: "loop", state: Count, interrupts: { go: z.boolean() } })
      .nodes({
        a: async (state, { interrupt }) => {
          if (state.n === 3) await interrupt("go");
          return { n: state.n + 1 };
        },
      })
      .edges({ [START]: "a", a: route(["a", END], (state) => (state.n < last ? "a" : END)) });

  test("the step limit allows that many supersteps of a run and refuses the next [E18]", async () => {
    expect((await run(listNumbersUpTo(3), { maxSteps: 3 }).result).state).toEqual({ n: 3 });
    const error = await getFailure(run(listNumbersUpTo(3), { maxSteps: 2 }).result, "step_limit");
    expect(error.place).toMatchObject({ graph: "loop" });
  });

  test("the step limit counts across a resume, keeps the state, and a resume with a higher limit continues [E18]", async () => {
    const store = memoryStore();
    expect(await run(listNumbersUpTo(6), { store, thread: "t", maxSteps: 5 }).result).toMatchObject({
      status: "waiting",
      state: { n: 3 },
    });
    await getFailure(
      resume(listNumbersUpTo(6), { store, thread: "t", maxSteps: 5, answers: { go: true } }).result,
      "step_limit",
    );
    await getFailure(resume(listNumbersUpTo(6), { store, thread: "t", maxSteps: 5 }).result, "step_limit");
    expect((await store.thread("t"))?.status).toBe("failed");
    const done = await resume(listNumbersUpTo(6), { store, thread: "t", maxSteps: 6 }).result;
    expect(done).toMatchObject({ status: "done", state: { n: 6 }, steps: 1 });
  });

  test("the step limit of a new run on the thread starts from zero", async () => {
    const store = memoryStore();
    const graph = defineGraph({ name: "loop", state: Count })
      .nodes({ a: (state) => ({ n: state.n + 1 }) })
      .edges({ [START]: "a", a: route(["a", END], (state) => (state.n % 3 === 0 ? END : "a")) });
    for (let round = 1; round <= 3; round++)
      expect((await run(graph, { store, thread: "t", maxSteps: 3 }).result).state.n).toBe(round * 3);
  });
});

describe("concurrency limit", () => {
  const Work = defineState({ found: channel.list(z.number()) });

  test.each([1, 2, 3, 6, 100])(
    "maxConcurrency %d bounds the tasks of a fan-out of six in flight and drops none [E17]",
    async (maxConcurrency) => {
      const world = createVirtualWorld();
      let inFlight = 0;
      let most = 0;
      const graph = defineGraph({ name: "six", state: Work })
        .nodes({
          each: inputNode(z.number(), async (_state, { input }) => {
            most = Math.max(most, ++inFlight);
            await new Promise<void>((resolve) => void world.schedule.after(10 * (7 - input), resolve));
            inFlight--;
            return { found: [input] };
          }),
        })
        .edges({ [START]: fanOut("each", () => [1, 2, 3, 4, 5, 6]), each: END });
      const handle = run(graph, { world, maxConcurrency });
      await world.advance(1_000);
      expect((await handle.result).state.found).toEqual([1, 2, 3, 4, 5, 6]);
      expect(most).toBe(Math.min(maxConcurrency, 6));
    },
  );

  test("a concurrency or step limit that is not a positive integer is refused before a write to the store [E17]", async () => {
    const refused: readonly Pick<CommonOptions, "maxConcurrency" | "maxSteps">[] = [
      { maxConcurrency: 0 },
      { maxConcurrency: Number.NaN },
      { maxConcurrency: 1.5 },
      { maxConcurrency: -1 },
      { maxConcurrency: "3" as never },
      { maxSteps: 0 },
      { maxSteps: Number.NaN },
    ];
    const store = memoryStore();
    const graph = defineGraph({ name: "six", state: Work })
      .nodes({ a: () => undefined })
      .edges({ [START]: "a", a: END });
    for (const options of refused) {
      const error = await getFailure(run(graph, { ...options, store, thread: "t" }).result, "invalid_option");
      expect(error.message).toContain(Object.keys(options)[0]);
      expect(await store.threads()).toEqual([]);
    }
  });
});
