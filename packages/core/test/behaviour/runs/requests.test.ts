import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  cancelRun,
  channel,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  engine,
  getState,
  type MemoryStore,
  memoryStore,
  pauseRun,
  recover,
  resume,
  run,
  START,
  type Store,
  submit,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { createDeferred } from "../../support/failure.ts";
import { call, createToolLoop, listToolAnswers } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Creates a graph of two nodes; the first waits until it is released or its signal aborts. */
function createSlowGraph(ran: string[] = []) {
  const hold = createDeferred();
  const graph = defineGraph({ name: "slow", state: Log })
    .nodes({
      first: async (_, { signal }) => {
        ran.push("first");
        await new Promise<void>((resolve, reject) => {
          void hold.promise.then(resolve);
          signal.addEventListener("abort", () => reject(signal.reason as Error));
        });
        return { log: ["first"] };
      },
      second: () => {
        ran.push("second");
        return { log: ["second"] };
      },
    })
    .edges({ [START]: "first", first: "second", second: END });
  return { graph, hold, ran };
}

/** Creates a graph that asks a question. */
function createAskingGraph() {
  return defineGraph({ name: "asks", state: Log, interrupts: { ok: { payload: z.string(), answer: z.boolean() } } })
    .nodes({
      ask: async (_, { interrupt }) => ({ log: [(await interrupt("ok", { payload: "may I?" })) ? "yes" : "no"] }),
    })
    .edges({ [START]: "ask", ask: END });
}

/** Returns a store without hints: requests are found at the next commit. */
function withoutHints(store: Store): Store {
  const { watch: _, ...rest } = store;
  return rest;
}

const getStatus = async (store: Store, thread = "t"): Promise<string | undefined> =>
  (await store.thread(thread))?.status;

describe("cancelRun of a run at work", () => {
  test("a cancel from another process fires the signals at once, keeps finished tool results and ends the run [PK11, SE5]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const aborted: string[] = [];
    const quick = defineTool({ name: "quick", description: "Quick.", input: z.object({}), run: () => "found" });
    const slow = defineTool({
      name: "slow",
      description: "Slow.",
      input: z.object({}),
      run: (_, { signal }) =>
        new Promise<string>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            aborted.push("slow");
            reject(signal.reason as Error);
          });
        }),
    });
    const loop = createToolLoop({
      tools: [quick, slow],
      world,
      store: { ...mine, local: false },
      turns: [[call("quick", {}, "q"), call("slow", {}, "s")], ["ok"]],
    });
    const handle = loop.start();
    await world.advance(10);
    const outcome = await cancelRun(mine.peer(), { thread: "t", by: "ann", world });
    expect(outcome).toMatchObject({ status: "requested", run: handle.id, runStatus: "running" });
    expect(outcome.request).toMatchObject({ kind: "cancel", by: "ann", run: handle.id });
    await world.waitUntilIdle();
    expect(aborted).toHaveLength(1);
    const result = await handle.result;
    expect(result).toMatchObject({ status: "cancelled", reason: "the run was cancelled by ann" });
    expect(listToolAnswers(result).map(({ isError }) => isError)).toEqual([false, true]);
    expect(await mine.requests("t")).toEqual([]);
    expect(world.timers).toBe(0);
    expect(loop.events.filter(({ type }) => type === "run.cancelled")).toHaveLength(1);
  });

  test("a cancel whose hint is lost ends the run at its next commit [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, hold, ran } = createSlowGraph();
    const handle = run(graph, { store: withoutHints(mine), thread: "t", world });
    await world.waitUntilIdle();
    await cancelRun(mine.peer(), { thread: "t", reason: "enough", world });
    await world.waitUntilIdle();
    expect(await getStatus(mine), "in the first node").toBe("running");
    hold.resolve();
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "enough" });
    expect(ran).toEqual(["first"]);
    expect(await mine.requests("t")).toEqual([]);
  });

  test("a cancel in the same process ends a run that its first commit has not saved, and a run of another branch [PK11, SE5]", async () => {
    const world = createVirtualWorld();
    const { graph } = createSlowGraph();
    const inner = memoryStore();
    const saved = createDeferred();
    const store: Store = {
      ...inner,
      commit: (commit, onCommitted) => void saved.promise.then(() => inner.commit(commit, onCommitted)),
      request: async (write) => {
        if ((await inner.thread("t"))?.status === undefined) throw await inner.request(write).catch((error) => error);
        return await inner.request(write);
      },
    };
    const handle = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    expect(await cancelRun(store, { thread: "t", reason: "at once", world })).toMatchObject({ status: "requested" });
    saved.resolve();
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "at once" });
  });

  test("the first request counts: a second cancel and a pause after it change nothing [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph } = createSlowGraph();
    const handle = run(graph, { store: { ...withoutHints(mine), local: false }, thread: "t", world });
    await world.waitUntilIdle();
    const first = await cancelRun(mine.peer(), { thread: "t", reason: "first", world });
    const second = await cancelRun(mine.peer(), { thread: "t", reason: "second", world });
    const pause = await pauseRun(mine.peer(), { thread: "t", world });
    expect([second.request, pause.request]).toEqual([first.request, first.request]);
    handle.steer("wake").catch(() => undefined);
    handle.cancel("local");
    expect(await handle.result).toMatchObject({ status: "cancelled" });
    expect(await cancelRun(mine, { thread: "t", run: handle.id, world })).toMatchObject({
      status: "unchanged",
      runStatus: "cancelled",
    });
  });

  test("a queued input with onBusy cancel from another process fires the signals of the run at once [FX9, PK12]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, ran, hold } = createSlowGraph();
    const handle = run(graph, { store: { ...mine, local: false }, thread: "t", world });
    await world.waitUntilIdle();
    await submit(graph, { store: mine.peer(), thread: "t", onBusy: "cancel", world });
    await world.waitUntilIdle();
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "interrupted by a new input" });
    expect(ran[0]).toBe("first");
    hold.resolve();
  });
});

