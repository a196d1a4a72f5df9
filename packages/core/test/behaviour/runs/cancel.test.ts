import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  memoryStore,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import { collectEvents, createDeferred, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

describe("cancel", () => {
  test("a cancel fires signals, starts no further effect, keeps completed results and leaves the thread usable [E37]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const hold = createDeferred();
    const graph = defineGraph({ name: "work", state: Log })
      .nodes({
        first: () => ({ log: ["first"] }),
        each: inputNode(z.string(), async (_state, { input, signal, step }) => {
          ran.push(input);
          if (input === "quick") return { log: ["quick"] };
          signal.addEventListener("abort", () => ran.push(`${input} aborted: ${String(signal.reason.message)}`));
          await hold.promise;
          await step("late", () => ran.push("a step after the cancel"));
          return undefined;
        }),
        last: () => ({ log: ["last"] }),
      })
      .edges({ [START]: "first", first: fanOut("each", () => ["quick", "slow", "queued"]), each: "last", last: END });
    const handle = run(graph, { world, store, thread: "t", maxConcurrency: 2 });
    const events = collectEvents(handle);
    await world.waitUntilIdle();
    handle.cancel("enough");
    handle.cancel("a second cancel changes nothing");
    // "quick" released its slot to "queued" before the cancel.
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "enough", state: { log: ["first"] } });
    hold.resolve();
    await world.waitUntilIdle();
    expect(ran).toEqual(["quick", "slow", "queued", "slow aborted: enough", "queued aborted: enough"]);
    expect(events.at(-1)).toMatchObject({ type: "run.cancelled", reason: "enough" });
    expect(world.timers).toBe(0);
    expect((await store.thread("t"))?.status).toBe("cancelled");

    ran.length = 0;
    const again = await resume(graph, { world, store, thread: "t" }).result;
    expect(again).toMatchObject({ status: "done", state: { log: ["first", "quick", "last"] } });
    expect(ran).not.toContain("quick");
    expect((await run(graph, { world, store, thread: "t" }).result).status).toBe("done");
  });

  test("a cancel between two supersteps keeps the first and starts no task of the second [E37]", async () => {
    const ran: string[] = [];
    const controller = new AbortController();
    const graph = defineGraph({ name: "line", state: Log })
      .nodes({ a: () => ({ log: ["a"] }), b: () => void ran.push("b") })
      .edges({ [START]: "a", a: "b", b: END });
    const handle = run(graph, { store: memoryStore(), thread: "t", signal: controller.signal });
    handle.on((event) => {
      if (event.type === "step.committed" && event.nodes.includes("a")) controller.abort(new Error("stop"));
    });
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "stop", state: { log: ["a"] } });
    expect(ran).toEqual([]);
  });

  test("a cancel that races with completion has one outcome, reported alike by result, events and store [E37]", async () => {
    for (let turns = 0; turns < 30; turns++) {
      const store = memoryStore();
      const graph = defineGraph({ name: "race", state: Log })
        .nodes({ a: async () => ({ log: ["a"] }) })
        .edges({ [START]: "a", a: END });
      const handle = run(graph, { store, thread: "t" });
      const events = collectEvents(handle);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      handle.cancel();
      const { status, state } = await handle.result;
      expect((await store.thread("t"))?.status).toBe(status);
      expect(
        events.filter(({ type }) => type === "run.completed" || type === "run.cancelled").map(({ type }) => type),
      ).toEqual([status === "done" ? "run.completed" : "run.cancelled"]);
      expect(state.log).toEqual(status === "done" ? ["a"] : []);
    }
  });

  test("a task that completed at the moment of the cancel is kept", async () => {
    const graph = defineGraph({ name: "moment", state: Log })
      .nodes({ a: () => ({ log: ["a"] }), b: () => ({ log: ["b"] }) })
      .edges({ [START]: "a", a: "b", b: END });
    const handle = run(graph, {});
    handle.on((event) => {
      if (event.type === "task.completed") handle.cancel();
    });
    expect(await handle.result).toMatchObject({ status: "cancelled", state: { log: ["a"] } });
  });

  test("a run whose signal was aborted before its start runs no node", async () => {
    const ran: string[] = [];
    const graph = defineGraph({ name: "late", state: Log })
      .nodes({ a: () => void ran.push("a") })
      .edges({ [START]: "a", a: END });
    expect(await run(graph, { signal: AbortSignal.abort(new Error("never")) }).result).toMatchObject({
      status: "cancelled",
      reason: "never",
    });
    expect(ran).toEqual([]);
  });

  test("a cancel ends the retry delay at once", async () => {
    const world = createVirtualWorld();
    const graph = defineGraph({ name: "retrying", state: Log })
      .nodes({
        a: {
          run: () => {
            throw new Error("no");
          },
          retry: { attempts: 9, initialMs: 60_000 },
        },
      })
      .edges({ [START]: "a", a: END });
    const handle = run(graph, { world });
    const events = collectEvents(handle);
    await world.waitUntilIdle();
    expect(world.timers).toBe(1);
    handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    expect(world.timers).toBe(0);
    expect(getOnlyEvent(events, "task.retried")).toHaveLength(1);
  });

  test("a `once` effect whose start is being written during a cancel does not start, and a resume runs it", async () => {
    const ran: string[] = [];
    const graph = defineGraph({ name: "pay", state: Log })
      .nodes({
        a: async (_state, { step }) => ({
          log: [
            await step(
              "pay",
              () => {
                ran.push("paid");
                return "paid";
              },
              { effect: "once" },
            ),
          ],
        }),
      })
      .edges({ [START]: "a", a: END });
    const inner = memoryStore();
    let onStart = (): void => undefined;
    const store: Store = {
      ...inner,
      commit: (commit, onCommitted) => {
        if (commit.effects?.some(({ state }) => state === "started")) onStart();
        inner.commit(commit, onCommitted);
      },
    };
    const handle = run(graph, { store, thread: "t" });
    onStart = () => handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
    expect(ran).toEqual([]);
    onStart = () => undefined;
    expect((await resume(graph, { store, thread: "t" }).result).state.log).toEqual(["paid"]);
    expect(ran).toEqual(["paid"]);
  });

  test("an abandoned body emits no event after the end of its run", async () => {
    const world = createVirtualWorld();
    const hold = createDeferred();
    const graph = defineGraph({ name: "late", state: Log })
      .nodes({
        a: async (_state, { progress }) => {
          await hold.promise;
          progress("still here");
        },
      })
      .edges({ [START]: "a", a: END });
    const handle = run(graph, { world });
    const events = collectEvents(handle);
    await world.waitUntilIdle();
    handle.cancel();
    await handle.result;
    hold.resolve();
    await world.waitUntilIdle();
    expect(events.at(-1)?.type).toBe("run.cancelled");
  });
});
