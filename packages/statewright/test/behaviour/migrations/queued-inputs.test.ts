/** Inputs queued for one graph version that start under the next version. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  channel,
  checkRuns,
  defineGraph,
  defineMigration,
  defineState,
  END,
  engine,
  getState,
  run,
  START,
  sqliteStore,
  updateState,
} from "statewright";
import { listRuns } from "statewright/inspect";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as z from "zod";

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "statewright-queued-"));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const cents = defineGraph({
  name: "payment",
  version: 1,
  state: defineState({ cents: z.number(), log: channel.list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    pay: async (state, { interrupt }) => ({ log: [`${state.cents} cents ${await interrupt("ok")}`] }),
  })
  .edges({ [START]: "pay", pay: END });

const euros = defineGraph({
  name: "payment",
  version: 2,
  state: defineState({ euros: z.number(), log: channel.list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    pay: async (state, { interrupt }) => ({ log: [`${state.euros} euros ${await interrupt("ok")}`] }),
  })
  .edges({ [START]: "pay", pay: END });

const toEuros = defineMigration({
  from: cents,
  to: euros,
  state: (old) => ({ euros: old.cents / 100 }),
  input: (old) => ({ euros: (old.cents ?? 0) / 100 }),
});

test("an input queued for an older version starts migrated under the new version [E50]", async () => {
  const store = sqliteStore(join(home, "agent.db"));
  const given = { store, thread: "t" } as const;
  expect((await run(cents, { ...given, input: { cents: 100 } }).result).status).toBe("waiting");
  expect((await run(cents, { ...given, input: { cents: 250 }, onBusy: "cancel", key: "k" }).result).status).toBe(
    "waiting",
  );
  const queued = await run(cents, { ...given, input: { cents: 990 }, onBusy: "enqueue" }).result;
  expect(queued.status).toBe("queued");
  expect((await checkRuns(store, [euros])).map(({ verdict }) => verdict)).toContain("parks");
  expect((await checkRuns(store, [euros], { migrations: [toEuros] })).map(({ verdict }) => verdict)).toEqual([
    "continues",
    "migrates",
  ]);
  const serving = engine({ store, graphs: [euros], migrations: [toEuros] });
  await serving.start();
  expect((await serving.resume(euros, { thread: "t", answers: { ok: true } }).result).status).toBe("done");
  await expect.poll(async () => (await listRuns(store))[0]?.status).toBe("waiting");
  await serving.resume(euros, { thread: "t", answers: { ok: false } }).result;
  await serving.stop();
  expect((await getState(euros, given)).state).toMatchObject({
    euros: 9.9,
    log: ["2.5 euros true", "9.9 euros false"],
  });
  await store.close();
});

test("an update of a thread written by an older version migrates the thread first [E50, E45]", async () => {
  const store = sqliteStore(join(home, "agent.db"));
  const given = { store, thread: "t" } as const;
  expect((await run(cents, { ...given, input: { cents: 100 } }).result).status).toBe("waiting");
  await updateState(euros, { ...given, migrations: [toEuros], as: "pay", values: { log: ["by hand"] } });
  expect((await getState(euros, given)).state).toEqual({ euros: 1, log: ["by hand"] });
  await store.close();
});
