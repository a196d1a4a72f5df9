import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  fork,
  inputNode,
  type MemoryStore,
  memoryStore,
  type NodeRuntime,
  resume,
  run,
  START,
  type StepOptions,
  subgraph,
} from "../../../src/index.ts";
import { createDeferred, getFailure, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** A bank that receives one charge per call of `pay`; the first answer never arrives. */
interface Bank {
  readonly keys: string[];
  hangs: boolean;
}

function createBank(): Bank {
  return { keys: [], hangs: true };
}

function createPayNode(bank: Bank, options: StepOptions<string>) {
  return async (_state: unknown, { step }: NodeRuntime) => ({
    log: [
      await step(
        "charge",
        async ({ idempotencyKey }) => {
          bank.keys.push(idempotencyKey);
          if (bank.hangs) await createDeferred().promise;
          return `receipt ${bank.keys.length}`;
        },
        options,
      ),
    ],
  });
}

function createShop(bank: Bank, options: StepOptions<string> = { effect: "once" }) {
  return defineGraph({ name: "shop", state: Log })
    .nodes({ pay: createPayNode(bank, options), after: () => ({ log: ["after"] }) })
    .edges({ [START]: "pay", pay: "after", after: END });
}

let world: VirtualWorld;
let store: MemoryStore;

beforeEach(() => {
  world = createVirtualWorld();
  store = memoryStore();
});

/** Runs a graph whose process dies inside the step. Returns the options of a resume by the next process. */
async function runUntilDeath(graph: ReturnType<typeof createShop>, bank: Bank) {
  ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
  await world.waitUntilIdle();
  store.crash();
  bank.hangs = false;
  store = store.peer();
  return { world, store, thread: "t" } as const;
}

describe("a once step whose process died", () => {
  test("a once step without a recorded result waits for a person, and the answer is its result [FX6, E61]", async () => {
    const bank = createBank();
    const graph = createShop(bank);
    const next = await runUntilDeath(graph, bank);
    for (let nth = 0; nth < 2; nth++)
      expect(await resume(graph, next).result).toMatchObject({
        status: "waiting",
        interrupts: [
          {
            key: "in_doubt",
            node: "pay",
            payload: { node: "pay", step: "charge", idempotencyKey: bank.keys[0], startedAt: 1_000_000 },
            schema: { required: ["happened"] },
          },
        ],
      });
    const answers = { in_doubt: { happened: true, value: "receipt, says the bank" } };
    const { state } = await resume(graph, { ...next, answers }).result;
    expect([state.log, bank.keys.length]).toEqual([["receipt, says the bank", "after"], 1]);
  });

  test("a once step runs again under its key after a person answers that it did not happen [FX6]", async () => {
    const bank = createBank();
    const graph = createShop(bank);
    const next = await runUntilDeath(graph, bank);
    await resume(graph, next).result;
    const { state } = await resume(graph, { ...next, answers: { in_doubt: { happened: false } } }).result;
    expect([state.log, new Set(bank.keys).size]).toEqual([["receipt 2", "after"], 1]);
  });

  test("an answer about a once step counts for one start: a second crash raises the interrupt again [FX6]", async () => {
    const bank = createBank();
    const graph = createShop(bank);
    let next = await runUntilDeath(graph, bank);
    await resume(graph, next).result;
    bank.hangs = true;
    ignoreResult(resume(graph, { ...next, answers: { in_doubt: { happened: false } } }).result);
    await world.waitUntilIdle();
    store.crash();
    bank.hangs = false;
    store = store.peer();
    next = { world, store, thread: "t" };
    expect((await resume(graph, next).result).status).toBe("waiting");
    const { state } = await resume(graph, { ...next, answers: { in_doubt: { happened: true, value: "paid" } } }).result;
    expect([state.log, bank.keys.length]).toEqual([["paid", "after"], 2]);
  });

  test("an answer about a once step with an unknown part is refused, and the interrupt stays open [FX6]", async () => {
    const bank = createBank();
    const graph = createShop(bank);
    const next = await runUntilDeath(graph, bank);
    await resume(graph, next).result;
    await getFailure(
      resume(graph, { ...next, answers: { in_doubt: { happened: true, update: {} } } }).result,
      "invalid_answer",
    );
    expect((await resume(graph, next).result).status).toBe("waiting");
  });

  test.each([
    ["yes", "receipt 1", ["receipt 1", "after"], 1],
    ["no", undefined, ["receipt 2", "after"], 2],
  ] as const)(
    "reconcile of a once step decides without a person when the other side answers %s [FX6]",
    async (_name, found, log, charges) => {
      const bank = createBank();
      const asked: string[] = [];
      const graph = createShop(bank, {
        effect: "once",
        reconcile: ({ idempotencyKey }) => {
          asked.push(idempotencyKey);
          return found;
        },
      });
      const next = await runUntilDeath(graph, bank);
      const { state } = await resume(graph, next).result;
      expect([state.log, bank.keys.length, asked]).toEqual([log, charges, [bank.keys[0]]]);
    },
  );

  test("a reconcile that fails leaves a once step in doubt, and the next resume asks the other side again [FX6]", async () => {
    const bank = createBank();
    let isDown = true;
    const graph = createShop(bank, {
      effect: "once",
      reconcile: () => {
        if (isDown) throw new Error("the bank is down");
        return "receipt 1";
      },
    });
    const next = await runUntilDeath(graph, bank);
    expect((await getFailure(resume(graph, next).result, "node_failed")).message).toContain("the bank is down");
    isDown = false;
    expect((await resume(graph, next).result).state.log).toEqual(["receipt 1", "after"]);
    expect(bank.keys).toHaveLength(1);
  });

  test("once steps in doubt of one body are asked together, each with its own interrupt [FX6]", async () => {
    const charged: string[] = [];
    let hangs = true;
    const graph = defineGraph({ name: "two", state: Log })
      .nodes({
        pay: async (_state, { step }) => ({
          log: await Promise.all(
            ["ann", "bob"].map((who) =>
              step(
                who,
                async () => {
                  charged.push(who);
                  if (hangs) await createDeferred().promise;
                  return who;
                },
                { effect: "once" },
              ),
            ),
          ),
        }),
      })
      .edges({ [START]: "pay", pay: END });
    ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
    await world.waitUntilIdle();
    store.crash();
    hangs = false;
    const next = { world, store: store.peer(), thread: "t" };
    const waiting = await resume(graph, next).result;
    if (waiting.status !== "waiting") throw new Error(`expected a waiting run, got ${waiting.status}`);
    expect(waiting.interrupts.map(({ payload }) => payload)).toMatchObject([{ step: "ann" }, { step: "bob" }]);
    const [ann = "", bob = ""] = waiting.interrupts.map(({ id }) => id);
    const answers = { [ann]: { happened: true, value: "ann, once" }, [bob]: { happened: false } };
    const { state } = await resume(graph, { ...next, answers }).result;
    expect([state.log, charged]).toEqual([
      ["ann, once", "bob"],
      ["ann", "bob", "bob"],
    ]);
  });

  test("a once step in doubt inside a subgraph is asked with the path and the input of its node [FX6]", async () => {
    const bank = createBank();
    const inner = defineGraph({ name: "inner", state: Log })
      .nodes({ pay: inputNode(z.object({ cents: z.number() }), createPayNode(bank, { effect: "once" })) })
      .edges({ [START]: fanOut("pay", () => [{ cents: 5 }]), pay: END });
    const graph = defineGraph({ name: "outer", state: Log })
      .nodes({ till: subgraph(inner, { input: () => ({}), output: ({ log }) => ({ log }) }) })
      .edges({ [START]: "till", till: END });
    ignoreResult(run(graph, { world, store, thread: "t", input: {} }).result);
    await world.waitUntilIdle();
    store.crash();
    bank.hangs = false;
    const next = { world, store: store.peer(), thread: "t" };
    expect(await resume(graph, next).result).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "till.in_doubt", node: "till.pay", payload: { step: "charge", input: { cents: 5 } } }],
    });
    const answers = { "till.in_doubt": { happened: true, value: "receipt 1" } };
    expect((await resume(graph, { ...next, answers }).result).state.log).toEqual(["receipt 1"]);
  });

  test("a once step in doubt in an error handler is asked, and its answer ends the handler [FX6]", async () => {
    const bank = createBank();
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({
        pay: {
          run: (): { log: string[] } => {
            throw new Error("card refused");
          },
          onError: createPayNode(bank, { effect: "once" }),
        },
        after: () => ({ log: ["after"] }),
      })
      .edges({ [START]: "pay", pay: "after", after: END });
    const next = await runUntilDeath(graph, bank);
    expect(await resume(graph, next).result).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "in_doubt", payload: { step: "charge" } }],
    });
    const answers = { in_doubt: { happened: true, value: "refunded" } };
    expect((await resume(graph, { ...next, answers }).result).state.log).toEqual(["refunded", "after"]);
    expect(bank.keys).toHaveLength(1);
  });

  test("a once step in doubt in the body of a once node fails, and the node asks for its result [FX6]", async () => {
    const bank = createBank();
    const graph = defineGraph({ name: "shop", state: Log })
      .nodes({
        pay: { run: createPayNode(bank, { effect: "once" }), effect: "once" },
        after: () => ({ log: ["after"] }),
      })
      .edges({ [START]: "pay", pay: "after", after: END });
    const next = await runUntilDeath(graph, bank);
    await resume(graph, next).result;
    const error = await getFailure(
      resume(graph, { ...next, answers: { in_doubt: { happened: false } } }).result,
      "effect_in_doubt",
    );
    expect(error.message).toContain('answer the interrupt "in_doubt" of the node "pay"');
    await resume(graph, next).result;
    const answers = { in_doubt: { happened: true, update: { log: ["paid"] } } };
    expect((await resume(graph, { ...next, answers }).result).state.log).toEqual(["paid", "after"]);
  });
});

