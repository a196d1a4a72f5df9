/** Two processes on one file: inputs and cancels of one process reach the process that owns the run. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { channel, defineGraph, defineState, END, getState, run, START, type Store, sqliteStore } from "statewright";
import { listRuns } from "statewright/inspect";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as z from "zod";

const Words = defineState({ word: z.string(), log: channel.list(z.string()) });

let home: string;
let owner: Store;
let other: Store;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "statewright-line-"));
  const open = (): Store => sqliteStore(join(home, "line.db"), { durability: "normal" });
  [owner, other] = [open(), open()];
});

afterEach(async () => {
  await owner.close();
  await other.close();
  rmSync(home, { recursive: true, force: true });
});

/** Starts a run that stays in its first node until it is released. */
function createHeldGraph() {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  let entered = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    entered = resolve;
  });
  const graph = defineGraph({ name: "line", version: 1, state: Words })
    .nodes({
      first: async ({ word }) => {
        entered();
        if (word === "held") await gate;
        return { log: [`${word} 1`] };
      },
      second: ({ word }) => ({ log: [`${word} 2`] }),
    })
    .edges({ [START]: "first", first: "second", second: END });
  return { graph, open, started };
}

/** Returns the log of the thread once no input of it is queued or active. */
async function restingLog(
  graph: ReturnType<typeof createHeldGraph>["graph"],
  thread: string,
): Promise<readonly string[]> {
  while ((await listRuns(owner, { thread, status: ["queued", "running"] })).length > 0)
    await new Promise((resolve) => setImmediate(resolve));
  return (await getState(graph, { store: owner, thread })).state.log;
}

test("in a file, the owner sees an input that ends its run at the next commit, ends the run, and starts the input [E27]", async () => {
  for (const [onBusy, log] of [
    ["enqueue", ["held 1", "held 2", "new 1", "new 2"]],
    ["cancel", ["held 1", "new 1", "new 2"]],
    ["rollback", ["new 1", "new 2"]],
  ] as const) {
    const { graph, open, started } = createHeldGraph();
    const first = run(graph, { store: owner, thread: onBusy, input: { word: "held" } });
    await started;
    const next = await run(graph, { store: other, thread: onBusy, input: { word: "new" }, onBusy }).result;
    expect(next, onBusy).toMatchObject({ status: "queued", state: { word: "held", log: [] } });
    open();
    expect((await first.result).status, onBusy).toBe(onBusy === "enqueue" ? "done" : "cancelled");
    expect(await restingLog(graph, onBusy), onBusy).toEqual(log);
    expect(
      (await listRuns(other, { thread: onBusy })).map(({ status }) => status),
      onBusy,
    ).toEqual(["done", onBusy === "enqueue" ? "done" : "cancelled"]);
  }
});

test("in a file, a queued input cancelled by its own process never starts in the owner [E27]", async () => {
  const { graph, open, started } = createHeldGraph();
  const first = run(graph, { store: owner, thread: "t", input: { word: "held" } });
  await started;
  const next = run(graph, { store: other, thread: "t", input: { word: "new" }, onBusy: "enqueue" });
  expect((await next.result).status).toBe("queued");
  next.cancel("not needed");
  while ((await listRuns(other, { thread: "t", status: "queued" })).length > 0)
    await new Promise((resolve) => setImmediate(resolve));
  open();
  await first.result;
  expect(await restingLog(graph, "t")).toEqual(["held 1", "held 2"]);
  expect(await listRuns(owner, { thread: "t", status: "cancelled" })).toMatchObject([{ reason: "not needed" }]);
});
