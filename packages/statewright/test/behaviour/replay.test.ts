/** Going back and going on again: what is run again, what is asked again, and what is never repeated in silence. */
import { type VirtualClock, virtualClock } from "@statewright/testing";
import {
  defineGraph,
  defineState,
  defineTool,
  durable,
  END,
  fork,
  getState,
  history,
  list,
  messages,
  resume,
  run,
  START,
  type Store,
  subgraph,
  toolNode,
  waiting,
} from "statewright";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import { failureOf, leftToDie, type Place, places } from "../support/both-stores.ts";

const Log = defineState({ amount: z.number().default(5), log: list(z.string()) });

/** What happened in the world outside, with the keys under which it did. */
interface World {
  readonly paid: string[];
  readonly keys: string[];
  /** While it is set, paying never ends. */
  hang?: boolean;
}

async function pay(world: World, what: string, key: string): Promise<string> {
  world.paid.push(what);
  world.keys.push(key);
  if (world.hang === true) await new Promise(() => undefined);
  return `receipt ${world.paid.length}`;
}

/** Pays in a step, after a node of its own. */
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

/** Pays in a node that may run once. */
const single = (world: World) =>
  defineGraph({ name: "single", state: Log })
    .nodes({
      plan: () => ({ log: ["planned"] }),
      pay: { run: async (state) => ({ log: [await pay(world, `${state.amount}`, "node")] }), effect: "once" },
    })
    .edges({ [START]: "plan", plan: "pay", pay: END });

