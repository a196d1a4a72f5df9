/** Drain stops a run at the next saved boundary, and another process continues. */
import { expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  durableMachine,
  END,
  goto,
  memoryStore,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

function gated() {
  const started = createDeferred();
  const goOn = createDeferred();
  const entered: string[] = [];
  const graph = defineGraph({ name: "gated", state: Log })
    .nodes({
      slow: async () => {
        entered.push("slow");
        started.resolve();
        await goOn.promise;
        return { log: ["slow"] };
      },
      beside: () => {
        entered.push("beside");
        return { log: ["beside"] };
      },
      next: () => {
        entered.push("next");
        return { log: ["next"] };
      },
    })
    .edges({ [START]: ["slow", "beside"], slow: "next", beside: END, next: END });
  return { graph, started: started.promise, goOn: goOn.resolve, entered };
}

test("a drain completes and saves the current superstep, starts no other, and a resume continues from there [E38]", async () => {
  const { graph, started, goOn, entered } = gated();
  const store = memoryStore();
  const handle = run(graph, { store, thread: "t" });
  const events = collectEvents(handle);
  await started;
  handle.drain("SIGTERM");
  handle.drain("SIGTERM again");
  goOn();
  const paused = await handle.result;
  expect(paused).toMatchObject({ status: "paused", cause: { code: "drained" }, state: { log: ["slow", "beside"] } });
  expect(paused.status === "paused" && paused.cause.message).toContain("SIGTERM");
  expect(entered).toEqual(["slow", "beside"]);
  expect(events.at(-1)?.type).toBe("run.paused");
  expect(getOnlyEvent(events, "step.committed").at(-1)?.next).toEqual(["next"]);
  expect((await store.thread("t"))?.status).toBe("paused");
  const { status, state } = await resume(graph, { store: store.peer(), thread: "t" }).result;
  expect(status).toBe("done");
  expect(state.log).toEqual(["slow", "beside", "next"]);
  expect(entered).toEqual(["slow", "beside", "next"]);
});

test("a drain does not change the result of a run that ends, fails or waits in that superstep [E38]", async () => {
  const graph = defineGraph({ name: "ends", state: Log, interrupts: { ok: z.boolean() } })
    .nodes({
      look: async (state, { interrupt }) => {
        if (state.log.includes("fail")) throw new Error("no");
        if (state.log.includes("ask")) await interrupt("ok");
      },
    })
    .edges({ [START]: "look", look: END });
  const runAndDrain = (log: string[]) => {
    const handle = run(graph, { store: memoryStore(), thread: "t", input: { log } });
    handle.on(({ type }) => {
      if (type === "task.started") handle.drain();
    });
    return handle.result;
  };
  expect((await runAndDrain([])).status).toBe("done");
  expect((await runAndDrain(["ask"])).status).toBe("waiting");
  await getFailure(runAndDrain(["fail"]), "node_failed");
});

test("a run drained before its start keeps its input, and a cancel overrides a drain [E38]", async () => {
  const loop = defineGraph({ name: "loop", state: Log })
    .nodes({ turn: (state) => (state.log.length < 3 ? goto("turn", { log: ["x"] }) : goto(END)) })
    .edges({ [START]: "turn", turn: commandTargets("turn", END) });
  const store = memoryStore();
  const early = run(loop, { store, thread: "t", input: { log: ["a"] } });
  early.drain();
  expect(await early.result).toMatchObject({ status: "paused", state: { log: ["a"] } });
  expect((await resume(loop, { store, thread: "t" }).result).state.log).toEqual(["a", "x", "x"]);
  const both = run(loop, { store, thread: "both" });
  both.drain();
  both.cancel("enough");
  expect(await both.result).toMatchObject({ status: "cancelled", reason: "enough" });
});

test("a drain of a durable machine waits for its active promises and keeps their results [E38]", async () => {
  const goOn = createDeferred<string>();
  const started: string[] = [];
  const machine = setup({
    actors: {
      first: fromPromise<string>(async () => {
        started.push("first");
        return goOn.promise;
      }),
      second: fromPromise<string>(async () => {
        started.push("second");
        return "done";
      }),
    },
  }).createMachine({
    id: "drained",
    initial: "one",
    states: {
      one: { invoke: { id: "first", src: "first", onDone: "two" }, after: { 60000: "late" } },
      two: { invoke: { id: "second", src: "second", onDone: "end" } },
      late: {},
      end: { type: "final" },
    },
  });
  const graph = durableMachine(machine, { version: 1 });
  const store = memoryStore();
  const world = createVirtualWorld();
  const handle = run(graph, { store, thread: "t", world });
  await world.waitUntilIdle();
  handle.drain();
  await world.waitUntilIdle();
  goOn.resolve("x");
  expect(await handle.result).toMatchObject({ status: "paused", cause: { code: "drained" }, state: { value: "one" } });
  expect(world.timers).toBe(0);
  const rest = resume(graph, { store, thread: "t", world });
  expect((await rest.result).state.value).toBe("end");
  expect(started).toEqual(["first", "second"]);
});