describe("cancelRun of a run at rest", () => {
  test("a waiting run is cancelled at once without its graph, its interrupt closes, and the thread takes a new input [PK11, SE5]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const graph = createAskingGraph();
    const waiting = await run(graph, { store: mine, thread: "t", world }).result;
    expect(waiting.status).toBe("waiting");
    const outcome = await cancelRun(mine.peer(), { thread: "t", reason: "too late", by: "ann", world });
    expect(outcome).toMatchObject({ status: "cancelled", runStatus: "cancelled", run: waiting.run });
    expect((await listRuns(mine, { thread: "t" }))[0]).toMatchObject({ status: "cancelled", reason: "too late" });
    expect(await mine.openInterrupts()).toEqual([]);
    expect(await mine.timers()).toEqual([]);
    expect(await mine.requests("t")).toEqual([]);
    const events = await mine.events("t", { after: 0, limit: 100 });
    expect(JSON.stringify(events.at(-1))).toContain("run.cancelled");
    expect((await run(graph, { store: mine, thread: "t", world }).result).status).toBe("waiting");
    expect((await mine.claim({ thread: "t", graph: "asks", version: 1, shape: "x", at: 1 })).writtenBy.shape).not.toBe(
      "",
    );
  });

  test("tool calls that wait for an approval are answered by the next input after a cancel [PK11]", async () => {
    const mine = memoryStore();
    const pay = defineTool({
      name: "pay",
      description: "Pay.",
      input: z.object({}),
      execution: { needsApproval: () => "it costs money" },
      run: () => "paid",
    });
    const loop = createToolLoop({ tools: [pay], store: mine, turns: [[call("pay", {}, "p")], ["ok"]] });
    expect((await loop.start().result).status).toBe("waiting");
    expect(await cancelRun(mine, { thread: "t" })).toMatchObject({ status: "cancelled" });
    const next = await loop.start({ role: "user", id: "u2", content: [{ type: "text", text: "again" }] }).result;
    expect(next.status).toBe("done");
    expect(listToolAnswers(next).map(({ isError }) => isError)).toEqual([true]);
  });

  test("failed, paused and crashed runs are cancelled at once, and the next queued run starts [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const failing = defineGraph({ name: "fails", state: Log })
      .nodes({
        a: () => {
          throw new Error("broken");
        },
      })
      .edges({ [START]: "a", a: END });
    await expect(run(failing, { store: mine, thread: "failed", world }).result).rejects.toThrow("broken");
    const { graph, ran } = createSlowGraph();
    const dying = mine.peer();
    run(graph, { store: dying, thread: "crashed", world });
    await world.waitUntilIdle();
    dying.crash();
    for (const thread of ["failed", "crashed"]) {
      expect(await cancelRun(mine, { thread, world }), thread).toMatchObject({ status: "cancelled" });
      expect(await getStatus(mine, thread), thread).toBe("cancelled");
    }
    expect(ran).toEqual(["first"]);
  });

  test("a cancel of a finished run changes nothing and tells its status [PK11]", async () => {
    const mine = memoryStore();
    const graph = defineGraph({ name: "one", state: Log })
      .nodes({ a: () => ({ log: ["a"] }) })
      .edges({ [START]: "a", a: END });
    const { run: id } = await run(graph, { store: mine, thread: "t" }).result;
    expect(await cancelRun(mine, { thread: "t" })).toEqual({
      ...{ thread: "t", branch: "main", run: id, status: "unchanged", runStatus: "done" },
    });
    expect(await mine.requests("t")).toEqual([]);
  });

  test("a cancel with a known key does not reach the next run of the thread [PK11]", async () => {
    const mine = memoryStore();
    const graph = createAskingGraph();
    const first = await run(graph, { store: mine, thread: "t" }).result;
    expect(await cancelRun(mine, { thread: "t", key: "click-1" })).toMatchObject({ status: "cancelled" });
    const second = await run(graph, { store: mine, thread: "t" }).result;
    const again = await cancelRun(mine, { thread: "t", key: "click-1" });
    expect(again).toMatchObject({ status: "unchanged", run: first.run, runStatus: "cancelled" });
    expect(await getStatus(mine)).toBe("waiting");
    expect(second.run).not.toBe(first.run);
  });

  test("a run whose owner died with a request is ended by an engine that does not have its graph [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, ran } = createSlowGraph();
    const dying = mine.peer();
    run(graph, { store: withoutHints(dying), thread: "t", world });
    await world.waitUntilIdle();
    await cancelRun(mine, { thread: "t", reason: "stop", world });
    dying.crash();
    const other = engine({ store: mine, graphs: [createAskingGraph()], world });
    await other.start();
    expect((await listRuns(mine, { thread: "t" }))[0]).toMatchObject({ status: "cancelled", reason: "stop" });
    expect(await mine.requests("t")).toEqual([]);
    expect(ran).toEqual(["first"]);
    await other.stop();
  });

  test("recover cancels a crashed run with a request and runs no node of it [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, ran } = createSlowGraph();
    const dying = mine.peer();
    run(graph, { store: withoutHints(dying), thread: "t", world });
    await world.waitUntilIdle();
    await cancelRun(mine, { thread: "t", world });
    dying.crash();
    expect(await recover({ store: mine, graphs: [graph], world })).toEqual([]);
    expect([await getStatus(mine), ran]).toEqual(["cancelled", ["first"]]);
  });

  test("a resume of a run with a request ends the run without running a node [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, ran } = createSlowGraph();
    const dying = mine.peer();
    run(graph, { store: withoutHints(dying), thread: "t", world });
    await world.waitUntilIdle();
    await cancelRun(mine, { thread: "t", reason: "stop", world });
    dying.crash();
    expect(await resume(graph, { store: mine, thread: "t", world }).result).toMatchObject({
      status: "cancelled",
      reason: "stop",
    });
    expect(ran).toEqual(["first"]);
  });
});

