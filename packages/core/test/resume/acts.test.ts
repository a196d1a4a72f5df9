/** Acts on many runs and threads: counted first, with progress, and continued after a stop. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  type ActProgress,
  bulk,
  channel,
  defineGraph,
  defineState,
  END,
  getState,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
  submit,
} from "../../src/index.ts";
import { createThread, listRuns, listThreads } from "../../src/inspect.ts";
import { getFailure, ignoreResult } from "../support/failure.ts";
import { createVirtualWorld, type VirtualWorld } from "../support/virtual-world.ts";

/** Graph whose first node fails, hangs or is slow as long as `isBroken`. */
function createOrders(world: VirtualWorld) {
  const control = { isBroken: true, starts: [] as string[], active: 0, mostActive: 0 };
  const graph = defineGraph({
    name: "orders",
    state: defineState({ how: z.string().default(""), log: channel.list(z.string()) }),
  })
    .nodes({
      first: ({ how }) => ({ log: [how] }),
      second: async ({ how }) => {
        control.starts.push(how);
        control.active += 1;
        control.mostActive = Math.max(control.mostActive, control.active);
        await new Promise<void>((resolve) => world.schedule.soon(resolve));
        control.active -= 1;
        if (control.isBroken && how.startsWith("fail")) throw new Error(`${how} failed`);
        if (control.isBroken && how.startsWith("hang"))
          await new Promise<void>((resolve) => void world.schedule.after(1e9, resolve));
        return { log: ["second"] };
      },
    })
    .edges({ [START]: "first", first: "second", second: END });
  return { graph, control };
}

interface Fixture {
  readonly world: VirtualWorld;
  readonly store: MemoryStore;
  readonly graph: ReturnType<typeof createOrders>["graph"];
  readonly control: ReturnType<typeof createOrders>["control"];
}

/** Runs one thread for each word; a thread whose word begins with `pause` stops before its second node. */
async function createFixture(words: readonly string[], tenant?: string): Promise<Fixture> {
  const world = createVirtualWorld();
  const { graph, control } = createOrders(world);
  const first = memoryStore();
  for (const how of words) {
    const breakpoints = how.startsWith("pause") ? { breakpoints: { before: ["second"] as const } } : {};
    const options = { store: first, world, thread: how, input: { how }, ...breakpoints };
    const { result } = run(graph, tenant === undefined ? options : { ...options, tenant });
    if (how.startsWith("hang")) ignoreResult(result);
    else await result.catch(ignore);
  }
  await world.waitUntilIdle();
  first.crash();
  return { world, store: first.peer(), graph, control };
}

function ignore(): void {
  // The failure of a run is in the store.
}

async function listStatuses(store: Store): Promise<readonly string[]> {
  return (await listRuns(store)).map(({ thread, status }) => `${thread} ${status}`).sort();
}

