/** Runs submitted by one owner of a store, and run by the engine of another. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  channel,
  defineGraph,
  defineState,
  END,
  engine,
  getState,
  isStatewrightError,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  sqliteStore,
  submit,
  submitAnswers,
} from "statewright";
import { createThread, listRuns } from "statewright/inspect";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import * as z from "zod";

const Words = defineState({ word: z.string(), log: channel.list(z.string()) });
const startedWords: string[] = [];
const graph = defineGraph({ name: "words", version: 1, state: Words, interrupts: { ok: z.boolean() } })
  .nodes({
    say: async ({ word }, { interrupt }) => {
      startedWords.push(word);
      if (word === "ask") await interrupt("ok");
      return { log: [word] };
    },
  })
  .edges({ [START]: "say", say: END });
const other = defineGraph({ name: "other", version: 1, state: Words })
  .nodes({ say: ({ word }) => ({ log: [word] }) })
  .edges({ [START]: "say", say: END });

afterEach(() => {
  startedWords.length = 0;
});

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
      const home = mkdtempSync(join(tmpdir(), "statewright-submit-"));
      const open = (): Store => sqliteStore(join(home, "words.db"), { durability: "normal" });
      const stores = [open(), open()] as const;
      onTestFinished(async () => {
        for (const store of stores) await store.close();
        rmSync(home, { recursive: true, force: true });
      });
      return stores;
    },
  ],
];

/** Runs an engine until the runs of the thread have these statuses, newest first. */
async function serve(store: Store, statuses: readonly string[], thread = "t"): Promise<void> {
  const host = engine({ store, graphs: [graph] });
  await host.start();
  await expect.poll(() => listStatuses(store, thread), { interval: 2, timeout: 10_000 }).toEqual(statuses);
  await host.stop();
}

const getCode = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => "no error",
    (error: unknown) => (isStatewrightError(error) ? error.code : error),
  );

const listStatuses = async (store: Store, thread = "t"): Promise<readonly string[]> =>
  (await listRuns(store, { thread })).map(({ status }) => status);