describe("cancelRun of a queued run", () => {
  test("a queued run leaves the queue at once, its caller gets the status cancelled, and the run behind it starts [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, hold } = createSlowGraph();
    const [first, second, third] = ["a", "b", "c"].map(() =>
      run(graph, { store: mine, thread: "t", onBusy: "enqueue", world }),
    );
    await world.waitUntilIdle();
    const outcome = await cancelRun(mine, { thread: "t", run: second?.id, reason: "not needed", world });
    expect(outcome).toMatchObject({ status: "cancelled", run: second?.id });
    expect(outcome.request).toBeUndefined();
    expect(await second?.result).toMatchObject({ status: "cancelled", reason: "not needed" });
    hold.resolve();
    expect((await first?.result)?.status).toBe("done");
    expect((await third?.result)?.status).toBe("done");
  });

  test("a run behind a cancelled waiting run can start at once [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const graph = createAskingGraph();
    await run(graph, { store: mine, thread: "t", world }).result;
    const next = run(graph, { store: mine, thread: "t", onBusy: "enqueue", world });
    expect((await next.result).status).toBe("queued");
    const host = engine({ store: mine, graphs: [graph], world, pollMs: 60_000 });
    await host.start();
    expect(await cancelRun(mine, { thread: "t", world })).toMatchObject({ status: "cancelled" });
    await world.waitUntilIdle();
    await world.waitUntilIdle();
    expect(await mine.run(next.id)).toMatchObject({ status: "waiting" });
    await host.stop();
  });
});

