/** Lists of runs and threads in a file with many of them. */
import { join } from "node:path";
import type { RunStatus } from "@statewright/core";
import { sqliteStore } from "@statewright/sqlite";
import { expect, test } from "vitest";
import { running, tell } from "./support/rows.ts";
import { folder } from "./support/stores.ts";

test("of many runs, those of a status, of a graph, of a time, of a key and of a thread are found", async () => {
  const home = folder();
  const file = join(home.path, "agent.db");
  const store = sqliteStore(file, { durability: "normal" });
  const statuses: readonly RunStatus[] = ["done", "done", "done", "waiting"];
  await Promise.all(
    Array.from({ length: 2_000 }, async (_, nth) => {
      const [thread, graph] = [`t${nth}`, nth % 100 === 0 ? "rare" : "common"];
      const { epoch, branch } = await store.claim({ thread, graph, version: 1, shape: "s", at: nth });
      const run = { ...running(`r${nth}`, thread), graph, startedAt: nth, key: `k${nth}`, status: statuses[nth % 4] };
      await tell(store, { thread, branch, epoch, seq: 1, run: run as ReturnType<typeof running>, release: true });
    }),
  );
  expect(await store.runs({ status: "waiting", limit: 5 })).toHaveLength(5);
  expect(await store.runs({ graph: "rare" })).toHaveLength(20);
  expect(await store.runs({ graph: "rare", since: 1_000, status: "done" })).toHaveLength(10);
  expect(await store.runs({ thread: "t7", key: "k7" })).toHaveLength(1);
  expect(await store.threads({ status: "waiting", limit: 3 })).toHaveLength(3);
  store.close();
  home.remove();
});