describe("an act on many runs", () => {
  test("a dry run counts the matching runs and changes nothing [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["fail1", "fail2", "pause1", "hang1", "ok"]);
    const before = await listStatuses(store);
    const { starts } = control;
    const counted = starts.length;
    const options = { store, world, graphs: [graph], filter: {}, dryRun: true };
    const empty = { done: 0, skipped: 0, failed: 0, isComplete: false, errors: [] };
    expect(await bulk.retryRuns(options)).toEqual({ matched: 2, ...empty });
    expect(await bulk.resumeRuns(options)).toEqual({ matched: 2, ...empty });
    expect(await bulk.deleteThreads(store, { filter: { search: "fail" }, dryRun: true })).toEqual({
      matched: 2,
      ...empty,
    });
    expect([await listStatuses(store), starts.length]).toEqual([before, counted]);
  });

  test("bulk.resumeRuns continues paused and crashed runs of its filter, and no others [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["fail1", "pause1", "hang1", "pause2", "ok"]);
    control.isBroken = false;
    const report = await bulk.resumeRuns({ store, world, graphs: [graph], filter: { thread: "pause2" } });
    expect(report).toMatchObject({ matched: 1, done: 1, isComplete: true, errors: [] });
    const progress: ActProgress[] = [];
    const onProgress = (each: ActProgress) => void progress.push(each);
    expect(await bulk.resumeRuns({ store, world, graphs: [graph], filter: {}, onProgress })).toMatchObject({
      matched: 2,
      done: 2,
      failed: 0,
    });
    expect(progress.map(({ done }) => done)).toEqual([1, 2]);
    expect(await listStatuses(store)).toEqual(["fail1 failed", "hang1 done", "ok done", "pause1 done", "pause2 done"]);
  });

  test("bulk.retryRuns continues failed runs with their finished work, and reports those that fail again [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["fail1", "fail2", "fail3", "pause1"]);
    control.isBroken = true;
    const again = await bulk.retryRuns({ store, world, graphs: [graph], filter: { thread: "fail2" } });
    expect(again).toMatchObject({ matched: 1, done: 0, failed: 1 });
    expect(again.errors.map(({ thread, error }) => [thread, error instanceof Error && error.message])).toEqual([
      ["fail2", expect.stringContaining("fail2 failed")],
    ]);
    control.isBroken = false;
    expect(await bulk.retryRuns({ store, world, graphs: [graph], filter: {}, concurrency: 2 })).toMatchObject({
      matched: 3,
      done: 3,
      errors: [],
    });
    expect((await getState(graph, { store, thread: "fail1" })).state.log).toEqual(["fail1", "second"]);
    expect(await listStatuses(store)).toEqual(["fail1 done", "fail2 done", "fail3 done", "pause1 paused"]);
  });

  test("a run that another process continued before the act reached it is skipped [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["fail1", "fail2"]);
    control.isBroken = false;
    const other = store.peer();
    let second: Promise<unknown> | undefined;
    const report = await bulk.retryRuns({
      ...{ store: { ...store, runs: readAfterSecond }, world, graphs: [graph], filter: {}, concurrency: 1 },
      onProgress: () => {
        second ??= resume(graph, { store: other, world, thread: "fail1" }).result;
      },
    });
    /** The second run is continued elsewhere before the act reads its row again. */
    async function readAfterSecond(filter?: Parameters<Store["runs"]>[0]) {
      await second;
      return await store.runs(filter);
    }
    expect(report).toMatchObject({ matched: 2, done: 1, skipped: 1, failed: 0, isComplete: true });
    expect(control.starts).toHaveLength(4);
  });

  test("bulk.cancelRuns cancels queued runs, runs at rest and runs at work, and failed ones only by their status [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["fail1", "pause1", "hang1", "ok"]);
    await submit(graph, { store, world, thread: "queued", input: { how: "queued" } });
    const working = run(graph, { store, world, thread: "working", input: { how: "hang" } });
    await world.waitUntilIdle();
    const starts = control.starts.length;
    const options = { world, reason: "the tenant left", by: "ann" };
    expect(await bulk.cancelRuns(store, { filter: {}, dryRun: true })).toMatchObject({ matched: 4, done: 0 });
    expect(await bulk.cancelRuns(store, { filter: {}, ...options })).toMatchObject({ matched: 4, done: 4, errors: [] });
    expect(await working.result).toMatchObject({ status: "cancelled", reason: "the tenant left" });
    expect(await listStatuses(store)).toEqual([
      "fail1 failed",
      "hang1 cancelled",
      "ok done",
      "pause1 cancelled",
      "queued cancelled",
      "working cancelled",
    ]);
    expect(await bulk.cancelRuns(store, { filter: { status: "failed" }, ...options })).toMatchObject({ done: 1 });
    expect(await bulk.cancelRuns(store, { filter: {}, ...options })).toMatchObject({
      matched: 0,
      done: 0,
      isComplete: true,
    });
    expect(control.starts).toHaveLength(starts);
  });

  test("a run that ends before bulk.cancelRuns reaches it is skipped [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["pause1", "pause2"]);
    control.isBroken = false;
    const report = await bulk.cancelRuns(
      {
        ...store,
        request: async (write) => {
          if (write.thread === "pause1") await resume(graph, { store: store.peer(), world, thread: "pause1" }).result;
          return await store.request(write);
        },
      },
      { filter: {}, world },
    );
    expect(report).toMatchObject({ matched: 2, done: 1, skipped: 1, failed: 0 });
  });

  test("a run of a graph that is not served is reported, and the others are continued [Y33]", async () => {
    const { store, world, graph, control } = await createFixture(["fail1"]);
    const other = defineGraph({ name: "other", state: defineState({}) })
      .nodes({
        only: () => {
          throw new Error("no");
        },
      })
      .edges({ [START]: "only", only: END });
    await getFailure(run(other, { store, world, thread: "other" }).result, "node_failed");
    control.isBroken = false;
    const { done, failed, errors } = await bulk.retryRuns({ store, world, graphs: [graph], filter: {} });
    expect([done, failed]).toEqual([1, 1]);
    expect(errors).toMatchObject([{ thread: "other", error: { code: "invalid_option" } }]);
  });

  test("a run that starts after the act began is not reached [Y33]", async () => {
    const words = Array.from({ length: 120 }, (_, nth) => `fail${nth}`);
    const { store, world, graph, control } = await createFixture(words);
    let late: Promise<unknown> | undefined;
    const report = await bulk.retryRuns({
      ...{ store, world, graphs: [graph], filter: {} },
      onProgress: () => {
        late ??= run(graph, { store, world, thread: "late", input: { how: "fail-late" } }).result.catch(ignore);
      },
    });
    await late;
    expect(report).toMatchObject({ matched: 120, failed: 120, isComplete: true });
    expect(control.starts.filter((how) => how === "fail-late")).toHaveLength(1);
  });

  test("an act that its signal stopped continues after the cursor of its last progress [Y33]", async () => {
    const words = Array.from({ length: 25 }, (_, nth) => `fail${nth}`);
    const { store, world, graph, control } = await createFixture(words);
    control.starts.length = 0;
    const controller = new AbortController();
    let last: ActProgress | undefined;
    const stopped = await bulk.retryRuns({
      ...{ store, world, graphs: [graph], filter: {}, concurrency: 3, signal: controller.signal },
      onProgress: (progress) => {
        last = progress;
        if (progress.failed === 10) controller.abort();
      },
    });
    expect(stopped.isComplete).toBe(false);
    const rest = await bulk.retryRuns({ store, world, graphs: [graph], filter: {}, cursor: last?.cursor ?? "" });
    expect([stopped.failed + rest.failed, rest.isComplete]).toEqual([25, true]);
    expect([...control.starts].sort()).toEqual([...words].sort());
  });

  test("an act pages through more rows than one page, each once, with a bounded number at the same time [Y33]", async () => {
    const words = Array.from({ length: 230 }, (_, nth) => `fail${nth}`);
    const { store, world, graph, control } = await createFixture(words);
    control.isBroken = false;
    control.starts.length = 0;
    expect(await bulk.retryRuns({ store, world, graphs: [graph], filter: {}, concurrency: 5 })).toMatchObject({
      matched: 230,
      done: 230,
      isComplete: true,
    });
    expect([new Set(control.starts).size, control.starts.length, control.mostActive]).toEqual([230, 230, 5]);
  });

  test("bulk.deleteThreads deletes the threads of its filter, and keeps one that changes meanwhile [Y33]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    const { graph } = createOrders(world);
    for (const tenant of ["acme", "other"])
      for (let nth = 0; nth < 3; nth++) await createThread(store, { thread: `${tenant}${nth}`, tenant, world });
    await world.advance(1_000);
    let isFirst = true;
    const report = await bulk.deleteThreads(store, {
      filter: { tenant: "acme" },
      concurrency: 1,
      onProgress: () => {
        if (isFirst) ignoreResult(run(graph, { store, world, thread: "acme0", input: { how: "hang" } }).result);
        isFirst = false;
      },
    });
    const kept = (await listThreads(store)).map(({ id }) => id).sort();
    expect(kept).toEqual(["acme0", "other0", "other1", "other2"]);
    expect(report.matched).toBe(3);
    expect(report.done).toBe(2);
    expect(report.skipped + report.failed).toBe(1);
  });

  test("an unknown status, option or cursor of an act is refused [Y33]", async () => {
    const store = memoryStore();
    const refuse = async (options: object, word: string): Promise<void> => {
      const error = await getFailure(bulk.retryRuns({ store, graphs: [], filter: {}, ...options }), "invalid_option");
      expect(error.message).toContain(word);
    };
    await refuse(
      { filter: { status: "done" } },
      'bulk.retryRuns.filter: `status` must be "failed" or "parked", got "done".',
    );
    await refuse(
      { filter: { status: "active" } },
      'bulk.retryRuns.filter: `status` must be a run status, got "active".',
    );
    await refuse({ filter: { limit: 3 } }, "limit");
    await refuse({ filter: undefined }, "filter");
    await refuse({ cursor: "x" }, "cursor");
    await refuse({ concurrency: 0 }, "concurrency");
    await refuse({ limit: 3 }, "limit");
    expect(
      (await getFailure(bulk.deleteThreads(store, { filter: {}, cursor: "x" }), "invalid_option")).message,
    ).toContain("cursor");
  });

  test("a filter with an undefined value is refused, and does not match the rows of all values [Y33]", async () => {
    const { store, world, graph } = await createFixture([]);
    await submit(graph, { store, world, thread: "t", tenant: "acme", input: { how: "ok" } });
    const filter = { tenant: undefined } as object;
    for (const act of [
      bulk.cancelRuns(store, { filter }),
      bulk.resumeRuns({ store, graphs: [graph], filter }),
      bulk.retryRuns({ store, graphs: [graph], filter }),
      bulk.deleteThreads(store, { filter }),
    ])
      expect((await getFailure(act, "invalid_option")).message).toContain(
        "filter: `tenant` must be a value, got undefined. Pass the value, or remove the option",
      );
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["queued"]);
  });

  test("a store in place of the options of bulk.resumeRuns is refused with the call to write [Y33]", async () => {
    const error = await getFailure(bulk.resumeRuns(memoryStore() as never), "invalid_option");
    expect(error.message).toContain(
      "expected options with a store, got a store. Write bulk.resumeRuns({ store, graphs, ",
    );
  });

  test("an error of the store that ends by itself stops the act with that error [Y33]", async () => {
    const { store } = await createFixture(["fail1", "fail2"]);
    const failing: Store = {
      ...store,
      delete: () =>
        Promise.reject(
          new StatewrightError("store_unreachable", { what: "no connection", next: "Wait for the server" }),
        ),
    };
    await getFailure(bulk.deleteThreads(failing, { filter: {} }), "store_unreachable");
    expect(await listStatuses(store)).toHaveLength(2);
  });
});