describe("pauseRun", () => {
  test("a run at work pauses at its next boundary, no engine continues it, and a resume does [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, hold, ran } = createSlowGraph();
    const handle = run(graph, { store: { ...mine, local: false }, thread: "t", world });
    await world.waitUntilIdle();
    expect(await pauseRun(mine.peer(), { thread: "t", reason: "a look", world })).toMatchObject({
      status: "requested",
    });
    await world.waitUntilIdle();
    expect(await getStatus(mine), "in the first node").toBe("running");
    hold.resolve();
    expect(await handle.result).toMatchObject({
      status: "paused",
      cause: { code: "drained" },
      state: { log: ["first"] },
    });
    expect(await mine.requests("t")).toEqual([]);
    const host = engine({ store: mine, graphs: [graph], world });
    await host.start();
    await world.advance(5_000);
    expect([await getStatus(mine), ran]).toEqual(["paused", ["first"]]);
    await host.stop();
    expect(await resume(graph, { store: mine, thread: "t", world }).result).toMatchObject({ status: "done" });
    expect(await pauseRun(mine, { thread: "t", world })).toMatchObject({ status: "unchanged", runStatus: "done" });
  });

  test("a crashed run is paused at once, and recover leaves it paused [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, ran } = createSlowGraph();
    const dying = mine.peer();
    run(graph, { store: dying, thread: "t", world });
    await world.waitUntilIdle();
    dying.crash();
    expect(await pauseRun(mine, { thread: "t", reason: "a look", world })).toMatchObject({ status: "paused" });
    expect(await recover({ store: mine, graphs: [graph], world })).toEqual([]);
    expect((await getState(graph, { store: mine, thread: "t" })).status).toBe("paused");
    expect(ran).toEqual(["first"]);
    expect(await pauseRun(mine, { thread: "t", world })).toMatchObject({ status: "unchanged", runStatus: "paused" });
  });

  test("a waiting run is paused with its interrupt open, and a resume with the answer continues it [PK11]", async () => {
    const mine = memoryStore();
    const graph = createAskingGraph();
    await run(graph, { store: mine, thread: "t" }).result;
    expect(await pauseRun(mine, { thread: "t" })).toMatchObject({ status: "paused" });
    expect(await mine.openInterrupts()).toHaveLength(1);
    expect(await resume(graph, { store: mine, thread: "t", answers: { ok: true } }).result).toMatchObject({
      status: "done",
      state: { log: ["yes"] },
    });
  });

  test("a queued run pauses before its first node [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, hold, ran } = createSlowGraph();
    const [first, second] = ["a", "b"].map(() => run(graph, { store: mine, thread: "t", onBusy: "enqueue", world }));
    await world.waitUntilIdle();
    expect(await pauseRun(mine, { thread: "t", run: second?.id, world })).toMatchObject({
      status: "requested",
      runStatus: "queued",
    });
    hold.resolve();
    await first?.result;
    expect(await second?.result).toMatchObject({ status: "paused" });
    expect(ran).toEqual(["first", "second"]);
    expect(await mine.requests("t")).toEqual([]);
  });

  test("a run paused until a time is continued by an engine at that time, at work and at rest [PK11, SE7]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const until = world.clock.now() + 60_000;
    const { graph, hold } = createSlowGraph();
    const handle = run(graph, { store: mine, thread: "work", world });
    const dying = mine.peer();
    run(graph, { store: dying, thread: "crashed", world });
    await world.waitUntilIdle();
    dying.crash();
    await pauseRun(mine, { thread: "work", until, world });
    await pauseRun(mine, { thread: "crashed", until, world });
    hold.resolve();
    expect((await handle.result).status).toBe("paused");
    const host = engine({ store: mine, graphs: [graph], world });
    await host.start();
    await world.advance(59_000);
    expect([await getStatus(mine, "work"), await getStatus(mine, "crashed")]).toEqual(["paused", "paused"]);
    await world.advance(2_000);
    expect([await getStatus(mine, "work"), await getStatus(mine, "crashed")]).toEqual(["done", "done"]);
    expect(await mine.timers()).toEqual([]);
    await host.stop();
  });

  test("a cancel of a run paused until a time removes its timer [PK11]", async () => {
    const mine = memoryStore();
    const graph = createAskingGraph();
    await run(graph, { store: mine, thread: "t" }).result;
    expect(await pauseRun(mine, { thread: "t", until: 9_000_000_000_000 })).toMatchObject({ status: "paused" });
    expect(await mine.timers()).toHaveLength(1);
    expect(await cancelRun(mine, { thread: "t" })).toMatchObject({ status: "cancelled" });
    expect(await mine.timers()).toEqual([]);
  });

  test("a cancel after a pause ends the paused run [PK11]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const { graph, hold } = createSlowGraph();
    const handle = run(graph, { store: { ...withoutHints(mine), local: false }, thread: "t", world });
    await world.waitUntilIdle();
    await pauseRun(mine.peer(), { thread: "t", world });
    await cancelRun(mine.peer(), { thread: "t", reason: "stop", world });
    hold.resolve();
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "stop" });
    expect(await mine.requests("t")).toEqual([]);
  });
});

