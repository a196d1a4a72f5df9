/** A store without room: effects whose end is known in the living process are never in doubt. */
import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  type Graph,
  memoryStore,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
  toolNode,
} from "../../../src/index.ts";
import { createDeferred } from "../../support/failure.ts";
import { call, user } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Creates a store that refuses every commit but releases from the given commit on, until there is room. */
function createCrowdedStore(refuseFrom: number) {
  const inner = memoryStore();
  const state = { commits: 0, refuseFrom, hasRoom: false };
  const store: Store = {
    ...inner,
    commit: (commit, onCommitted) => {
      state.commits += 1;
      const hasOutcome = (commit.effects ?? []).some(({ outcome }) => outcome !== undefined);
      const isRelease = commit.release === true && commit.checkpoint === undefined && !hasOutcome;
      if (state.hasRoom || isRelease || state.commits < state.refuseFrom) return inner.commit(commit, onCommitted);
      queueMicrotask(() => onCommitted(new StatewrightError("store_full", { what: "no room", next: "Make room" })));
    },
  };
  return { store, state };
}

async function hop(times: number): Promise<void> {
  for (let time = 0; time < times; time++) await new Promise<void>((resolve) => setImmediate(resolve));
}

const Log = defineState({ log: channel.list(z.string()) });
const Chat = defineState({ messages: channel.messages() });

/** Graphs with three concurrent `once` effects; `hops` are the turns of the event loop that each effect takes. */
const makers: Readonly<Record<string, (effects: string[], hops: readonly number[]) => Graph>> = {
  "tool calls": (effects, hops) => {
    const tools = hops.map((turns, index) =>
      defineTool({
        name: `pay${index}`,
        description: "pays",
        input: z.object({}),
        effect: "once",
        run: async () => {
          await hop(turns);
          effects.push(`pay${index}`);
          return "paid";
        },
      }),
    );
    const calls = tools.map((_, index) => call(`pay${index}`));
    return defineGraph({ name: "calls", state: Chat })
      .nodes({
        model: () => ({ messages: [{ role: "assistant", id: "a1", content: calls, finish: "calls" } as const] }),
        tools: toolNode({ tools }),
      })
      .edges({ [START]: "model", model: "tools", tools: END }) as Graph;
  },
  steps: (effects, hops) => {
    const createNode =
      (index: number, turns: number) =>
      async (
        _state: unknown,
        { step }: { step: <V>(k: string, f: () => Promise<V>, o: { effect: "once" }) => Promise<V> },
      ) => {
        await step(
          "pay",
          async () => {
            await hop(turns);
            effects.push(`pay${index}`);
            return index;
          },
          { effect: "once" },
        );
        return { log: [`pay${index}`] };
      };
    return defineGraph({ name: "steps", state: Log })
      .nodes({
        plan: () => undefined,
        pay0: createNode(0, hops[0] ?? 0),
        pay1: createNode(1, hops[1] ?? 0),
        pay2: createNode(2, hops[2] ?? 0),
      })
      .edges({ [START]: "plan", plan: ["pay0", "pay1", "pay2"], pay0: END, pay1: END, pay2: END }) as Graph;
  },
  "once nodes": (effects, hops) => {
    const createNode = (index: number, turns: number) => ({
      effect: "once" as const,
      run: async () => {
        await hop(turns);
        effects.push(`pay${index}`);
        return { log: [`pay${index}`] };
      },
    });
    return defineGraph({ name: "nodes", state: Log })
      .nodes({
        plan: () => undefined,
        pay0: createNode(0, hops[0] ?? 0),
        pay1: createNode(1, hops[1] ?? 0),
        pay2: createNode(2, hops[2] ?? 0),
      })
      .edges({ [START]: "plan", plan: ["pay0", "pay1", "pay2"], pay0: END, pay1: END, pay2: END }) as Graph;
  },
  promises: (effects, hops) => {
    const createPayment = (index: number) =>
      fromPromise(async () => {
        await hop(hops[index] ?? 0);
        effects.push(`pay${index}`);
        return index;
      });
    const actors = { pay0: createPayment(0), pay1: createPayment(1), pay2: createPayment(2) };
    const paid = { type: "final" } as const;
    const machine = setup({ actors }).createMachine({
      id: "machine",
      initial: "pay",
      states: {
        pay: {
          type: "parallel",
          states: {
            a: { initial: "paying", states: { paying: { invoke: { src: "pay0", onDone: "paid" } }, paid } },
            b: { initial: "paying", states: { paying: { invoke: { src: "pay1", onDone: "paid" } }, paid } },
            c: { initial: "paying", states: { paying: { invoke: { src: "pay2", onDone: "paid" } }, paid } },
          },
          onDone: "end",
        },
        end: { type: "final" },
      },
    });
    return durableMachine(machine, { version: 1, effects: { pay0: "once", pay1: "once", pay2: "once" } }) as Graph;
  },
};

