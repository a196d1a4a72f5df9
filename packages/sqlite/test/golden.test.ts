/** Files of every format that was released: today's code opens each and goes on with all that stands in it. */
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import {
  checkRuns,
  getState,
  history,
  listRuns,
  longTermStore,
  readEvents,
  recover,
  resume,
  type Store,
} from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { virtualClock } from "@statewright/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asks, breaks, dies, nests } from "./golden/graphs.ts";
import { goldenFile, makeGolden, newestFormat } from "./golden/make.ts";
import { folder } from "./support/stores.ts";

const formats = Array.from({ length: newestFormat }, (_, index) => index + 1);
const graphs = [asks, breaks, dies, nests];

describe.each(formats)("a file of format %i", (format) => {
  const home = folder();
  const path = join(home.path, "golden.db");
  const world = virtualClock({ now: 1_750_000_000_000 + 3_600_000 });
  let store: Store;
  beforeAll(async () => {
    const golden = goldenFile(format);
    if (existsSync(golden)) copyFileSync(golden, path);
    // The newest format has its file when it is released; until then one is made of it here.
    else if (format === newestFormat) await makeGolden(path);
    else throw new Error(`${golden} is missing`);
    store = sqliteStore(path, { durability: "normal" });
  });
  afterAll(async () => {
    await store.close();
    home.remove();
  });
  const given = { context: { isBroken: false }, world };

  test("every open run goes on, and the check writes nothing", async () => {
    const checks = await checkRuns(store, graphs);
    const verdicts = checks.map(({ run, verdict }) => [run.thread, run.status, verdict]);
    expect(verdicts.sort()).toEqual([
      ["dead", "crashed", "goes on"],
      ["failed", "failed", "goes on"],
      ["inside", "waiting", "goes on"],
      ["timer", "waiting", "goes on"],
      ["waits", "queued", "goes on"],
      ["waits", "waiting", "goes on"],
    ]);
  });

  test("what waits takes its answer, and what is queued behind it begins", async () => {
    const resumed = await resume(asks, { store, thread: "waits", answers: { approve: "yes" } as never, ...given })
      .result;
    expect(resumed).toMatchObject({ status: "waiting", interrupts: [{ key: "late" }] });
    const done = await resume(asks, { store, thread: "waits", answers: { late: "now" } as never, ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["prepared", "yes", "now"] } });
    const next = async () => (await listRuns(store, { thread: "waits", key: "next" }))[0];
    while ((await next())?.status !== "waiting") await world.settle();
    expect(await next()).toMatchObject({ status: "waiting", metadata: { from: "golden" } });
  });

  test("a question whose time is over meanwhile has the answer that was declared for that", async () => {
    expect(await store.timers({ thread: "timer" })).toMatchObject([{ kind: "expiry", about: "late" }]);
    const done = await resume(asks, { store, thread: "timer", ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["prepared", "yes", "nobody"] } });
  });

  test("a step that was recorded is not done again, and the result of its sibling is taken", async () => {
    const done = await resume(breaks, { store, thread: "failed", ...given }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["sound", "first", "second"] } });
  });

  test("a graph inside goes on in the middle of its call", async () => {
    const done = await resume(nests, {
      store,
      thread: "inside",
      answers: { "research.scope": "wide" } as never,
      ...given,
    }).result;
    expect(done).toMatchObject({ status: "done", state: { log: ["looked", "wide"] } });
  });

  test("a fork goes its own way, and what is over can be read from its beginning", async () => {
    const asked = await resume(asks, { store, thread: "done", branch: "side", ...given }).result;
    expect(asked).toMatchObject({ status: "waiting", state: { log: ["prepared", "otherwise"] } });
    expect((await getState(asks, { store, thread: "done", branch: "main" })).state).toEqual({
      log: ["prepared", "yes", "in time"],
    });
    const steps = [];
    for await (const { source, node } of history(asks, { store, thread: "done", branch: "main" }))
      steps.push([source, node]);
    expect(steps).toEqual([
      ["step", "late"],
      ["step", "approve"],
      ["step", "prepare"],
      ["input", undefined],
    ]);
    const told = [];
    for await (const { type } of readEvents({ store, thread: "done" })) told.push(type);
    expect(told).toContain("run.completed");
  });

  test("an item of the long-term store is read, and found by its words until its end", async () => {
    const root = longTermStore(store, { world });
    const kept = { key: "stays", value: { text: "A word that is found" }, createdAt: 1_750_000_000_000 };
    expect(await root.search({ text: "wor* found" })).toMatchObject([kept]);
    expect(await root.under("golden", "notes").list()).toMatchObject([kept]);
  });

  test("what died in a once node is in doubt, and is not run again", async () => {
    const [handle] = await recover({ store, graphs, world, context: () => given.context });
    const asked = await handle?.result;
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt", node: "pay" }] });
  });
});
