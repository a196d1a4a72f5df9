/** Random values of every kind in state and journal are equal after a crash of the process. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { recover, sqliteStore } from "statewright";
import { afterAll, expect, test } from "vitest";
import { createKeepingGraph, createValues } from "../../support/processes/values-process.ts";

const home = mkdtempSync(join(tmpdir(), "statewright-values-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("any value is equal after it was saved, the process was killed, and another process has read it [E48]", async () => {
  const [file, seed, count] = [join(home, "values.db"), 7, 60];
  const script = fileURLToPath(new URL("../../support/processes/values-process.ts", import.meta.url));
  const died = spawnSync(process.execPath, [script, file, String(seed), String(count)], { encoding: "utf8" });
  expect([died.signal, died.stderr]).toEqual(["SIGKILL", ""]);
  const throwRepeated = (nth: number): never => {
    throw new Error(`the step of ${nth} is done again`);
  };
  const graph = createKeepingGraph(createValues(seed, count), throwRepeated, () => Promise.resolve());
  const store = sqliteStore(file, { durability: "normal" });
  const ends = await Promise.all((await recover({ store, graphs: [graph] })).map(({ result }) => result));
  expect(ends).toHaveLength(count);
  const other = ends.filter(
    ({ state }) => JSON.stringify((state as { seen: unknown }).seen) !== "[true,true,true,true]",
  );
  expect(other).toEqual([]);
  await store.close();
}, 60_000);