describe("refused requests", () => {
  test("a request about a missing thread, branch or run, and an invalid option, are refused [PK11]", async () => {
    const mine = memoryStore();
    await expect(cancelRun(mine, { thread: "t" })).rejects.toMatchObject({ code: "unknown_thread" });
    await run(createAskingGraph(), { store: mine, thread: "t" }).result;
    await expect(cancelRun(mine, { thread: "t", run: "r9" })).rejects.toMatchObject({ code: "unknown_run" });
    await expect(pauseRun(mine, { thread: "t", branch: "b" })).rejects.toMatchObject({ code: "unknown_branch" });
    await expect(cancelRun(mine, { thread: "t", reason: "" })).rejects.toMatchObject({ code: "invalid_option" });
    await expect(cancelRun(mine, { thread: "a b" })).rejects.toMatchObject({ code: "invalid_id" });
    for (const until of [Number.NaN, 1e300])
      await expect(pauseRun(mine, { thread: "t", until })).rejects.toMatchObject({ code: "invalid_option" });
    const misspelled = { thread: "t", why: "x" };
    await expect(cancelRun(mine, misspelled)).rejects.toMatchObject({ code: "invalid_option" });
    expect(await getStatus(mine)).toBe("waiting");
  });
});

describe("reads of waiting inputs", () => {
  test("a conversation of many supersteps reads its inbox once at its end, and no other table for inputs [PK5]", async () => {
    const mine: MemoryStore = memoryStore();
    const reads: string[] = [];
    const record = <Value>(name: string, value: Value): Value => {
      reads.push(name);
      return value;
    };
    const store: Store = {
      ...mine,
      local: false,
      inbox: (thread, branch) => record("inbox", mine.inbox(thread, branch)),
      requests: (thread) => record("requests", mine.requests(thread)),
      countInputs: (threads) => record("countInputs", mine.countInputs(threads)),
      runs: (filter) => record("runs", mine.runs(filter)),
    };
    const tool = defineTool({ name: "look", description: "Look.", input: z.object({}), run: () => "seen" });
    const turns = Array.from({ length: 10 }, (_, nth) => [call("look", {}, `c${nth}`)]);
    const loop = createToolLoop({ tools: [tool], store, turns: [...turns, ["ok"]] });
    expect((await loop.start().result).status).toBe("done");
    expect(reads).toEqual(["inbox"]);
  });

  test("an engine starts a run of another process at once by a hint, before its next poll [PK12]", async () => {
    const mine = memoryStore();
    const world: VirtualWorld = createVirtualWorld();
    const graph = defineGraph({ name: "one", state: Log })
      .nodes({ a: () => ({ log: ["a"] }) })
      .edges({ [START]: "a", a: END });
    const host = engine({ store: mine, graphs: [graph], world, pollMs: 60_000 });
    await host.start();
    await submit(graph, { store: mine.peer(), thread: "t", world });
    await world.waitUntilIdle();
    await world.waitUntilIdle();
    expect(await getStatus(mine)).toBe("done");
    await host.stop();
    expect(world.timers).toBe(0);
  });
});

