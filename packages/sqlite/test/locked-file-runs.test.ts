/** A run whose store refused all writes, including its pause: its row reads as running, and an engine continues it. */
import { join } from "node:path";
import { defineGraph, defineState, END, engine, run, START } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { listRuns } from "@statewright/core/inspect";
import { sqliteStore } from "@statewright/sqlite";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { createOpenSchema } from "./support/growing-graph.ts";
import { createFolder } from "./support/stores.ts";

test("an engine continues a run that could not pause while the file was locked, and starts the queued run", async () => {
  const home = createFolder();
  const file = join(home.path, "agent.db");
  const { schedule, ...world } = systemWorld();
  // Retry delays of the store elapse at once.
  const hasty = {
    ...world,
    schedule: { ...schedule, after: (_ms: number, work: () => void) => schedule.after(0, work) },
  };
  const store = sqliteStore(file, { durability: "normal", world: hasty });
  const stranger = new Database(file);
  const graph = defineGraph({ name: "line", state: defineState({ word: createOpenSchema<string>() }) })
    .nodes({
      first: ({ word }) => {
        if (word === "locked out" && stranger.open) stranger.exec("BEGIN IMMEDIATE");
      },
      second: () => ({}),
    })
    .edges({ [START]: "first", first: "second", second: END });
  const host = engine({ store, graphs: [graph], pollMs: 5 });
  await host.start();
  const halted = await host.run(graph, { thread: "t", input: { word: "locked out" } }).result;
  expect(halted).toMatchObject({ status: "paused", cause: { code: "store_locked" } });
  stranger.exec("ROLLBACK");
  stranger.close();
  expect((await run(graph, { store, thread: "t", input: { word: "next" }, onBusy: "enqueue" }).result).status).toBe(
    "queued",
  );
  while ((await listRuns(store, { status: "done" })).length < 2) await new Promise((resolve) => setImmediate(resolve));
  await host.stop();
  await store.close();
  home.remove();
});