describe("a store without room", () => {
  for (const [name, make] of Object.entries(makers))
    test(`concurrent once effects that ended well or never began are not in doubt after the store had no room: ${name} [FX65]`, async () => {
      const ends: string[] = [];
      for (let refuseFrom = 2; refuseFrom <= 9; refuseFrom++)
        for (const hops of [
          [0, 0, 0],
          [0, 3, 1],
          [4, 0, 2],
          [1, 1, 6],
        ]) {
          const effects: string[] = [];
          const graph = make(effects, hops);
          const { store, state } = createCrowdedStore(refuseFrom);
          const input = name === "tool calls" ? { messages: [user("go")] } : {};
          const first = await run(graph, { store, thread: "t", input } as never).result;
          state.hasRoom = true;
          const label = `${name}, refused from commit ${refuseFrom}, turns ${hops.join(" ")}`;
          const result = first.status === "done" ? first : await resume(graph, { store, thread: "t" }).result;
          ends.push(first.status);
          expect(result.status, label).toBe("done");
          expect(effects.toSorted(), label).toEqual(["pay0", "pay1", "pay2"]);
        }
      expect(ends).toContain("paused");
    });

  test("a once tool that does not end is aborted 30 s after its store had no room, and is in doubt [FX65]", async () => {
    const world = createVirtualWorld();
    const hold = createDeferred();
    const aborts: string[] = [];
    const tool = (name: string, work: (signal: AbortSignal) => Promise<string>) =>
      defineTool({
        name,
        description: name,
        input: z.object({}),
        effect: "once",
        graceMs: 0,
        run: (_args, { signal }) => work(signal),
      });
    const graph = defineGraph({ name: "calls", state: Chat })
      .nodes({
        model: () => ({
          messages: [{ role: "assistant", id: "a1", content: [call("quick"), call("slow")], finish: "calls" } as const],
        }),
        tools: toolNode({
          tools: [
            tool("quick", async () => {
              await hold.promise;
              return "done";
            }),
            tool("slow", (signal) => {
              signal.addEventListener("abort", () => aborts.push("slow"));
              return new Promise<never>(() => undefined);
            }),
          ],
        }),
      })
      .edges({ [START]: "model", model: "tools", tools: END });
    const { store, state } = createCrowdedStore(Number.POSITIVE_INFINITY);
    const first = run(graph, { store, world, thread: "t", input: { messages: [user("go")] } });
    await world.waitUntilIdle();
    state.refuseFrom = 0;
    hold.resolve();
    await world.waitUntilIdle();
    expect(aborts).toEqual([]);
    await world.advance(30_000);
    expect((await first.result).status).toBe("paused");
    expect(aborts).toEqual(["slow"]);
    expect(world.timers).toBe(0);
    state.hasRoom = true;
    const again = await resume(graph, { store, world, thread: "t" }).result;
    expect(again).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt", payload: { tool: "slow" } }] });
  });
});
