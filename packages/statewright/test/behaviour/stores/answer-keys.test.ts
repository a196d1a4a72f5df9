/** Answers given again under the key of an earlier resume. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineState,
  durableMachine,
  END,
  isStatewrightError,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  sqliteStore,
} from "statewright";
import { describe, expect, onTestFinished, test } from "vitest";
import { assign, setup } from "xstate";
import * as z from "zod";

const State = defineState({ log: channel.list(z.string()) });

/** Graph that asks twice under one key, and then calls `finish`. */
function createAskingGraph(finish: () => Promise<void> = async () => undefined) {
  return defineGraph({
    name: "asking",
    version: 1,
    state: State,
    interrupts: { name: z.object({ first: z.string() }) },
  })
    .nodes({
      one: async (_state, { interrupt }) => ({ log: [(await interrupt("name")).first] }),
      two: async (_state, { interrupt }) => ({ log: [(await interrupt("name")).first] }),
      end: async () => {
        await finish();
        return { log: ["end"] };
      },
    })
    .edges({ [START]: "one", one: "two", two: "end", end: END });
}

const openers: readonly (readonly [string, () => readonly [Store, Store]])[] = [
  [
    "memory",
    () => {
      const store = memoryStore();
      return [store, store.peer()];
    },
  ],
  [
    "sqlite",
    () => {
      const home = mkdtempSync(join(tmpdir(), "statewright-answer-keys-"));
      const open = (): Store => sqliteStore(join(home, "asking.db"), { durability: "normal" });
      const stores = [open(), open()] as const;
      onTestFinished(async () => {
        for (const store of stores) await store.close();
        rmSync(home, { recursive: true, force: true });
      });
      return stores;
    },
  ],
];

const getCode = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "no error",
    (error: unknown) => (isStatewrightError(error) ? error.code : error),
  );

describe.each(openers)("a resume with a key on a %s store", (_name, open) => {
  test("returns the outcome of its run when it is repeated with the same answers, and answers no later interrupt [PK3]", async () => {
    const [front, other] = open();
    const graph = createAskingGraph();
    const answer = (store: Store, first: string, key: string) =>
      resume(graph, { store, thread: "t", answers: { name: { first } }, key }).result;
    const started = await run(graph, { store: front, thread: "t" }).result;
    await answer(front, "ann", "k1");
    for (const store of [front, other])
      expect(await answer(store, "ann", "k1")).toMatchObject({
        status: "waiting",
        run: started.run,
        state: { log: ["ann"] },
      });
    expect(await answer(other, "ann", "k2")).toMatchObject({ status: "done", state: { log: ["ann", "ann", "end"] } });
    for (const key of ["k1", "k2"])
      expect(await answer(front, "ann", key)).toMatchObject({ status: "done", run: started.run });
    expect(await front.interrupts("t", "main")).toMatchObject([
      { answerKey: "k1", answeredRun: started.run },
      { answerKey: "k2", answeredRun: started.run },
    ]);
  });

  test("returns the outcome of its run when another process has answered under the key before its claim [PK3]", async () => {
    const [front, other] = open();
    const graph = createAskingGraph();
    await run(graph, { store: front, thread: "t" }).result;
    const options = { thread: "t", answers: { name: { first: "ann" } }, key: "k" };
    const late: Store = {
      ...front,
      claim: async (request) => {
        await resume(graph, { store: other, ...options }).result;
        return await front.claim(request);
      },
    };
    expect(await resume(graph, { store: late, ...options }).result).toMatchObject({
      status: "waiting",
      state: { log: ["ann"] },
    });
  });

  test("is refused with already_answered when its key has other answers, or another key gave the answer [PK3]", async () => {
    const [front, other] = open();
    const graph = createAskingGraph();
    await run(graph, { store: front, thread: "t" }).result;
    const id = (await front.interrupts("t", "main"))[0]?.id ?? "";
    const answer = (first: string, key?: string) => {
      const keyed = key === undefined ? {} : { key };
      return resume(graph, { store: other, thread: "t", answers: { [id]: { first } }, ...keyed }).result;
    };
    await answer("ann", "k1");
    expect(await getCode(answer("bob", "k1"))).toBe("already_answered");
    expect(await getCode(answer("ann", "k2"))).toBe("already_answered");
    expect(await getCode(answer("ann"))).toBe("already_answered");
    const more = { [id]: { first: "ann" }, name: { first: "cid" } };
    expect(await getCode(resume(graph, { store: front, thread: "t", answers: more, key: "k1" }).result)).toBe(
      "already_answered",
    );
    expect(await getCode(answer("ann", "k1"))).toBe("no error");
  });
});

