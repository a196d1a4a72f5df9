/** Replay from a checkpoint: repeated steps, repeated interrupts, and effects that are never repeated silently. */
import { type VirtualClock, virtualClock } from "@statewright/testing";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  fork,
  getHistory,
  getState,
  listInterrupts,
  resume,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
} from "statewright";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import { getFailure, ignoreResult, type Place, places } from "../../support/both-stores.ts";

const Log = defineState({ amount: z.number().default(5), log: channel.list(z.string()) });

/** External effects with their keys. */
interface World {
  readonly paid: string[];
  readonly keys: string[];
  /** While this is set, the payment never settles. */
  hang?: boolean;
}

async function pay(world: World, what: string, key: string): Promise<string> {
  world.paid.push(what);
  world.keys.push(key);
  if (world.hang === true) await new Promise(() => undefined);
  return `receipt ${world.paid.length}`;
}

/** Pays in a step, in a separate node. */
const stepping = (world: World) =>
  defineGraph({ name: "stepping", state: Log })
    .nodes({
      plan: () => ({ log: ["planned"] }),
      pay: async (state, { step }) => {
        const receipt = await step("charge", ({ idempotencyKey }) => pay(world, `${state.amount}`, idempotencyKey), {
          effect: "once",
        });
        return { log: [receipt] };
      },
    })
    .edges({ [START]: "plan", plan: "pay", pay: END });

/** Pays in a once node. */
const single = (world: World) =>
  defineGraph({ name: "single", state: Log })
    .nodes({
      plan: () => ({ log: ["planned"] }),
      pay: { run: async (state) => ({ log: [await pay(world, `${state.amount}`, "node")] }), effect: "once" },
    })
    .edges({ [START]: "plan", plan: "pay", pay: END });

/** Requests a model that gives its calls new ids each time, then pays with a tool. */
function calling(world: World, calls: () => readonly { readonly cents: number }[] = () => [{ cents: 5 }]) {
  let asked = 0;
  const tool = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    run: ({ cents }, { idempotencyKey }) => pay(world, `${cents}`, idempotencyKey),
  });
  return defineGraph({ name: "calling", state: defineState({ messages: channel.messages() }) })
    .nodes({
      model: () => {
        asked += 1;
        const content = calls().map((args, nth) => ({
          type: "call" as const,
          id: `c${asked}_${nth}`,
          name: "pay",
          args,
        }));
        return { messages: [{ role: "assistant" as const, id: `m${asked}`, finish: "calls" as const, content }] };
      },
      tools: toolNode({ tools: [tool] }),
    })
    .edges({ [START]: "model", model: "tools", tools: END });
}

