/** Breakpoints that are saved with a run, and breakpoints in the bodies of nodes. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  memoryStore,
  recover,
  resume,
  run,
  START,
  subgraph,
} from "../../../src/index.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { gate } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

const line = defineGraph({ name: "line", state: Log })
  .nodes({ a: () => ({ log: ["a"] }), b: () => ({ log: ["b"] }), c: () => ({ log: ["c"] }) })
  .edges({ [START]: "a", a: "b", b: "c", c: END });

const paused = (where: object) => ({ status: "paused", cause: { code: "breakpoint", details: where } });

describe("breakpoints of a run", () => {
  test("a resume keeps the breakpoints of its run in every process until they are removed, and the next run has its own [FX41, E33]", async () => {
    const store = memoryStore();
    const breakpoints = { before: ["b", "c"] } as const;
    expect(await run(line, { store, thread: "t", breakpoints }).result).toMatchObject(paused({ before: ["b"] }));
    expect(await resume(line, { store: store.peer(), thread: "t" }).result).toMatchObject(paused({ before: ["c"] }));
    expect((await resume(line, { store, thread: "t" }).result).status).toBe("done");
    expect((await run(line, { store, thread: "t" }).result).status).toBe("done");
    await run(line, { store, thread: "t", breakpoints: { after: ["a"] } }).result;
    const other = { before: ["c"] } as const;
    expect(await resume(line, { store, thread: "t", breakpoints: other }).result).toMatchObject(
      paused({ before: ["c"] }),
    );
    await run(line, { store, thread: "u", breakpoints }).result;
    expect((await resume(line, { store, thread: "u", breakpoints: {} }).result).status).toBe("done");
  });

  test("a recovered run and a queued run keep their breakpoints [FX41]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const door = gate();
    const slow = defineGraph({ name: "slow", state: Log })
      .nodes({ wait: async () => void (await door.passed), last: () => ({ log: ["last"] }) })
      .edges({ [START]: "wait", wait: "last", last: END });
    ignoreResult(run(slow, { store, world, thread: "t", breakpoints: { before: ["last"] } }).result);
    await world.waitUntilIdle();
    store.crash();
    door.open(undefined);
    const peer = store.peer();
    const [recovered] = await recover({ store: peer, graphs: [slow], world });
    expect(await recovered?.result).toMatchObject(paused({ before: ["last"] }));
    const queued = await run(slow, {
      store: peer,
      world,
      thread: "t",
      onBusy: "enqueue",
      breakpoints: { before: ["last"] },
    }).result;
    expect(queued.status).toBe("queued");
    await resume(slow, { store: peer, world, thread: "t" }).result;
    await world.waitUntilIdle();
    expect((await peer.runs({ thread: "t" })).map(({ id, status }) => [id === queued.run, status])).toEqual([
      [true, "paused"],
      [false, "done"],
    ]);
  });
});

describe("breakpoints in bodies", () => {
  test("a breakpoint in a body pauses the run once, keeps recorded steps, and needs no declared interrupt [FX41]", async () => {
    const store = memoryStore();
    const steps: string[] = [];
    const graph = defineGraph({ name: "dynamic", state: Log })
      .nodes({
        work: async (_state, { step, breakpoint }) => {
          await step("first", () => void steps.push("first"));
          await breakpoint("between");
          await step("second", () => void steps.push("second"));
          await breakpoint("end");
          return { log: ["worked"] };
        },
        beside: () => ({ log: ["beside"] }),
      })
      .edges({ [START]: ["work", "beside"], work: END, beside: END });
    const first = await run(graph, { store, thread: "t" }).result;
    expect(first).toMatchObject(paused({ node: "work", key: "between" }));
    expect(steps).toEqual(["first"]);
    expect(await resume(graph, { store: store.peer(), thread: "t" }).result).toMatchObject(
      paused({ node: "work", key: "end" }),
    );
    const end = await resume(graph, { store, thread: "t" }).result;
    expect([end.status, end.state.log, steps]).toEqual(["done", ["worked", "beside"], ["first", "second"]]);
    // The next run stops again.
    expect((await run(graph, { store, thread: "t" }).result).status).toBe("paused");
  });

  test("a breakpoint in the body of a subgraph pauses the whole run, once [FX41]", async () => {
    const store = memoryStore();
    const inner = defineGraph({ name: "inner", state: Log })
      .nodes({
        deep: async (_state, { breakpoint }) => {
          await breakpoint("deep");
          return { log: ["deep"] };
        },
      })
      .edges({ [START]: "deep", deep: END });
    const graph = defineGraph({ name: "outer", state: Log })
      .nodes({ sub: subgraph(inner, { input: () => ({ log: [] }), output: ({ log }) => ({ log }) }) })
      .edges({ [START]: "sub", sub: END });
    expect(await run(graph, { store, thread: "t" }).result).toMatchObject(paused({ node: "deep", key: "deep" }));
    expect((await resume(graph, { store, thread: "t" }).result).state.log).toEqual(["deep"]);
  });

  test("a breakpoint in a body without a store, and in the body of a once node, is refused [FX41]", async () => {
    const graph = defineGraph({ name: "bare", state: Log })
      .nodes({ work: async (_state, { breakpoint }) => breakpoint("here") })
      .edges({ [START]: "work", work: END });
    expect((await getFailure(run(graph, {}).result, "missing_store")).message).toContain('breakpoint "here"');
    const once = defineGraph({ name: "once", state: Log })
      .nodes({ work: { effect: "once", run: async (_state, { breakpoint }) => breakpoint("here") } })
      .edges({ [START]: "work", work: END });
    await getFailure(run(once, { store: memoryStore(), thread: "t" }).result, "invalid_option");
  });
});