/** Asks a model that gives its calls new ids each time, then pays with a tool. */
function calling(world: World, calls: () => readonly { readonly cents: number }[] = () => [{ cents: 5 }]) {
  let asked = 0;
  const tool = defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    run: ({ cents }, { idempotencyKey }) => pay(world, `${cents}`, idempotencyKey),
  });
  return defineGraph({ name: "calling", state: defineState({ messages: messages() }) })
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

  /** The checkpoint at which these nodes come next. */
  async function before(graph: Parameters<typeof history>[0], node: string, thread = "t"): Promise<number> {
    for await (const entry of history(graph, { store, thread }))
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

    test("E44 replay from a checkpoint runs what comes after it again and asks its interrupts again", async () => {
      await finished();
      const branch = await fork(two(), { store, thread: "t", at: await before(two(), "one"), name: "again" });
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

    test("E44 replay of a final checkpoint does nothing", async () => {
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

    test("E44 forking between two interrupts keeps the first answer", async () => {
      await finished();
      const branch = await fork(two(), { store, thread: "t", at: await before(two(), "other"), name: "between" });
      const asked = await resume(two(), { store, thread: "t", branch }).result;
      expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "second" }], state: { log: ["one a"] } });
      const end = await resume(two(), { store, thread: "t", branch, answers: { second: "e" } }).result;
      expect(end.state.log).toEqual(["one a", "other e"]);
    });

    test("E44 so does forking between two answers to one body, and to one superstep", async () => {
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
        interrupts: [{ id: "0:0:say:2" }],
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

  describe("a once tool call that another branch has made", () => {
    /** Paid on main, and a fork from before the call, or from before the model was asked. */
    async function forked(from: "tools" | "model" = "tools", graph = calling(world)) {
      const { state } = await run(graph, { store, thread: "t" }).result;
      expect(receipts(state)).toEqual(["receipt 1"]);
      const branch = await fork(graph, { store, thread: "t", at: await before(graph, from), name: "other" });
      return {
        graph,
        branch,
        again: (more: object = {}) => resume(graph, { store, thread: "t", branch, ...more }).result,
      };
    }

    test.each(["tools", "model"] as const)(
      "E44 is not made again in silence: a person is shown what came of it, forked from before the %s",
      async (from) => {
        const { again } = await forked(from);
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

    test("E44 is made again under a key of its own when a person says that it does not count", async () => {
      const { again } = await forked();
      await again();
      const end = await again({ answers: { in_doubt: { happened: false } } });
      expect([end.status, receipts(end.state as never)]).toEqual(["done", ["receipt 2"]]);
      expect(new Set(world.keys).size).toBe(2);
      expect(world.keys[1]).toContain("/other/");
    });

    test("a person may say themselves what came of it", async () => {
      const { again } = await forked();
      await again();
      const end = await again({ answers: { in_doubt: { happened: true, content: "from the log" } } });
      expect([receipts(end.state as never), world.paid]).toEqual([["from the log"], ["5"]]);
    });

    test.each([
      ["reuse", ["receipt 1"], ["5"]],
      ["repeat", ["receipt 2"], ["5", "5"]],
    ] as const)("E44 by the policy %s nobody is asked", async (onceElsewhere, receipt, paid) => {
      for (const from of ["tools", "model"] as const) {
        world.paid.length = 0;
        store = from === "tools" ? store : place.peer();
        const thread = from;
        const graph = calling(world);
        await run(graph, { store, thread }).result;
        const branch = await fork(graph, { store, thread, at: await before(graph, from, thread), name: "other" });
        const end = await resume(graph, { store, thread, branch, onceElsewhere }).result;
        expect([end.status, receipts(end.state), world.paid]).toEqual(["done", receipt, paid]);
      }
    });

    test("other arguments are another call, and of two alike the first is the first and the second the second", async () => {
      let calls = [{ cents: 5 }, { cents: 7 }, { cents: 5 }];
      const graph = calling(world, () => calls);
      await run(graph, { store, thread: "t" }).result;
      calls = [{ cents: 5 }, { cents: 9 }, { cents: 5 }, { cents: 5 }];
      const branch = await fork(graph, { store, thread: "t", at: await before(graph, "model"), name: "other" });
      const end = await resume(graph, { store, thread: "t", branch, onceElsewhere: "reuse" }).result;
      expect(receipts(end.state)).toEqual(["receipt 1", "receipt 4", "receipt 3", "receipt 5"]);
      expect(world.paid).toEqual(["5", "7", "5", "9", "5"]);
    });

    test("E44 a call that only started there is asked about under every policy that does not repeat it", async () => {
      world.hang = true;
      const graph = calling(world);
      leftToDie(run(graph, { store, thread: "t", world: clock }).result);
      await clock.settle();
      store = place.crash();
      world.hang = false;
      const branch = await fork(graph, { store, thread: "t", at: await before(graph, "tools"), name: "other" });
      for (const onceElsewhere of ["ask", "reuse"] as const) {
        const asked = await resume(graph, { store, thread: "t", branch, onceElsewhere }).result;
        expect(asked).toMatchObject({ status: "waiting", interrupts: [{ payload: { alreadyOn: "main" } }] });
        expect(asked.status === "waiting" && asked.interrupts[0]?.payload).not.toHaveProperty("outcome");
      }
      const answers = { in_doubt: { happened: true } };
      const end = await resume(graph, { store, thread: "t", branch, answers }).result;
      expect([receipts(end.state)[0]?.startsWith("A person has confirmed"), world.paid]).toEqual([true, ["5"]]);
    });

    test("E44 it does not matter which branch was first: a branch that went on before its origin did has made it", async () => {
      const graph = calling(world);
      const paused = await run(graph, { store, thread: "t", breakpoints: { before: ["tools"] } }).result;
      expect(paused.status).toBe("paused");
      const { checkpointId: at } = await getState(graph, { store, thread: "t" });
      const first = await fork(graph, { store, thread: "t", at, name: "first" });
      const second = await fork(graph, { store, thread: "t", at: await headOf(first), name: "second" });
      await resume(graph, { store, thread: "t", branch: second }).result;
      for (const branch of ["main", first]) {
        const asked = await resume(graph, { store, thread: "t", branch }).result;
        expect(asked).toMatchObject({ status: "waiting", interrupts: [{ payload: { alreadyOn: "second" } }] });
      }
      expect((await waiting(store)).map(({ branch }) => branch).sort()).toEqual(["first", "main"]);
      expect(world.paid).toEqual(["5"]);
    });

    async function headOf(branch: string): Promise<number> {
      return (await store.head("t", branch))?.id ?? 0;
    }

    test("a branch that began by itself shares nothing with the others", async () => {
      const graph = calling(world);
      await run(graph, { store, thread: "t" }).result;
      const { state } = await run(graph, { store, thread: "t", branch: "apart" }).result;
      expect(receipts(state)).toEqual(["receipt 2"]);
    });
  });

  describe("a once step that another branch has taken", () => {
    async function forked(graph: ReturnType<typeof stepping>): Promise<string> {
      return fork(graph, { store, thread: "t", at: await before(graph, "pay"), name: "other" });
    }

    test("E44 fails instead of being taken again, and names the policies", async () => {
      const graph = stepping(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await forked(graph);
      const error = await failureOf(resume(graph, { store, thread: "t", branch }).result, "effect_in_doubt");
      expect(error.message).toContain('"main"');
      expect(error.message).toContain('onceElsewhere: "reuse"');
      expect(error.details).toMatchObject({ key: "charge", alreadyOn: "main", idempotencyKey: world.keys[0] });
      expect(world.paid).toEqual(["5"]);
      const reused = await resume(graph, { store, thread: "t", branch, onceElsewhere: "reuse" }).result;
      expect([reused.state.log, world.paid]).toEqual([["planned", "receipt 1"], ["5"]]);
    });

    test("E44 is taken again when the policy says so", async () => {
      const graph = stepping(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await forked(graph);
      const end = await resume(graph, { store, thread: "t", branch, onceElsewhere: "repeat" }).result;
      expect([end.state.log, new Set(world.keys).size]).toEqual([["planned", "receipt 2"], 2]);
    });

    test("what was taken over stands in the journal: a crash after it needs no policy any more", async () => {
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
      await failureOf(resume(bad, { ...options, onceElsewhere: "reuse" }).result, "node_failed");
      failing = false;
      const end = await resume(bad, options).result;
      expect([end.state.log, world.paid]).toEqual([["planned", "receipt 1"], ["5"]]);
    });

    test("a failure there is the failure here when its outcome is taken over", async () => {
      const graph = defineGraph({ name: "refused", state: Log })
        .nodes({
          pay: async (_state, { step }) => {
            await step("charge", () => pay(world, "5", "").then(() => Promise.reject(new Error("card refused"))), {
              effect: "once",
            });
          },
        })
        .edges({ [START]: "pay", pay: END });
      await failureOf(run(graph, { store, thread: "t" }).result, "node_failed");
      const branch = await fork(graph, { store, thread: "t", at: 1, name: "other" });
      await failureOf(resume(graph, { store, thread: "t", branch }).result, "effect_in_doubt");
      const error = await failureOf(
        resume(graph, { store, thread: "t", branch, onceElsewhere: "reuse" }).result,
        "node_failed",
      );
      expect([error.message.includes("card refused"), world.paid]).toEqual([true, ["5"]]);
    });

    test("E44 also in a graph inside a graph, on the line of the same call", async () => {
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
      const branch = await fork(outer, { store, thread: "t", at: await before(outer, "inner"), name: "other" });
      const error = await failureOf(resume(outer, { store, thread: "t", branch }).result, "effect_in_doubt");
      expect(error.place).toMatchObject({ within: "inner", node: "pay" });
      const end = await resume(outer, { store, thread: "t", branch, onceElsewhere: "reuse" }).result;
      expect([end.state.log, world.paid]).toEqual([["began", "planned", "receipt 1"], ["5"]]);
    });
  });

  describe("a once node that another branch has run", () => {
    async function forked() {
      const graph = single(world);
      await run(graph, { store, thread: "t" }).result;
      const branch = await fork(graph, { store, thread: "t", at: await before(graph, "pay"), name: "other" });
      return (more: object = {}) => resume(graph, { store, thread: "t", branch, ...more }).result;
    }

    test("E44 is not run again: a person is shown what it gave, and may let it count, give another result, or have it run", async () => {
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
    ] as const)("E44 a person who answers %j", async (answer, logged, times) => {
      const again = await forked();
      await again();
      const end = await again({ answers: { in_doubt: answer } });
      expect([end.state.log, world.paid.length]).toEqual([["planned", logged], times]);
    });

    test.each([
      ["reuse", "receipt 1", 1],
      ["repeat", "receipt 2", 2],
    ] as const)("E44 by the policy %s nobody is asked", async (onceElsewhere, logged, times) => {
      const again = await forked();
      const end = await again({ onceElsewhere });
      expect([end.status, end.state.log, world.paid.length]).toEqual(["done", ["planned", logged], times]);
    });
  });

  describe("a once promise of a machine that another branch has begun", () => {
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
      return durable(machine, { version: 1 });
    }

    async function forked() {
      const graph = order();
      await run(graph, { store, thread: "t", world: clock }).result;
      await resume(graph, { store, thread: "t", world: clock, answers: { PAY: true } }).result;
      expect(world.paid).toEqual(["5"]);
      const branch = await fork(graph, { store, thread: "t", at: await before(graph, "paying"), name: "other" });
      return (more: object = {}) => resume(graph, { store, thread: "t", branch, world: clock, ...more }).result;
    }

    test("E44 is not begun again: a person is asked", async () => {
      const again = await forked();
      const asked = { key: "in_doubt", payload: { actor: "charge", alreadyOn: "main", outcome: "receipt 1" } };
      expect(await again()).toMatchObject({ status: "waiting", interrupts: [asked] });
      expect((await again({ answers: { in_doubt: { happened: true } } })).status).toBe("done");
      expect(world.paid).toEqual(["5"]);
    });

    test.each([
      [{ onceElsewhere: "reuse" }, 1],
      [{ onceElsewhere: "repeat" }, 2],
      [{ answers: { in_doubt: { happened: false } } }, 2],
    ] as const)("E44 with %j", async (more, times) => {
      const again = await forked();
      if ("answers" in more) await again();
      expect((await again(more)).status).toBe("done");
      expect([world.paid.length, new Set(world.keys).size]).toEqual([times, times]);
    });
  });

  test("a thread with one branch is looked at once, and one without once effects never", async () => {
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
    expect([reads, world.paid]).toEqual([1, ["1", "2", "3"]]);
  });
});
