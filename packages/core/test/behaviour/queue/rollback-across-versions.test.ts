/** Rollback of a run on a thread that another graph version wrote before or during the run. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineMigration,
  defineState,
  END,
  getState,
  memoryStore,
  resume,
  run,
  START,
  subgraph,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";

/** Payment graph that interrupts before it takes money, with a persistent subgraph that counts. */
const centBook = defineGraph({
  name: "book",
  version: 1,
  state: defineState({ by: z.number(), cents: z.number().default(0) }),
})
  .nodes({ add: ({ by, cents }) => ({ cents: cents + by }) })
  .edges({ [START]: "add", add: END });
const cents = defineGraph({
  name: "till",
  version: 1,
  state: defineState({ cents: z.number(), who: z.string().default("nobody"), log: channel.list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({
    count: subgraph(centBook, {
      persistence: "per-thread",
      input: (state) => ({ by: state.cents }),
      output: (book) => ({ log: [`${book.cents} cents`] }),
    }),
    pay: async ({ who }, { interrupt }) => {
      if (who !== "trusted") await interrupt("ok");
    },
    thank: ({ who }) => ({ log: [`thanks ${who}`] }),
  })
  .edges({ [START]: "count", count: "pay", pay: "thank", thank: END });

const euroBook = defineGraph({
  name: "book",
  version: 2,
  state: defineState({ by: z.number(), euros: z.number().default(0) }),
})
  .nodes({ add: ({ by, euros }) => ({ euros: euros + by }) })
  .edges({ [START]: "add", add: END });
const euros = defineGraph({
  name: "till",
  version: 2,
  state: defineState({ euros: z.number(), who: z.string().default("nobody"), log: channel.list(z.string()) }),
  interrupts: { ok: z.boolean(), sure: z.boolean() },
})
  .nodes({
    ledger: subgraph(euroBook, {
      persistence: "per-thread",
      input: (state) => ({ by: state.euros }),
      output: (book) => ({ log: [`${book.euros} euros`] }),
    }),
    pay: async ({ who }, { interrupt }) => {
      if (who !== "trusted") await interrupt("ok");
    },
    thank: async ({ who }, { interrupt }) => {
      if (who === "doubtful") await interrupt("sure");
      return { log: [`thanks ${who}`] };
    },
  })
  .edges({ [START]: "ledger", ledger: "pay", pay: "thank", thank: END });

const toEuros = defineMigration({
  from: cents,
  to: euros,
  nodes: { count: "ledger" },
  state: (old) => ({ euros: old.cents / 100, log: old.log.map((line) => `old: ${line}`) }),
  inner: {
    count: defineMigration({ from: centBook, to: euroBook, state: (old) => ({ euros: old.cents / 100 }) }),
  },
});
const before = { euros: 1, who: "trusted", log: ["old: 100 cents", "old: thanks trusted"] };

/** Creates a thread of the old version with a finished first run and a waiting second run. */
async function waitingThread(who: string) {
  const store = memoryStore();
  const at = { store, thread: "t" } as const;
  await run(cents, { ...at, input: { cents: 100, who: "trusted" } }).result;
  expect((await run(cents, { ...at, input: { cents: 900, who } }).result).status).toBe("waiting");
  return { ...at, migrations: [toEuros] };
}

test("a rollback of a run of an older graph version restores the previous state as migrated [E27, E50]", async () => {
  const at = await waitingThread("ann");
  const next = await run(euros, { ...at, input: { euros: 5 }, onBusy: "rollback" }).result;
  expect(next).toMatchObject({
    status: "done",
    state: { ...before, euros: 5, log: [...before.log, "6 euros", "thanks trusted"] },
  });
  expect((await listRuns(at.store)).map(({ status }) => status)).toEqual(["done", "cancelled", "done"]);
});

test("a rollback of a run migrated halfway restores its previous state, although that state was never migrated [E27, E50]", async () => {
  const at = await waitingThread("doubtful");
  const resumed = await resume(euros, { ...at, answers: { ok: true } }).result;
  expect(resumed).toMatchObject({ status: "waiting", state: { euros: 9 } });
  // A process without the migration would write values of the old version: the run and the input stay unchanged.
  const { migrations: _, ...without } = at;
  const refusal = await getFailure(
    run(euros, { ...without, input: { euros: 7 }, onBusy: "rollback" }).result,
    "needs_migration",
  );
  expect(refusal.message).toContain("the rollback restores a state written by version 1");
  expect((await listRuns(at.store)).map(({ status }) => status)).toEqual(["queued", "waiting", "done"]);
  expect((await getState(euros, without)).state).toMatchObject({ euros: 9 });
  const next = await run(euros, { ...at, input: { euros: 5 }, onBusy: "rollback" }).result;
  expect(next).toMatchObject({
    status: "done",
    state: { euros: 5, log: [...before.log, "8 euros", "thanks trusted", "13 euros", "thanks trusted"] },
  });
  expect((await listRuns(at.store)).map(({ status }) => status)).toEqual(["done", "done", "cancelled", "done"]);
});
