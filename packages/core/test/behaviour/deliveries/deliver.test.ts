/** Deliveries of an orchestrator: each kind of work, its result, and its repeat under the same key. */
import { beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { type DeliveredWork, type DeliveryBase, type DeliveryResult, deliver } from "../../../src/adapter.ts";
import {
  channel,
  defineGraph,
  defineState,
  END,
  type Graph,
  type MemoryStore,
  memoryStore,
  run,
  START,
  userMessage,
} from "../../../src/index.ts";
import { createDeferred, getFailure, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const State = defineState({ input: z.string().default(""), log: channel.list(z.string()) });

let world: VirtualWorld;
let store: MemoryStore;
let calls: string[];

beforeEach(() => {
  world = createVirtualWorld();
  store = memoryStore({ ownership: "orchestrator" });
  calls = [];
});

/** Graph of three nodes; the second asks a person, and expires after an hour with the answer "late". */
function createDesk(work: (place: string) => unknown = () => undefined) {
  return defineGraph({
    name: "desk",
    state: State,
    interrupts: { confirm: { answer: z.string(), expiresMs: 3_600_000, onExpire: "late" } },
  })
    .nodes({
      first: async ({ input }) => {
        calls.push("first");
        await work("first");
        return { log: [input] };
      },
      ask: async (_state, { interrupt }) => ({ log: [await interrupt("confirm")] }),
      last: async () => {
        calls.push("last");
        await work("last");
        return { log: ["last"] };
      },
    })
    .edges({ [START]: "first", first: "ask", ask: "last", last: END });
}

const desk = createDesk();

/** Delivers to the thread "t" from an owner of the store. */
function send(
  delivery: Omit<DeliveryBase, "thread"> & DeliveredWork,
  from: MemoryStore = store,
  graphs: readonly Graph[] = [desk],
): Promise<DeliveryResult> {
  return deliver({ store: from, graphs, world }, { thread: "t", ...delivery });
}

const runDelivery = { key: "k1", run: { graph: "desk", input: { input: "a" } } } as const;
const answerDelivery = { key: "k2", answers: { confirm: "yes" }, by: "ann" } as const;

describe("a delivered run", () => {
  test("a delivered run runs until it waits, and the result has its interrupts and its next due time [PK1]", async () => {
    const result = await send(runDelivery);
    expect(result).toMatchObject({
      status: "waiting",
      interrupts: [{ key: "confirm", node: "ask" }],
      next: { at: world.clock.now() + 3_600_000 },
      hasMore: false,
    });
    expect(await store.run(result.run ?? "")).toMatchObject({ key: "k1", status: "waiting" });
  });

  test("a delivered run is not run again under its key, concurrently and later, and each delivery has the same answer [PK1, PA11]", async () => {
    const [first, ...others] = await Promise.all(Array.from({ length: 20 }, () => send(runDelivery)));
    expect(new Set(others.map((each) => JSON.stringify(each)))).toEqual(new Set([JSON.stringify(first)]));
    expect(await send(runDelivery, store.peer())).toEqual(first);
    expect(calls).toEqual(["first"]);
  });

  test("a delivered run with another input under a known key is refused with key_reused [PK1]", async () => {
    await send(runDelivery);
    expect(await send({ key: "k1", run: { graph: desk, input: { input: "b" } } })).toMatchObject({
      status: "refused",
      refused: { code: "key_reused" },
      hasMore: false,
    });
  });

  test("a delivered run behind a waiting run stays queued, and runs with the resume after the answers [PK1]", async () => {
    await send(runDelivery);
    const second = { key: "k3", run: { graph: "desk", input: { input: "b" } } };
    expect(await send(second)).toMatchObject({ status: "queued", hasMore: false });
    expect(await send(answerDelivery)).toMatchObject({ status: "done", hasMore: true });
    expect(calls).toEqual(["first", "last"]);
    expect(await send({ resume: true })).toMatchObject({ status: "waiting", hasMore: false });
    expect(await send(second)).toMatchObject({ status: "waiting" });
    expect(calls).toEqual(["first", "last", "first"]);
  });

  test("a delivered run whose process died continues with the next delivery of its key [PK1]", async () => {
    const held = createDesk(() => createDeferred().promise);
    ignoreResult(send(runDelivery, store, [held]));
    await world.waitUntilIdle();
    store.crash();
    expect(await send(runDelivery, store.peer())).toMatchObject({ status: "waiting", hasMore: false });
    expect(calls).toEqual(["first", "first"]);
  });

  test("a delivered run at work in a living process is left to its owner, and taken over with a forced claim [PK1, PK2]", async () => {
    const gate = createDeferred();
    const held = createDesk(() => gate.promise);
    const displaced = send(runDelivery, store, [held]);
    await world.waitUntilIdle();
    const other = store.peer();
    expect(await send(runDelivery, other)).toMatchObject({ status: "running", hasMore: true });
    expect(await send({ ...runDelivery, claim: "force" }, other)).toMatchObject({ status: "waiting", hasMore: false });
    gate.resolve();
    await getFailure(displaced, "fenced");
    expect(calls).toEqual(["first", "first"]);
  });

  test("a delivered run that fails is a value, the same with each delivery, and the thread goes on after a resume [PK1]", async () => {
    let failures = 1;
    const failing = createDesk(() => {
      if (failures-- > 0) throw new Error("no paper");
    });
    const graphs = [failing];
    const failed = await send(runDelivery, store, graphs);
    expect(failed).toMatchObject({ status: "failed", error: { code: "node_failed" }, hasMore: false });
    expect(await send(runDelivery, store, graphs)).toEqual(failed);
    const again = { resume: true, key: "k4" } as const;
    expect(await send(again, store, graphs)).toMatchObject({ status: "waiting", run: failed.run });
    expect(calls).toEqual(["first", "first"]);
  });

  test("a delivered run that fails again after a resume is not retried by the same resume [PK1, PK3]", async () => {
    const failing = createDesk(() => {
      throw new Error("no paper");
    });
    await send(runDelivery, store, [failing]);
    for (let nth = 0; nth < 3; nth++)
      expect(await send({ resume: true, key: "k4" }, store, [failing])).toMatchObject({ status: "failed" });
    expect(calls).toEqual(["first", "first"]);
    await send({ resume: true, key: "k5" }, store, [failing]);
    expect(calls).toHaveLength(3);
  });

  test.each([
    ["an unknown graph", { key: "k", run: { graph: "none" } }, "graph_changed"],
    ["an invalid input", { key: "k", run: { graph: "desk", input: { input: 7 } } }, "invalid_input"],
    ["no key", { run: { graph: "desk" } }, "invalid_option"],
    ["an invalid key", { key: "a b", run: { graph: "desk" } }, "invalid_id"],
    ["two kinds of work", { key: "k", resume: true, timers: true }, "invalid_option"],
    ["an unknown option", { key: "k", resume: true, goOn: true }, "invalid_option"],
    ["no work", { key: "k" }, "invalid_option"],
    ["a tenant of another kind", { key: "k", run: { graph: "desk", tenant: 7 } }, "invalid_option"],
    ["a message for an unknown thread", { key: "k", message: { kind: "steer", messages: "hi" } }, "unknown_thread"],
    ["answers for an unknown thread", { key: "k", answers: { confirm: "yes" } }, "unknown_thread"],
    ["a resume of an unknown thread", { resume: true }, "unknown_thread"],
  ] as const)("a delivered run with %s is refused, and writes nothing [PK1]", async (_what, delivery, code) => {
    expect(await send(delivery as never)).toMatchObject({ status: "refused", refused: { code }, hasMore: false });
    expect(await store.threads()).toEqual([]);
  });
});

describe("delivered answers", () => {
  test("delivered answers continue their run to its output, once per key, also after its end [PK1, PK3]", async () => {
    await send(runDelivery);
    const done = await send(answerDelivery);
    expect(done).toMatchObject({ status: "done", output: { log: ["a", "yes", "last"] }, hasMore: false });
    for (const from of [store, store.peer()]) expect(await send(answerDelivery, from)).toEqual(done);
    expect(calls).toEqual(["first", "last"]);
    expect((await store.interrupts("t", "main"))[0]).toMatchObject({ answeredBy: "ann", answerKey: "k2" });
  });

  test("delivered answers whose run died continue it with the next delivery of the key, also by force [PK1]", async () => {
    for (const claim of ["free", "force"] as const) {
      store = memoryStore();
      calls = [];
      await send(runDelivery);
      const held = createDesk(() => createDeferred().promise);
      ignoreResult(send(answerDelivery, store, [held]));
      await world.waitUntilIdle();
      const next = store.peer();
      if (claim === "free") store.crash();
      expect(await send({ ...answerDelivery, claim }, next)).toMatchObject({ status: "done", hasMore: false });
      expect(calls).toEqual(["first", "last", "last"]);
    }
  });

  test.each([
    [{ confirm: 7 }, "invalid_answer"],
    [{ other: "yes" }, "unknown_interrupt"],
  ] as const)("delivered answers %o are refused with %s, and the interrupt stays open [PK1]", async (answers, code) => {
    await send(runDelivery);
    expect(await send({ key: "k2", answers })).toMatchObject({ status: "refused", refused: { code } });
    expect(await send(answerDelivery)).toMatchObject({ status: "done" });
  });
});

describe("delivered timers", () => {
  test("delivered timers that come early change nothing, and the due one fires once however often it is delivered [PK1]", async () => {
    const { next } = await send(runDelivery);
    expect(await send({ timers: true })).toMatchObject({ status: "waiting", next, hasMore: false });
    await world.advance(3_600_000);
    const done = await send({ timers: true });
    expect(done).toMatchObject({ status: "done", output: { log: ["a", "late", "last"] }, hasMore: false });
    expect(await send({ timers: true })).toEqual(done);
    expect(calls).toEqual(["first", "last"]);
  });

  test("delivered timers follow the time of the delivery when the store has no clock [PK1]", async () => {
    const at = world.clock.now() + 7_200_000;
    const { next } = await send({ ...runDelivery, at });
    expect(next).toEqual({ at: at + 3_600_000 });
    await world.advance(3_600_000);
    expect(await send({ timers: true })).toMatchObject({ status: "waiting" });
    expect(await send({ timers: true, at: at + 3_600_000 })).toMatchObject({ status: "done" });
  });

  for (const skewMs of [3_600_000, -3_600_000])
    test(`delivered timers of a store with a clock fire by that clock, with workers that are ${skewMs / 60_000} minutes ahead of it [PK4, PA6]`, async () => {
      world = createVirtualWorld(10_000_000);
      const clocked = memoryStore({ ownership: "orchestrator", now: () => world.clock.now() - skewMs });
      const dueAt = world.clock.now() - skewMs + 3_600_000;
      expect(await send(runDelivery, clocked)).toMatchObject({ status: "waiting", next: { at: dueAt } });
      await world.advance(3_599_000);
      const others = [clocked, clocked.peer()];
      for (const other of others)
        expect(await send({ timers: true, at: dueAt + 3_600_000 }, other)).toMatchObject({ status: "waiting" });
      await world.advance(1_000);
      for (const other of others)
        expect(await send({ timers: true, at: 0 }, other)).toMatchObject({
          status: "done",
          output: { log: ["a", "late", "last"] },
        });
      expect(calls).toEqual(["first", "last"]);
    });
});

const chatState = defineState({ messages: channel.messages() });

/** Graph with a conversation that waits for a person. */
const chat = defineGraph({ name: "chat", state: chatState, interrupts: { go: z.boolean() } })
  .nodes({
    wait: async (_state, { interrupt }) => {
      await interrupt("go");
      return {};
    },
    last: () => ({}),
  })
  .edges({ [START]: "wait", wait: "last", last: END });

describe("a delivered message", () => {
  const message = { key: "m1", message: { kind: "steer", messages: "hurry" } } as const;
  const listTexts = async (): Promise<readonly unknown[]> => {
    const head = await store.head("t");
    const rows = head === undefined ? [] : await store.state("t", head.id);
    return JSON.stringify(rows).match(/hurry/g) ?? [];
  };

  test("a delivered message reaches the conversation once, also when it is delivered again after the end of its run [PK1, PK3]", async () => {
    const graphs = [chat];
    const input = { messages: [userMessage("hello")] };
    await send({ key: "k1", run: { graph: "chat", input } }, store, graphs);
    for (let nth = 0; nth < 2; nth++)
      expect(await send(message, store.peer(), graphs)).toMatchObject({ status: "waiting", hasMore: false });
    expect(await store.inbox("t", "main")).toHaveLength(1);
    expect(await send({ key: "k2", answers: { go: true } }, store, graphs)).toMatchObject({ status: "done" });
    expect(await listTexts()).toHaveLength(1);
    await send(message, store, graphs);
    expect(await store.inbox("t", "main")).toEqual([]);
    await send({ key: "k3", run: { graph: "chat", input } }, store, graphs);
    expect(await listTexts()).toHaveLength(1);
  });

  test("a delivered message for a graph without a conversation is refused [PK1]", async () => {
    await send(runDelivery);
    expect(await send(message)).toMatchObject({ status: "refused", refused: { code: "invalid_option" } });
  });
});

describe("a delivered cancel", () => {
  const cancel = { key: "c1", cancel: "the customer left", by: "ann" } as const;

  test("a delivered cancel ends a waiting run with its reason, and its repeat ends no later run [PK1]", async () => {
    await send(runDelivery);
    expect(await send(cancel)).toMatchObject({ status: "cancelled", hasMore: false });
    expect(await send(runDelivery)).toMatchObject({ status: "cancelled", hasMore: false });
    const later = { key: "k3", run: { graph: "desk", input: { input: "b" } } } as const;
    expect(await send(later)).toMatchObject({ status: "waiting" });
    expect(await send(cancel, store.peer())).toMatchObject({ status: "cancelled", hasMore: false });
    expect(await send(later)).toMatchObject({ status: "waiting" });
    expect((await store.runs({ thread: "t" })).map(({ status, reason }) => [status, reason])).toEqual([
      ["waiting", undefined],
      ["cancelled", "the customer left"],
    ]);
  });

  test("a delivered cancel fires the signals of a run at work, whose delivery ends cancelled [PK1, PA18]", async () => {
    const held = createDesk(() => createDeferred().promise);
    const delivered = send(runDelivery, store, [held]);
    await world.waitUntilIdle();
    expect(await send(cancel, store, [held])).toMatchObject({ hasMore: false });
    await world.advance(60_000);
    expect(await delivered).toMatchObject({ status: "cancelled", hasMore: false });
  });

  test("a delivered cancel for an unknown thread is refused [PK1]", async () => {
    expect(await send(cancel)).toMatchObject({ status: "refused", refused: { code: "unknown_thread" } });
  });
});

describe("a delivery to older code", () => {
  /** Graph whose second version asks in a node that the first one does not have. */
  const createVersion = (version: 1 | 2, work: () => unknown = () => undefined): Graph => {
    const graph = defineGraph({ name: "desk", version, state: State, interrupts: { confirm: z.string() } });
    const end = () => ({});
    return version === 1
      ? graph.nodes({ end }).edges({ [START]: "end", end: END })
      : graph
          .nodes({
            ask: async (_state, { interrupt }) => {
              await work();
              return { log: [await interrupt("confirm")] };
            },
            end,
          })
          .edges({ [START]: "ask", ask: "end", end: END });
  };

  test("a delivery to older code leaves a waiting run of newer code unparked, and newer code continues it [PK1, PA5]", async () => {
    const [older, newer] = [[createVersion(1)], [createVersion(2)]];
    await send(runDelivery, store, newer);
    const answers = { key: "k2", answers: { confirm: "yes" } } as const;
    expect(await send(answers, store, older)).toMatchObject({ status: "waiting", hasMore: true });
    expect(await send({ timers: true }, store, older)).toMatchObject({ status: "waiting", hasMore: true });
    expect(await send(answers, store, newer)).toMatchObject({ status: "done", hasMore: false });
    expect((await store.runs({ thread: "t" })).map(({ status }) => status)).toEqual(["done"]);
  });

  test("a delivery to older code leaves a queued run of newer code in the queue [PK1, PA5]", async () => {
    const [older, newer] = [[createVersion(1)], [createVersion(2)]];
    await send({ ...runDelivery, signal: AbortSignal.abort() }, store, newer);
    expect(await send({ resume: true }, store, older)).toMatchObject({ status: "queued", hasMore: true });
    expect(await send(runDelivery, store, newer)).toMatchObject({ status: "waiting", hasMore: false });
  });

  test("a delivery to older code leaves a crashed run of newer code unparked, also with a forced claim, and newer code continues it [PK1, PA5]", async () => {
    const [older, newer] = [[createVersion(1)], [createVersion(2)]];
    ignoreResult(send(runDelivery, store, [createVersion(2, () => createDeferred().promise)]));
    await world.waitUntilIdle();
    const peer = store.peer();
    store.crash();
    expect(await send(runDelivery, peer, older)).toMatchObject({ status: "crashed", hasMore: true });
    const forced = { ...runDelivery, claim: "force" } as const;
    expect(await send(forced, peer, older)).toMatchObject({ status: "crashed", hasMore: true });
    expect(await send({ resume: true }, peer, older)).toMatchObject({ status: "crashed", hasMore: true });
    expect(await send(runDelivery, peer, newer)).toMatchObject({ status: "waiting", hasMore: false });
    expect((await peer.runs({ thread: "t" })).map(({ status }) => status)).toEqual(["waiting"]);
  });
});

describe("a delivery and its store", () => {
  test("an error of the store is thrown, and the same delivery does its work later [PK1]", async () => {
    const broken = { ...store, enqueue: () => Promise.reject(new Error("no route to host")) };
    await expect(send(runDelivery, broken as never)).rejects.toThrow("no route to host");
    expect(await send(runDelivery)).toMatchObject({ status: "waiting" });
  });

  test("a thread that run() works on in this process is left alone [PK1]", async () => {
    const gate = createDeferred();
    const held = createDesk(() => gate.promise);
    const other = run(held, { store, thread: "t", input: { input: "b" }, world });
    await world.waitUntilIdle();
    expect(await send(runDelivery, store, [held])).toMatchObject({ status: "queued", hasMore: true });
    gate.resolve();
    await other.result;
  });
});