describe("a request for a durable machine", () => {
  const createPayment = (aborted: string[], release: Promise<string>) =>
    durableMachine(
      setup({
        actors: {
          charge: fromPromise<string>(({ signal }) => {
            signal.addEventListener("abort", () => void aborted.push("charge"));
            return release;
          }),
        },
      }).createMachine({
        id: "payment",
        initial: "charging",
        states: {
          charging: { invoke: { src: "charge", onDone: "resting" } },
          resting: { after: { 3600000: "over" } },
          over: { type: "final" },
        },
      }),
      { version: 1, effects: { charge: "idempotent" } },
    );

  test("a request for a durable machine from another process cancels it with the signal of its promise, or pauses it after its promise [PK11, SE5]", async () => {
    for (const [act, status] of [
      [cancelRun, "cancelled"],
      [pauseRun, "paused"],
    ] as const) {
      const mine = memoryStore();
      const world = createVirtualWorld();
      const aborted: string[] = [];
      const charged = createDeferred<string>();
      const payment = createPayment(aborted, charged.promise);
      const handle = run(payment, { store: { ...mine, local: false }, thread: "t", world });
      await world.waitUntilIdle();
      const outcome = await act(mine.peer(), { thread: "t", reason: "enough", world });
      expect(outcome).toMatchObject({ status: "requested", runStatus: "running" });
      await world.waitUntilIdle();
      expect(aborted).toEqual(status === "cancelled" ? ["charge"] : []);
      // A pause lets the promise end.
      if (status === "paused") charged.resolve("ok");
      expect(await handle.result).toMatchObject({ status });
      expect(await mine.requests("t")).toEqual([]);
      await world.advance(1_000);
      expect([await getStatus(mine), world.timers]).toEqual([status, 0]);
    }
  });

  test("a request for a durable machine whose hint is lost ends it at its next commit [PK11, SE5]", async () => {
    const mine = memoryStore();
    const world = createVirtualWorld();
    const charged = createDeferred<string>();
    const payment = createPayment([], charged.promise);
    const handle = run(payment, { store: { ...withoutHints(mine), local: false }, thread: "t", world });
    await world.waitUntilIdle();
    await cancelRun(mine.peer(), { thread: "t", reason: "enough", world });
    charged.resolve("ok");
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "enough" });
    expect(await mine.requests("t")).toEqual([]);
  });

  test("a request for a durable machine at rest ends it at once without its code, and its delay never fires [PK11, SE5]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    const payment = createPayment([], Promise.resolve("ok"));
    expect(await run(payment, { store, thread: "t", world }).result).toMatchObject({ status: "paused" });
    expect(await cancelRun(store.peer(), { thread: "t", reason: "enough", world })).toMatchObject({
      status: "cancelled",
    });
    expect(await store.timers({ thread: "t" })).toEqual([]);
    const host = engine({ store, graphs: [payment], world });
    await host.start();
    await world.advance(7_200_000);
    expect(await getStatus(store)).toBe("cancelled");
    await host.stop();
  });
});