test("reconcile without the effect once is refused: such a step runs again under its key [FX6]", async () => {
  const bank = createBank();
  bank.hangs = false;
  const error = await getFailure(
    run(createShop(bank, { reconcile: () => "receipt" }), { input: {} }).result,
    "invalid_option",
  );
  expect([error.message, bank.keys]).toEqual([expect.stringContaining('effect "once" with reconcile'), []]);
});

test("a once step of another branch is asked with its outcome, and a confirmed outcome counts here too [FX6, E44]", async () => {
  const bank = createBank();
  bank.hangs = false;
  const graph = createShop(bank);
  await run(graph, { world, store, thread: "t", input: {} }).result;
  const branch = await fork(graph, { world, store, thread: "t", at: 1, name: "other" });
  const at = { world, store, thread: "t", branch };
  expect(await resume(graph, at).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { step: "charge", alreadyOn: "main", outcome: "receipt 1" } }],
  });
  const { state } = await resume(graph, { ...at, answers: { in_doubt: { happened: true } } }).result;
  expect([state.log, bank.keys.length]).toEqual([["receipt 1", "after"], 1]);
  const again = await fork(graph, { world, store, thread: "t", at: 1, name: "again" });
  await resume(graph, { ...at, branch: again }).result;
  const repeated = await resume(graph, { ...at, branch: again, answers: { in_doubt: { happened: false } } }).result;
  expect([repeated.state.log, new Set(bank.keys).size]).toEqual([["receipt 2", "after"], 2]);
});

test("a step whose start here had no effect is not repeated when another branch has run it since [E44, FX6]", async () => {
  const bank = createBank();
  const graph = createShop(bank);
  const next = await runUntilDeath(graph, bank);
  const branch = await fork(graph, { ...next, at: 1, name: "other" });
  await resume(graph, { ...next, branch }).result;
  const denied = { in_doubt: { happened: false } };
  const other = await resume(graph, { ...next, branch, answers: denied }).result;
  expect([other.state.log, bank.keys.length]).toEqual([["receipt 2", "after"], 2]);
  const main = { ...next, branch: "main" };
  expect(await resume(graph, main).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { step: "charge" } }],
  });
  expect(await resume(graph, { ...main, answers: denied }).result).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "in_doubt", payload: { step: "charge", alreadyOn: "other", outcome: "receipt 2" } }],
  });
  const { state } = await resume(graph, { ...main, answers: { in_doubt: { happened: true } } }).result;
  expect([state.log, bank.keys.length]).toEqual([["receipt 2", "after"], 2]);
});