const receipts = (state: { readonly messages: readonly { readonly role: string }[] }): readonly string[] =>
  state.messages.flatMap((message) =>
    message.role === "tool" ? [/receipt \d+|A person[^"]*|from the log/.exec(JSON.stringify(message))?.[0] ?? ""] : [],
  );

describe.each(places)("%s", (_name, open) => {
  let place: Place;
  let store: Store;
  let clock: VirtualClock;
  let world: World;

  beforeEach(() => {
    place = open();
    store = place.store;
    clock = virtualClock({ now: 1_000_000 });
    world = { paid: [], keys: [] };
  });
  afterEach(() => place.close());

  /** Returns the checkpoint whose next tasks are these nodes. */
  async function findCheckpointBefore(
    graph: Parameters<typeof getHistory>[0],
    node: string,
    thread = "t",
  ): Promise<number> {
    for await (const entry of getHistory(graph, { store, thread }))
      if (entry.next.some((next) => next === node)) return entry.checkpointId;
    throw new Error(`nothing leads to ${node}`);
  }

  describe("replay", () => {
    const two = () =>
      defineGraph({ name: "two", state: Log, interrupts: { first: z.string(), second: z.string() } })
        .nodes({
          begin: () => {
            world.paid.push("begin");
            return undefined;
          },
          one: async (_state, { interrupt }) => ({ log: [`one ${await interrupt("first")}`] }),
          between: () => {
            world.paid.push("between");
            return undefined;
          },
          other: async (_state, { interrupt }) => ({ log: [`other ${await interrupt("second")}`] }),
        })
        .edges({ [START]: "begin", begin: "one", one: "between", between: "other", other: END });

    async function finished(): Promise<void> {
      await run(two(), { store, thread: "t" }).result;
      await resume(two(), { store, thread: "t", answers: { first: "a" } }).result;
      await resume(two(), { store, thread: "t", answers: { second: "b" } }).result;
    }

    test("replay from a checkpoint repeats later steps and their interrupts [E44]", async () => {
      await finished();
      const branch = await fork(two(), {
        store,
        thread: "t",
        at: await findCheckpointBefore(two(), "one"),
        name: "again",
      });
      expect(await resume(two(), { store, thread: "t", branch }).result).toMatchObject({
        status: "waiting",
        interrupts: [{ key: "first" }],
      });
      await resume(two(), { store, thread: "t", branch, answers: { first: "c" } }).result;
      const end = await resume(two(), { store, thread: "t", branch, answers: { second: "d" } }).result;
      expect([end.status, end.state.log]).toEqual(["done", ["one c", "other d"]]);
      expect(world.paid).toEqual(["begin", "between", "between"]);
      expect((await getState(two(), { store, thread: "t" })).state.log).toEqual(["one a", "other b"]);
    });

    test("replay from a final checkpoint does nothing [E44]", async () => {
      await finished();
      const { checkpointId: at } = await getState(two(), { store, thread: "t" });
      const branch = await fork(two(), { store, thread: "t", at, name: "end" });
      const heads = await store.branches("t");
      const again = resume(two(), { store, thread: "t", branch });
      const nodes: string[] = [];
      again.on((event) => {
        if (event.type === "task.started") nodes.push(event.node);
      });
      const end = await again.result;
      expect([end.status, end.state.log, end.steps, nodes]).toEqual(["done", ["one a", "other b"], 0, []]);
      expect(await store.branches("t")).toEqual(heads);
      expect(world.paid).toEqual(["begin", "between"]);
    });

    test("a fork between two interrupts keeps the first answer [E44]", async () => {
      await finished();
      const branch = await fork(two(), {
        store,
        thread: "t",
        at: await findCheckpointBefore(two(), "other"),
        name: "between",
      });
      const asked = await resume(two(), { store, thread: "t", branch }).result;
      expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "second" }], state: { log: ["one a"] } });
      const end = await resume(two(), { store, thread: "t", branch, answers: { second: "e" } }).result;
      expect(end.state.log).toEqual(["one a", "other e"]);
    });

    test("a fork between two answers to one node or one superstep keeps the first answer [E44]", async () => {
      const chat = defineGraph({ name: "chat", state: Log, interrupts: { say: z.string(), beside: z.string() } })
        .nodes({
          talk: async (_state, { interrupt }) => ({ log: [await interrupt("say"), await interrupt("say")] }),
          beside: async (_state, { interrupt }) => ({ log: [await interrupt("beside")] }),
        })
        .edges({ [START]: ["talk", "beside"], talk: END, beside: END });
      await run(chat, { store, thread: "t" }).result;
      await resume(chat, { store, thread: "t", answers: { say: "a" } }).result;
      await resume(chat, { store, thread: "t", answers: { beside: "x" } }).result;
      const { checkpointId: at } = await getState(chat, { store, thread: "t" });
      const branch = await fork(chat, { store, thread: "t", at, name: "other" });
      expect(await resume(chat, { store, thread: "t", branch }).result).toMatchObject({
        status: "waiting",
        interrupts: [{ id: "other.0:0:say:2" }],
      });
      for (const [name, said] of [
        ["main", "b"],
        [branch, "c"],
      ] as const) {
        const answers = { say: said };
        const end = await resume(chat, { store, thread: "t", branch: name, answers }).result;
        expect([end.status, end.state.log]).toEqual(["done", ["a", said, "x"]]);
      }
    });
  });

  describe("once tool calls of other branches", () => {
    /** Pays on main, and forks from before the call or from before the model request. */
    async function forkThread(from: "tools" | "model" = "tools", graph = calling(world)) {
      const { state } = await run(graph, { store, thread: "t" }).result;
      expect(receipts(state)).toEqual(["receipt 1"]);
      const branch = await fork(graph, {
        store,
        thread: "t",
        at: await findCheckpointBefore(graph, from),
        name: "other",
      });
      return {
        graph,
        branch,
        again: (more: object = {}) => resume(graph, { store, thread: "t", branch, ...more }).result,
      };
    }

    test.each(["tools", "model"] as const)(
      "a once call made on another branch is not repeated silently: the interrupt shows its result, forked from before the %s [E44]",
      async (from) => {
        const { again } = await forkThread(from);
        for (let nth = 0; nth < 2; nth++)
          expect(await again()).toMatchObject({
            status: "waiting",
            interrupts: [
              {
                key: "in_doubt",
                payload: {
                  tool: "pay",
                  args: { cents: 5 },
                  alreadyOn: "main",
                  idempotencyKey: world.keys[0],
                  outcome: { isError: false },
                },
              },
            ],
          });
        expect(world.paid).toEqual(["5"]);
        const counted = await again({ answers: { in_doubt: { happened: true } } });
        expect([counted.status, receipts(counted.state as never), world.paid]).toEqual(["done", ["receipt 1"], ["5"]]);
      },
    );

    test("a once call made on another branch runs again under its own key when the answer rejects the prior result [E44]", async () => {
      const { again } = await forkThread();
      await again();
      const end = await again({ answers: { in_doubt: { happened: false } } });
      expect([end.status, receipts(end.state as never)]).toEqual(["done", ["receipt 2"]]);
      expect(new Set(world.keys).size).toBe(2);
      expect(world.keys[1]).toContain("/other/");
    });

    test("an answer may set the result of a once call made on another branch", async () => {
      const { again } = await forkThread();
      await again();
      const end = await again({ answers: { in_doubt: { happened: true, content: "from the log" } } });
      expect([receipts(end.state as never), world.paid]).toEqual([["from the log"], ["5"]]);
    });

    test.each([
      ["reuse", ["receipt 1"], ["5"]],
      ["repeat", ["receipt 2"], ["5", "5"]],
    ] as const)(
      "a once call made on another branch causes no interrupt under the policy %s [E44]",
      async (onPriorEffect, receipt, paid) => {
        for (const from of ["tools", "model"] as const) {
          world.paid.length = 0;
          store = from === "tools" ? store : place.peer();
          const thread = from;
          const graph = calling(world);
          await run(graph, { store, thread }).result;
          const branch = await fork(graph, {
            store,
            thread,
            at: await findCheckpointBefore(graph, from, thread),
            name: "other",
          });
          const end = await resume(graph, { store, thread, branch, onPriorEffect }).result;
          expect([end.status, receipts(end.state), world.paid]).toEqual(["done", receipt, paid]);
        }
      },
    );

    test("prior once calls are matched by arguments, and equal calls by their order", async () => {
      let calls = [{ cents: 5 }, { cents: 7 }, { cents: 5 }];
      const graph = calling(world, () => calls);
      await run(graph, { store, thread: "t" }).result;
      calls = [{ cents: 5 }, { cents: 9 }, { cents: 5 }, { cents: 5 }];
      const branch = await fork(graph, {
        store,
        thread: "t",
        at: await findCheckpointBefore(graph, "model"),
        name: "other",
      });
      const end = await resume(graph, { store, thread: "t", branch, onPriorEffect: "reuse" }).result;
      expect(receipts(end.state)).toEqual(["receipt 1", "receipt 4", "receipt 3", "receipt 5"]);
      expect(world.paid).toEqual(["5", "7", "5", "9", "5"]);
    });

    test("a once call only started on another branch interrupts under every policy except repeat [E44]", async () => {
      world.hang = true;
      const graph = calling(world);
      ignoreResult(run(graph, { store, thread: "t", world: clock }).result);
      await clock.waitUntilIdle();
      store = place.crash();
      world.hang = false;
      const branch = await fork(graph, {
        store,
        thread: "t",
        at: await findCheckpointBefore(graph, "tools"),
        name: "other",
      });
      for (const onPriorEffect of ["ask", "reuse"] as const) {
        const asked = await resume(graph, { store, thread: "t", branch, onPriorEffect }).result;
        expect(asked).toMatchObject({ status: "waiting", interrupts: [{ payload: { alreadyOn: "main" } }] });
        expect(asked.status === "waiting" && asked.interrupts[0]?.payload).not.toHaveProperty("outcome");
      }
      const answers = { in_doubt: { happened: true } };
      const end = await resume(graph, { store, thread: "t", branch, answers }).result;
      expect([receipts(end.state)[0]?.startsWith("A person has confirmed"), world.paid]).toEqual([true, ["5"]]);
    });

    test("a once call counts as prior whichever branch ran first [E44]", async () => {
      const graph = calling(world);
      const paused = await run(graph, { store, thread: "t", breakpoints: { before: ["tools"] } }).result;
      expect(paused.status).toBe("paused");
      const { checkpointId: at } = await getState(graph, { store, thread: "t" });
      const first = await fork(graph, { store, thread: "t", at, name: "first" });
      const second = await fork(graph, { store, thread: "t", at: await getHead(first), name: "second" });
      await resume(graph, { store, thread: "t", branch: second }).result;
      for (const branch of ["main", first]) {
        const asked = await resume(graph, { store, thread: "t", branch }).result;
        expect(asked).toMatchObject({ status: "waiting", interrupts: [{ payload: { alreadyOn: "second" } }] });
      }
      expect((await listInterrupts(store)).map(({ branch }) => branch).sort()).toEqual(["first", "main"]);
      expect(world.paid).toEqual(["5"]);
    });

    async function getHead(branch: string): Promise<number> {
      return (await store.head("t", branch))?.id ?? 0;
    }

    test("a branch with its own start shares no prior effects with other branches", async () => {
      const graph = calling(world);
      await run(graph, { store, thread: "t" }).result;
      const { state } = await run(graph, { store, thread: "t", branch: "apart" }).result;
      expect(receipts(state)).toEqual(["receipt 2"]);
    });
  });

  describe("once steps of other branches", () => {
    async function forked(graph: ReturnType<typeof stepping>): Promise<string> {
      return fork(graph, { store, thread: "t", at: await findCheckpointBefore(graph, "pay"), name: "other" });
    }

    test("a once step taken on another branch raises the interrupt in_doubt with the recorded outcome [E44]", async () => {
      const graph = stepping(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await forked(graph);
      expect(await resume(graph, { store, thread: "t", branch }).result).toMatchObject({
        status: "waiting",
        interrupts: [
          {
            key: "in_doubt",
            payload: { step: "charge", alreadyOn: "main", outcome: "receipt 1", idempotencyKey: world.keys[0] },
          },
        ],
      });
      expect(world.paid).toEqual(["5"]);
      const reused = await resume(graph, { store, thread: "t", branch, onPriorEffect: "reuse" }).result;
      expect([reused.state.log, world.paid]).toEqual([["planned", "receipt 1"], ["5"]]);
    });

    test("a once step taken on another branch runs again under the policy repeat [E44]", async () => {
      const graph = stepping(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await forked(graph);
      const end = await resume(graph, { store, thread: "t", branch, onPriorEffect: "repeat" }).result;
      expect([end.state.log, new Set(world.keys).size]).toEqual([["planned", "receipt 2"], 2]);
    });

    test("a reused prior result is journaled, and a later crash needs no policy", async () => {
      const graph = stepping(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await forked(graph);
      let failing = true;
      const bad = defineGraph({ name: "stepping", state: Log })
        .nodes({
          plan: () => ({ log: ["planned"] }),
          pay: async (state, { step }) => {
            const receipt = await step(
              "charge",
              ({ idempotencyKey }) => pay(world, `${state.amount}`, idempotencyKey),
              {
                effect: "once",
              },
            );
            if (failing) throw new Error("after it");
            return { log: [receipt] };
          },
        })
        .edges({ [START]: "plan", plan: "pay", pay: END });
      const options = { store, thread: "t", branch };
      await getFailure(resume(bad, { ...options, onPriorEffect: "reuse" }).result, "node_failed");
      failing = false;
      const end = await resume(bad, options).result;
      expect([end.state.log, world.paid]).toEqual([["planned", "receipt 1"], ["5"]]);
    });

    test("a reused prior failure fails this branch too", async () => {
      const graph = defineGraph({ name: "refused", state: Log })
        .nodes({
          pay: async (_state, { step }) => {
            await step("charge", () => pay(world, "5", "").then(() => Promise.reject(new Error("card refused"))), {
              effect: "once",
            });
          },
        })
        .edges({ [START]: "pay", pay: END });
      await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
      const branch = await fork(graph, { store, thread: "t", at: 1, name: "other" });
      expect(await resume(graph, { store, thread: "t", branch }).result).toMatchObject({
        status: "waiting",
        interrupts: [{ key: "in_doubt", payload: { alreadyOn: "main", error: { message: "card refused" } } }],
      });
      const error = await getFailure(
        resume(graph, { store, thread: "t", branch, onPriorEffect: "reuse" }).result,
        "node_failed",
      );
      expect([error.message.includes("card refused"), world.paid]).toEqual([true, ["5"]]);
    });

    test("a once step inside a subgraph is found in the namespace of the same call on another branch [E44]", async () => {
      const outer = defineGraph({ name: "outer", state: Log })
        .nodes({
          begin: () => ({ log: ["began"] }),
          inner: subgraph(stepping(world), {
            input: ({ amount }) => ({ amount }),
            output: ({ log }) => ({ log: [...log] }),
          }),
        })
        .edges({ [START]: "begin", begin: "inner", inner: END });
      await run(outer, { store, thread: "t" }).result;
      const branch = await fork(outer, {
        store,
        thread: "t",
        at: await findCheckpointBefore(outer, "inner"),
        name: "other",
      });
      expect(await resume(outer, { store, thread: "t", branch }).result).toMatchObject({
        status: "waiting",
        interrupts: [{ key: "inner.in_doubt", node: "inner.pay" }],
      });
      const end = await resume(outer, { store, thread: "t", branch, onPriorEffect: "reuse" }).result;
      expect([end.state.log, world.paid]).toEqual([["began", "planned", "receipt 1"], ["5"]]);
    });
  });

  describe("once nodes of other branches", () => {
    async function forked() {
      const graph = single(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await fork(graph, {
        store,
        thread: "t",
        at: await findCheckpointBefore(graph, "pay"),
        name: "other",
      });
      return (more: object = {}) => resume(graph, { store, thread: "t", branch, ...more }).result;
    }

    test("a once node run on another branch interrupts with its result, and the answer reuses it, replaces it or runs the node [E44]", async () => {
      const again = await forked();
      expect(await again()).toMatchObject({
        status: "waiting",
        interrupts: [{ key: "in_doubt", node: "pay", payload: { alreadyOn: "main", outcome: { log: ["receipt 1"] } } }],
      });
      const end = await again({ answers: { in_doubt: { happened: true } } });
      expect([end.status, end.state.log, world.paid]).toEqual(["done", ["planned", "receipt 1"], ["5"]]);
    });

    test.each([
      [{ happened: true, update: { log: ["from the log"] } }, "from the log", 1],
      [{ happened: false }, "receipt 2", 2],
    ] as const)(
      "the answer %j decides about a once node run on another branch [E44]",
      async (answer, logged, times) => {
        const again = await forked();
        await again();
        const end = await again({ answers: { in_doubt: answer } });
        expect([end.state.log, world.paid.length]).toEqual([["planned", logged], times]);
      },
    );

    test.each([
      ["reuse", "receipt 1", 1],
      ["repeat", "receipt 2", 2],
    ] as const)(
      "a once node run on another branch causes no interrupt under the policy %s [E44]",
      async (onPriorEffect, logged, times) => {
        const again = await forked();
        const end = await again({ onPriorEffect });
        expect([end.status, end.state.log, world.paid.length]).toEqual(["done", ["planned", logged], times]);
      },
    );
  });

  describe("once promises of other branches", () => {
    function order() {
      const machine = setup({
        actors: { charge: fromPromise(({ self }) => pay(world, "5", self.sessionId)) },
      }).createMachine({
        id: "order",
        initial: "ready",
        states: {
          ready: { on: { PAY: "paying" } },
          paying: { invoke: { src: "charge", onDone: "paid" } },
          paid: { type: "final" },
        },
      });
      return durableMachine(machine, { version: 1 });
    }

    async function forked() {
      const graph = order();
      await run(graph, { store, thread: "t", world: clock }).result;
      await resume(graph, { store, thread: "t", world: clock, answers: { PAY: true } }).result;
      expect(world.paid).toEqual(["5"]);
      const branch = await fork(graph, {
        store,
        thread: "t",
        at: await findCheckpointBefore(graph, "paying"),
        name: "other",
      });
      return (more: object = {}) => resume(graph, { store, thread: "t", branch, world: clock, ...more }).result;
    }

    test("a once promise of a machine started on another branch is not started again and interrupts [E44]", async () => {
      const again = await forked();
      const asked = { key: "in_doubt", payload: { actor: "charge", alreadyOn: "main", outcome: "receipt 1" } };
      expect(await again()).toMatchObject({ status: "waiting", interrupts: [asked] });
      expect((await again({ answers: { in_doubt: { happened: true } } })).status).toBe("done");
      expect(world.paid).toEqual(["5"]);
    });

    test.each([
      [{ onPriorEffect: "reuse" }, 1],
      [{ onPriorEffect: "repeat" }, 2],
      [{ answers: { in_doubt: { happened: false } } }, 2],
    ] as const)(
      "a once promise started on another branch is decided by the resume options %j [E44]",
      async (more, times) => {
        const again = await forked();
        if ("answers" in more) await again();
        expect((await again(more)).status).toBe("done");
        expect([world.paid.length, new Set(world.keys).size]).toEqual([times, times]);
      },
    );
  });

  test("a run on a new thread reads no branches, with and without once effects", async () => {
    let reads = 0;
    const counting: Store = Object.assign(Object.create(store) as Store, {
      branches: (thread: string) => {
        reads += 1;
        return store.branches(thread);
      },
    });
    const plain = defineGraph({ name: "plain", state: Log })
      .nodes({ a: async (_state, { step }) => ({ log: [await step("look", () => "seen")] }) })
      .edges({ [START]: "a", a: END });
    await run(plain, { store: counting, thread: "plain" }).result;
    expect(reads).toBe(0);
    const many = calling(world, () => [{ cents: 1 }, { cents: 2 }, { cents: 3 }]);
    await run(many, { store: counting, thread: "many" }).result;
    expect([reads, world.paid]).toEqual([0, ["1", "2", "3"]]);
  });
});
