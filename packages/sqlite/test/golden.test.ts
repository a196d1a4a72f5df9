/** Files of every released format: the current code opens each file and continues its threads. */
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  checkRuns,
  getHistory,
  getState,
  longTermStore,
  memoryStore,
  recover,
  resume,
  type Store,
  streamEvents,
} from "@statewright/core";
import { importThread, listRuns } from "@statewright/core/inspect";
import { virtualClock } from "@statewright/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asks, breaks, calls, createEveryValue, dies, keeps, nests } from "./golden/graphs.ts";
import { createGoldenFile, getGoldenFile, getGoldenText, newestFormat } from "./golden/make.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

const formats = Array.from({ length: newestFormat }, (_, index) => index + 1);
const graphs = [asks, breaks, calls, dies, keeps, nests];

describe.each(formats)("a file of format %i", (format) => {
  const home = createFolder();
  const path = join(home.path, "golden.db");
  const world = virtualClock({ now: 1_750_000_000_000 + 3_600_000 });
  let store: Store;
  beforeAll(async () => {
    const golden = getGoldenFile(format);
    if (existsSync(golden)) copyFileSync(golden, path);
    // The golden file of the newest format is added with its release; until then the test creates one.
    else if (format === newestFormat) await createGoldenFile(path);
    else throw new Error(`${golden} is missing`);
    store = sqliteStore(path, { durability: "normal" });
  });
  afterAll(async () => {
    await store.close();
    home.remove();
  });
  const given = { context: { isBroken: false }, world };

  test("every open run of an older file can continue, and checkRuns writes nothing [E50]", async () => {
    const checks = await checkRuns(store, graphs);
    const verdicts = checks.map(({ run, verdict }) => [run.thread, run.status, verdict]);
    expect(verdicts.sort()).toEqual([
      ["calls", "waiting", "continues"],
      ["dead", "crashed", "continues"],
      ["failed", "failed", "continues"],
      ["inside", "waiting", "continues"],
      ["timer", "waiting", "continues"],
      ["values", "waiting", "continues"],
      ["waits", "queued", "continues"],
      ["waits", "waiting", "continues"],
    ]);
  });

  test("a waiting run of an older file takes its answer, and the queued run behind starts", async () => {
    const resumed = await resume(asks, { store, thread: "waits", answers: { approve: "yes" } as never, ...given })
      .result;
    expect(resumed).toMatchObject({ status: "waiting", interrupts: [{ key: "late" }] });
    const done = await resume(asks, { store, thread: "waits", answers: { late: "now" } as never, ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["prepared", "yes", "now"] } });
    const next = async () => (await listRuns(store, { thread: "waits", key: "next" }))[0];
    while ((await next())?.status !== "waiting") await world.waitUntilIdle();
    expect(await next()).toMatchObject({ status: "waiting", metadata: { from: "golden" } });
  });

  test("an interrupt of an older file whose expiry has passed gets its declared answer", async () => {
    expect(await store.timers({ thread: "timer" })).toMatchObject([{ kind: "expiry", about: "late" }]);
    const done = await resume(asks, { store, thread: "timer", ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["prepared", "yes", "nobody"] } });
  });

  test("a recorded step of an older file is not repeated, and the result of its sibling is used", async () => {
    const done = await resume(breaks, { store, thread: "failed", ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["sound", "first", "second"] } });
  });

  test("a subgraph of an older file continues in the middle of its call", async () => {
    const done = await resume(nests, {
      store,
      thread: "inside",
      answers: { "research.scope": "wide" } as never,
      ...given,
    }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["looked", "wide"] } });
  });

  test("values of every kind in an older file are read unchanged, in state and interrupt", async () => {
    const { state, interrupts } = await getState(keeps, { store, thread: "values" });
    expect((state as { readonly kept: unknown }).kept).toStrictEqual(createEveryValue());
    expect(interrupts[0]?.payload).toStrictEqual(createEveryValue());
    const done = await resume(keeps, { store, thread: "values", answers: { more: "yes" } as never, ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { kept: [...createEveryValue(), "yes"] } });
  });

  test("a completed tool call of an older file is not repeated, and the pending one takes its answer", async () => {
    const done = await resume(calls, { store, thread: "calls", answers: { choose: "left" } as never, ...given }).result;
    const said = (done.state as { readonly messages: readonly unknown[] }).messages;
    expect(said).toMatchObject([
      { id: "m1" },
      { role: "tool", callId: "call_pay", content: [{ type: "text", text: "paid" }] },
      { role: "tool", callId: "call_choose", content: [{ type: "text", text: "left" }] },
    ]);
  });

  test("a fork of an older file continues independently, and a finished run is readable from its start", async () => {
    const asked = await resume(asks, { store, thread: "done", branch: "side", ...given }).result;
    expect(asked).toMatchObject({ status: "waiting", state: { log: ["prepared", "otherwise"] } });
    expect((await getState(asks, { store, thread: "done", branch: "main" })).state).toEqual({
      log: ["prepared", "yes", "in time"],
    });
    const steps = [];
    for await (const { source, node } of getHistory(asks, { store, thread: "done", branch: "main" }))
      steps.push([source, node]);
    expect(steps).toEqual([
      ["step", "late"],
      ["step", "approve"],
      ["step", "prepare"],
      ["input", undefined],
    ]);
    const observed = [];
    for await (const { type } of streamEvents({ store, thread: "done" })) observed.push(type);
    expect(observed).toContain("run.completed");
  });

  test("a long-term item of an older file is read, and found by its words until it expires", async () => {
    const root = longTermStore(store, { world });
    const unexpiredNote = { key: "stays", value: { text: "A word that is found" }, createdAt: 1_750_000_000_000 };
    expect(await root.search({ text: "wor* found" })).toMatchObject([unexpiredNote]);
    expect(await root.under("golden", "notes").list()).toMatchObject([unexpiredNote]);
  });

  test("a once node of an older file that died is in doubt and does not run again", async () => {
    const [handle] = await recover({ store, graphs, world, context: () => given.context });
    const asked = await handle?.result;
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt", node: "pay" }] });
  });
});

test("a thread exported as text of format 1 is imported and continues with its queued runs", async () => {
  const world = virtualClock({ now: 1_750_000_000_000 + 3_600_000 });
  const store = memoryStore();
  await importThread(store, readFileSync(getGoldenText(1), "utf8"));
  const given = { store, thread: "waits", world, context: { isBroken: false } };
  await resume(asks, { ...given, answers: { approve: "yes" } as never }).result;
  const done = await resume(asks, { ...given, answers: { late: "now" } as never }).result;
  expect(done).toMatchObject({ status: "done", state: { log: ["prepared", "yes", "now"] } });
  await world.waitUntilIdle();
  expect(await listRuns(store, { key: "next" })).toMatchObject([{ status: "waiting", metadata: { from: "golden" } }]);
});