describe.each(openers)("a run submitted to a %s store", (_name, open) => {
  test("creates its thread, runs nothing, and is run by the engine of another owner of the store [PK7]", async () => {
    const [front, worker] = open();
    const parties = { tenant: "acme", owner: "ann", metadata: { customer: "c1" } };
    const submitted = await submit(graph, { store: front, thread: "t", input: { word: "a" }, ...parties });
    expect(submitted).toEqual({ thread: "t", run: expect.stringMatching(/^run_/), status: "queued" });
    expect(await front.thread("t")).toMatchObject({ graph: "words", version: 1, tenant: "acme", owner: "ann" });
    expect(startedWords).toEqual([]);
    await serve(worker, ["done"]);
    expect((await getState(graph, { store: front, thread: "t" })).state.log).toEqual(["a"]);
    expect(await listRuns(front, { thread: "t" })).toMatchObject([{ id: submitted.run, status: "done", ...parties }]);
  });

  test("is answered by another owner of the store, which starts no node, and continued by the engine", async () => {
    const [front, worker] = open();
    await submit(graph, { store: front, thread: "t", input: { word: "ask" } });
    await serve(worker, ["waiting"]);
    const answering = { store: front, thread: "t", answers: { ok: true }, by: "Kim" };
    const submitted = await submitAnswers(graph, { ...answering, key: "click-1" });
    const [row] = await listRuns(front, { thread: "t" });
    expect(submitted).toEqual({ thread: "t", run: row?.id, status: "paused" });
    expect(startedWords).toEqual(["ask"]);
    await expect(submitAnswers(graph, answering)).rejects.toMatchObject({
      code: "already_answered",
      details: { answer: true, answeredBy: "Kim" },
    });
    await serve(worker, ["done"]);
    expect(startedWords).toEqual(["ask", "ask"]);
    expect((await submitAnswers(graph, { ...answering, key: "click-1" })).status).toBe("done");
    // @ts-expect-error an interrupt that the graph does not declare
    expect(await getCode(submitAnswers(graph, { ...answering, answers: { no: true } }))).toBe("unknown_interrupt");
    // @ts-expect-error an option of execution
    expect(await getCode(submitAnswers(graph, { ...answering, secrets: new Map() }))).toBe("invalid_option");
  });

  test("gets a thread of its own without the option thread [PK7]", async () => {
    const [front, worker] = open();
    const one = await submit(graph, { store: front, input: { word: "a" } });
    const two = await submit(graph, { store: front, input: { word: "b" } });
    expect(one.thread).not.toBe(two.thread);
    await serve(worker, ["done"], one.thread);
    await serve(worker, ["done"], two.thread);
    expect([...startedWords].sort()).toEqual(["a", "b"]);
  });

  test("is submitted once under a key: a repeat returns the run with its current status [PK7]", async () => {
    const [front, worker] = open();
    const options = { thread: "t", input: { word: "a" }, key: "k", metadata: { one: 1, two: 2 } };
    const first = await submit(graph, { store: front, ...options });
    expect(await submit(graph, { store: worker, ...options, metadata: { two: 2, one: 1 } })).toEqual(first);
    await serve(worker, ["done"]);
    expect(await submit(graph, { store: front, ...options })).toEqual({ ...first, status: "done" });
    expect(startedWords).toEqual(["a"]);
    const concurrent = { thread: "t", input: { word: "b" }, key: "k2" };
    const runs = await Promise.all([front, worker].map((store) => submit(graph, { store, ...concurrent })));
    expect(new Set(runs.map((each) => each.run)).size).toBe(1);
  });

  test("is refused with key_reused when its key has a run with another input, metadata or graph [PK7]", async () => {
    const [front, worker] = open();
    const options = { thread: "t", input: { word: "a" }, key: "k" };
    const { run: id } = await submit(graph, { store: front, ...options });
    const expectRefusals = async (): Promise<void> => {
      await expect(submit(graph, { store: worker, ...options, input: { word: "b" } })).rejects.toMatchObject({
        code: "key_reused",
        details: { run: id },
      });
      expect(await getCode(submit(graph, { store: worker, ...options, metadata: { a: 1 } }))).toBe("key_reused");
    };
    await expectRefusals();
    await serve(worker, ["done"]);
    await expectRefusals();
    expect(await listStatuses(front)).toEqual(["done"]);
    await createThread(front, { thread: "u" });
    await submit(graph, { store: front, ...options, thread: "u" });
    expect(await getCode(submit(other, { store: front, ...options, thread: "u" }))).toBe("key_reused");
  });

  test("waits behind the runs of its thread by default, and with reject is refused while the thread is busy [PK7]", async () => {
    const [front, worker] = open();
    const say = (word: string, onBusy?: "reject") =>
      submit(graph, { store: front, thread: "t", input: { word }, ...(onBusy === undefined ? {} : { onBusy }) });
    await say("a", "reject");
    expect(await getCode(say("b", "reject"))).toBe("thread_busy");
    await serve(worker, ["done"]);
    await say("ask", "reject");
    await serve(worker, ["waiting", "done"]);
    expect(await listStatuses(front)).toEqual(["waiting", "done"]);
    expect(await getCode(say("b", "reject"))).toBe("thread_busy");
    await say("b");
    expect(await listStatuses(front)).toEqual(["queued", "waiting", "done"]);
    await resume(graph, { store: worker, thread: "t", answers: { ok: true } }).result;
    await serve(worker, ["done", "done", "done"]);
    expect((await getState(graph, { store: front, thread: "t" })).state.log).toEqual(["a", "ask", "b"]);
  });

  test("pre-empts a waiting run with cancel when an engine finds it [PK7]", async () => {
    const [front, worker] = open();
    await run(graph, { store: worker, thread: "t", input: { word: "ask" } }).result;
    await submit(graph, { store: front, thread: "t", input: { word: "b" }, onBusy: "cancel" });
    await serve(worker, ["done", "cancelled"]);
    expect(await listStatuses(front)).toEqual(["done", "cancelled"]);
    expect((await getState(graph, { store: front, thread: "t" })).state.log).toEqual(["b"]);
  });

  test("is refused with an invalid input, and no thread is created [PK7]", async () => {
    const [front, worker] = open();
    const submitAny = (options: object): Promise<unknown> =>
      getCode(submit(graph, { store: front, thread: "t", ...options } as never));
    expect(await submitAny({ input: { word: 7 } })).toBe("invalid_input");
    expect(await submitAny({ input: {} })).toBe("invalid_input");
    expect(await submitAny({ input: { word: "a" }, thread: "a b" })).toBe("invalid_id");
    expect(await submitAny({ input: { word: "a" }, tenant: "" })).toBe("invalid_option");
    expect(await submitAny({ input: { word: "a" }, context: {} })).toBe("invalid_option");
    expect(await submitAny({ input: { word: "a" }, thread: undefined, key: "k" })).toBe("invalid_option");
    expect(await submitAny({ input: { word: "a" }, store: undefined })).toBe("invalid_option");
    expect(await front.thread("t")).toBeUndefined();
    await submit(graph, { store: front, thread: "t", input: { word: "a" } });
    expect(await getCode(submit(other, { store: front, thread: "t", input: { word: "a" } }))).toBe("graph_changed");
    expect(await submitAny({ input: { word: "a" }, tenant: "acme" })).toBe("invalid_option");
    await serve(worker, ["done"]);
    await submit(graph, { store: front, thread: "t", input: {} as { word: string } });
    await serve(worker, ["done", "done"]);
    expect(startedWords).toEqual(["a", "a"]);
  });
});