test("a resume repeated under its key continues the run whose process died after the answer was saved [PK3]", async () => {
  const store = memoryStore();
  const next = store.peer();
  let enter = (): void => undefined;
  const entered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const held = createAskingGraph(() => {
    enter();
    return new Promise(() => undefined);
  });
  await run(held, { store, thread: "t" }).result;
  await resume(held, { store, thread: "t", answers: { name: { first: "ann" } } }).result;
  const options = { thread: "t", answers: { name: { first: "bob" } }, key: "k" };
  resume(held, { store, ...options });
  await entered;
  store.crash();
  const { status, state } = await resume(createAskingGraph(), { store: next, ...options }).result;
  expect([status, state.log]).toEqual(["done", ["ann", "bob", "end"]]);
});

/** Machine that counts events and ends with STOP. */
function createCounter() {
  const machine = setup({
    types: { context: {} as { count: number }, events: {} as { type: "ADD" } | { type: "STOP" } },
  }).createMachine({
    id: "counter",
    context: { count: 0 },
    initial: "on",
    states: {
      on: { on: { ADD: { actions: assign({ count: ({ context }) => context.count + 1 }) }, STOP: "off" } },
      off: { type: "final" },
    },
  });
  return durableMachine(machine, { version: 1 });
}

describe.each(openers)("an event with a key for a durable machine on a %s store", (_name, open) => {
  test("is taken once, however often it is sent, until another event follows and after [PK3]", async () => {
    const [store, other] = open();
    const counter = createCounter();
    await run(counter, { store, thread: "t" }).result;
    const send = (answers: { readonly ADD?: true; readonly STOP?: true }, key: string, from: Store = store) =>
      resume(counter, { store: from, thread: "t", answers, key }).result;
    for (const from of [store, other, store])
      expect(await send({ ADD: true }, "a", from)).toMatchObject({
        status: "waiting",
        state: { context: { count: 1 } },
      });
    expect((await send({ ADD: true }, "b")).state.context).toEqual({ count: 2 });
    expect((await send({ ADD: true }, "a", other)).state.context).toEqual({ count: 2 });
    expect(await getCode(send({ STOP: true }, "a"))).toBe("key_reused");
    expect((await send({ STOP: true }, "c")).status).toBe("done");
    expect((await send({ STOP: true }, "c", other)).status).toBe("done");
    expect(await getCode(send({ ADD: true }, "d"))).toBe("event_refused");
  });

  test("refuses two events under one key, and changes nothing [PK3]", async () => {
    const [store] = open();
    const counter = createCounter();
    await run(counter, { store, thread: "t" }).result;
    const answers = { ADD: true, STOP: true } as const;
    expect(await getCode(resume(counter, { store, thread: "t", answers, key: "a" }).result)).toBe("ambiguous_answer");
    expect(await store.inbox("t", "main")).toEqual([]);
  });
});

test("an event with a key that was posted before its process died is taken once by the next call [PK3]", async () => {
  const store = memoryStore();
  const counter = createCounter();
  const { run: id } = await run(counter, { store, thread: "t" }).result;
  const dying = {
    ...store,
    post: async (write: Parameters<Store["post"]>[0]) => {
      await store.post(write);
      store.crash();
      return await new Promise<never>(() => undefined);
    },
  };
  const next = store.peer();
  const options = { thread: "t", answers: { ADD: true }, key: "a" } as const;
  resume(counter, { store: dying, ...options });
  while ((await next.inboxMessage("t", "main", "a")) === undefined) await Promise.resolve();
  for (let nth = 0; nth < 2; nth++)
    expect(await resume(counter, { store: next, ...options }).result).toMatchObject({
      run: id,
      status: "waiting",
      state: { context: { count: 1 } },
    });
});

test("a resume with an invalid key is refused [PK3]", () => {
  const store = memoryStore();
  expect(() => resume(createAskingGraph(), { store, thread: "t", key: "a b" })).toThrow("invalid_id");
});
