import { copyFileSync } from "node:fs";
import { join } from "node:path";
import {
  defineGraph,
  defineState,
  END,
  fork,
  isStatewrightError,
  resume,
  run,
  START,
  submit,
  type World,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createThread, getSavedOutline, updateThread } from "@statewright/core/inspect";
import type { SqliteStore } from "@statewright/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { change } from "./support/database-file.ts";
import { createGrowingGraph, createOpenSchema, first, listEffects, listRounds } from "./support/growing-graph.ts";
import { createInterruptRow, createRunRow, createSuperstep, graph, saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

let home: ReturnType<typeof createFolder>;
let file: string;
let diary: string;

beforeEach(() => {
  home = createFolder();
  file = join(home.path, "agent.db");
  diary = join(home.path, "diary.txt");
});

afterEach(() => home.remove());

/** Returns details and message of a refused read. */
async function refusal(work: Promise<unknown>): Promise<{ readonly details: unknown; readonly message: string }> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isStatewrightError(error, "store_corrupt")) throw new Error(`not refused as damaged: ${String(error)}`);
  return error;
}

describe("a damaged thread", () => {
  /** Damaged part and the offered checkpoint; a run of 6 rounds has checkpoints 1 to 7. */
  const damages: Readonly<Record<string, { readonly sql: string; readonly lastGood: number }>> = {
    "the newest control state": {
      sql: "UPDATE checkpoints SET control = replace(control, 'grow', 'glow') WHERE key & 0xffffff = 5",
      lastGood: 4,
    },
    "a change that the newest state needs": {
      sql: "UPDATE deltas SET text = '99' WHERE key & 0xffffff = 5 AND text = '4'",
      lastGood: 4,
    },
    "several checkpoints": {
      sql: "UPDATE checkpoints SET hash = 'x' WHERE key & 0xffffff IN (3, 4, 5) AND key >> 24 = 1",
      lastGood: 2,
    },
  };
  for (const [what, { sql, lastGood }] of Object.entries(damages)) {
    test(`a thread with damage in ${what} is refused with its last good checkpoint, a fork from there continues, and damaged ones stay refused [F6]`, async () => {
      const rounds = 6;
      const graphs = createGrowingGraph(diary, 20, rounds);
      const store = sqliteStore(file);
      const interrupted = run(graphs, { store, thread: "t", input: first, maxSteps: 4 }).result;
      await expect(interrupted).rejects.toMatchObject({ code: "step_limit" });
      await run(createGrowingGraph(join(home.path, "other.txt"), 20, 3), { store, thread: "u", input: first }).result;
      await store.close();
      expect(change(file, (db) => db.prepare(sql).run().changes)).toBeGreaterThan(0);
      const damaged = sqliteStore(file);
      const { details, message } = await refusal(resume(graphs, { store: damaged, thread: "t" }).result);
      expect(details).toEqual({ thread: "t", branch: "main", lastGood });
      expect(message).toContain(`Fork from checkpoint ${lastGood} of the branch "main"`);
      await fork(graphs, { store: damaged, thread: "t", at: lastGood, name: "repaired" });
      const going = { store: damaged, thread: "t", branch: "repaired", onPriorEffect: "reuse", maxSteps: 100 } as const;
      expect(await resume(graphs, going).result).toMatchObject({ status: "done", state: { round: rounds } });
      expect(new Set(listEffects(diary))).toEqual(new Set(listRounds(rounds)));
      await refusal(resume(graphs, { store: damaged, thread: "t", branch: "main" }).result);
      expect((await damaged.history("u", { limit: 10 })).length).toBe(4);
      expect((await damaged.threads()).map(({ id }) => id).sort()).toEqual(["t", "u"]);
      await damaged.close();
    });
  }

  test("a thread without a readable checkpoint is refused with that fact", async () => {
    const store = sqliteStore(file);
    await run(createGrowingGraph(diary, 20, 2), { store, thread: "t", input: first }).result;
    await store.close();
    change(file, (db) => db.exec("UPDATE checkpoints SET hash = 'x'"));
    const damaged = sqliteStore(file);
    const { details, message } = await refusal(damaged.head("t"));
    expect(details).toEqual({ thread: "t", branch: "main", lastGood: undefined });
    expect(message).toContain("no checkpoint of the branch is readable");
    await damaged.close();
  });

  test("changed effects that a checkpoint folded are refused, and verify finds them [F6]", async () => {
    const chat = defineGraph({ name: "chat", state: defineState({ said: createOpenSchema<string>() }) })
      .nodes({ say: async (_, { step }) => ({ said: await step("think", () => "hello", { effect: "pure" }) }) })
      .edges({ [START]: "say", say: END });
    const store = sqliteStore(file);
    await run(chat, { store, thread: "t", input: { said: "" } }).result;
    expect(await store.effects("t", "main", 0)).toMatchObject([{ step: 0, key: "think", state: "ok" }]);
    await store.close();
    expect(change(file, (db) => db.prepare("SELECT count(*) FROM effects").pluck().get())).toBe(0);
    const changes = ["replace(effects, 'think', 'drink')", "NULL", "'[0]'"];
    for (const value of changes) {
      copyFileSync(file, join(home.path, "damaged.db"));
      const path = join(home.path, "damaged.db");
      const sql = `UPDATE checkpoints SET effects = ${value} WHERE effects IS NOT NULL`;
      expect(change(path, (db) => db.prepare(sql).run().changes)).toBe(1);
      const damaged = sqliteStore(path);
      for (const step of [0, undefined]) await refusal(damaged.effects("t", "main", step));
      expect((await damaged.verify()).faults).toMatchObject([{ thread: "t", what: expect.stringContaining("folded") }]);
      await damaged.close();
    }
  });

  test("damage in an answered interrupt alone still allows a fork from the newest checkpoint, which asks again", async () => {
    const store = sqliteStore(file);
    const graphs = createGrowingGraph(diary, 20, 2);
    await run(graphs, { store, thread: "t", input: first }).result;
    const claim = await store.claim({ ...graph, graph: "growing", thread: "t" });
    const answered = { ...createInterruptRow("q1", "yes"), step: claim.head?.step ?? 0 };
    const at = { thread: "t", branch: "main", epoch: claim.epoch, seq: claim.nextSeq };
    await saveCommit(store, { ...at, interrupts: [answered], release: true });
    await store.close();
    change(file, (db) => db.exec("UPDATE interrupts SET answer = '\"no\"'"));
    const damaged = sqliteStore(file);
    const { details } = await refusal(damaged.interrupts("t", "main"));
    expect(details).toMatchObject({ lastGood: claim.head?.id });
    await fork(graphs, { store: damaged, thread: "t", at: claim.head?.id ?? 0, name: "again" });
    expect(await damaged.interrupts("t", "again")).toEqual([]);
    await damaged.close();
  });
});

describe("lists of many threads", () => {
  const logged: string[] = [];
  const world: World = {
    ...systemWorld(),
    log: (_level, text, fields) => logged.push(`${text} ${JSON.stringify(fields)}`),
  };

  async function waiting(store: SqliteStore, thread: string, dueAt: number): Promise<void> {
    const claim = await store.claim({ ...graph, thread });
    await saveCommit(store, { ...createSuperstep(thread, claim, 1), run: createRunRow("r1", thread) });
    const { answer: _, answeredAt: _at, ...open } = createInterruptRow("q1", "");
    await saveCommit(store, {
      thread,
      branch: "main",
      epoch: claim.epoch,
      seq: 1,
      run: { ...createRunRow("r1", thread), status: "waiting" },
      interrupts: [open],
      timers: [{ arm: { id: "wait", kind: "after", generation: 1, dueAt, about: thread } }],
      release: true,
    });
  }

  test("a list skips a damaged row, logs it, and still returns the requested number", async () => {
    logged.length = 0;
    const store = sqliteStore(file);
    for (const [index, thread] of ["a", "b", "c", "d"].entries()) await waiting(store, thread, 1_000 + index);
    await store.close();
    change(file, (db) => {
      const ofB = "(SELECT b.key FROM branches b JOIN threads t ON t.key = b.thread WHERE t.id = 'b')";
      db.exec(`UPDATE interrupts SET payload = '"other"' WHERE branch = ${ofB}`);
      db.exec(`UPDATE timers SET about = 'other' WHERE branch = ${ofB}`);
      db.exec(`UPDATE runs SET attempt = 77 WHERE branch = ${ofB}`);
    });
    const damaged = sqliteStore(file, { world });
    const listThreads = (rows: readonly { readonly thread: string }[]): string =>
      rows.map(({ thread }) => thread).join("");
    expect(listThreads(await damaged.openInterrupts())).toBe("dca");
    expect(listThreads(await damaged.openInterrupts({ limit: 3 }))).toBe("dca");
    expect(listThreads(await damaged.timers({ limit: 2 }))).toBe("ac");
    expect(listThreads(await damaged.runs({ limit: 3 }))).toBe("dca");
    expect(logged).toHaveLength(4);
    expect(logged.join("\n")).toContain('"thread":"b"');
    await refusal(damaged.openInterrupts({ thread: "b" }));
    await refusal(damaged.timers({ thread: "b" }));
    await refusal(damaged.runs({ thread: "b" }));
    expect((await damaged.verify()).faults.map(({ thread }) => thread)).toContain("b");
    await damaged.close();
  });
});

test("a missing newest checkpoint of a held thread is detected by its remaining deltas", async () => {
  const store = sqliteStore(file);
  const { epoch, branch } = await store.claim({ ...graph, thread: "t" });
  await saveCommit(store, { ...createSuperstep("t", { epoch, branch }, 1), run: createRunRow("r", "t") });
  for (const id of [2, 3]) await saveCommit(store, createSuperstep("t", { epoch, branch }, id));
  expect((await store.verify()).faults).toEqual([]);
  change(file, (db) => db.exec("DELETE FROM checkpoints WHERE key & 0xffffff = 3"));
  const what = 'the newest checkpoint of the branch "main" is missing, but its changes exist';
  expect((await store.verify()).faults).toEqual([{ thread: "t", what }]);
  await store.close();
});

test("verify reports a run that is missing from the metadata index", async () => {
  const store = sqliteStore(file);
  const metadata = { customer: "c-7", tier: 2 };
  await run(createGrowingGraph(diary, 20, 2), { store, thread: "t", input: first, metadata }).result;
  expect(await store.verify()).toMatchObject({ faults: [] });
  await store.close();
  change(file, (db) => db.exec("DELETE FROM run_metadata WHERE name = 'tier'"));
  const damaged = sqliteStore(file);
  const what = expect.stringMatching(/^run run_\w+ is not indexed by its metadata$/);
  const faults = [{ thread: "t", what }];
  expect(await damaged.verify()).toMatchObject({ faults });
  await damaged.close();
});

test("a changed title, metadata entry, tenant or owner of a thread is refused on reading, skipped by lists and reported by verify [SE4]", async () => {
  for (const damage of [
    "UPDATE thread_details SET title = 'another' WHERE title = 'Plan'",
    "UPDATE thread_details SET metadata = '{}' WHERE title = 'Plan'",
    "UPDATE threads SET tenant = 'other' WHERE id = 't'",
    "UPDATE threads SET user = 'eve' WHERE id = 't'",
    "DELETE FROM thread_details WHERE title = 'Plan'",
  ]) {
    const path = join(home.path, `${damage.length}.db`);
    const lines: string[] = [];
    const world = { ...systemWorld(), log: (_level: string, message: string) => void lines.push(message) };
    const store = sqliteStore(path, { world });
    for (const thread of ["t", "u"])
      await createThread(store, { thread, title: thread === "t" ? "Plan" : "Other", tenant: "acme", owner: "ada" });
    await updateThread(store, "t", { metadata: { project: "atlas" } });
    change(path, (db) => db.exec(damage));
    const failure: unknown = await store.thread("t").catch((error: unknown) => error);
    expect([damage, failure]).toEqual([damage, expect.objectContaining({ code: "store_corrupt" })]);
    expect([damage, (await store.threads()).map(({ id }) => id)]).toEqual([damage, ["u"]]);
    expect(lines).toEqual(["a list skipped a damaged row"]);
    const what = "the details of a thread do not match their checksum";
    expect([damage, (await store.verify()).faults]).toEqual([
      damage,
      [{ thread: "t", what: expect.stringContaining(what) }],
    ]);
    await store.close();
  }
});

test("verify reports a thread that is not indexed by its metadata, has another status than its newest run, or a run of another tenant [SE4, SE10]", async () => {
  const faults = {
    "DELETE FROM thread_metadata WHERE name = 'project'": "the thread is not indexed by its metadata",
    "UPDATE thread_metadata SET tenant = 'other'": "the thread is not indexed by its metadata",
    "UPDATE threads SET status = 'failed'": "the status of the thread is not that of its newest run",
    "UPDATE runs SET tenant = 'other'": "a run has another tenant than its thread",
  };
  for (const [damage, what] of Object.entries(faults)) {
    const path = join(home.path, `${damage.length}.db`);
    const store = sqliteStore(path);
    await createThread(store, { thread: "t", metadata: { project: "atlas" }, tenant: "acme" });
    await run(createGrowingGraph(diary, 20, 2), { store, thread: "t", input: first }).result;
    expect(await store.verify()).toMatchObject({ faults: [] });
    change(path, (db) => db.exec(damage));
    const found = (await store.verify()).faults.map((fault) => fault.what);
    expect([damage, found.includes(what)]).toEqual([damage, true]);
    await store.close();
  }
});

test("verify reports other numbers of waiting inputs than a thread has, and a queued run that no engine would find [PK5, PK8]", async () => {
  const counts = "the numbers of waiting inputs are not those of the rows of the thread";
  const turn = "a queued run is not in the index of the runs that can start, or another run is";
  const faults = {
    "UPDATE threads SET queued = 1": counts,
    "UPDATE threads SET messages = 0": counts,
    "UPDATE threads SET requests = 1": counts,
    "UPDATE runs SET turn = NULL": turn,
    "UPDATE runs SET turn = 'acme'": turn,
    "UPDATE runs SET turn = '' WHERE status = 'done'": turn,
  };
  const graph = createGrowingGraph(diary, 20, 2);
  for (const [index, [damage, what]] of Object.entries(faults).entries()) {
    const path = join(home.path, `${index}.db`);
    const store = sqliteStore(path);
    await run(graph, { store, thread: "t", input: first }).result;
    for (let nth = 0; nth < 2; nth++) await submit(graph, { store, thread: "t", input: first });
    await store.post({ thread: "t", id: "m", kind: "steer", at: 1, messages: "[]" });
    expect(await store.verify()).toMatchObject({ faults: [] });
    change(path, (db) => db.exec(damage));
    expect([damage, (await store.verify()).faults]).toEqual([damage, [{ thread: "t", what }]]);
    await store.close();
  }
});

test("a file with damaged rows of threads, branches or channels is not opened", async () => {
  const store = sqliteStore(file);
  for (let index = 0; index < 5; index++) await store.claim({ ...graph, thread: `t${index}` });
  await store.close();
  change(file, (db) => {
    db.unsafeMode(true);
    db.pragma("writable_schema = ON");
    // The index of branches belongs to another table now: its entries point nowhere.
    db.exec(
      "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_graphs_1') WHERE name = 'sqlite_autoindex_branches_1'",
    );
  });
  expect(() => sqliteStore(file)).toThrow(
    expect.objectContaining({ code: "store_corrupt", message: expect.stringContaining("branches") }),
  );
});

test("the history of a thread is returned up to a damaged checkpoint", async () => {
  const store = sqliteStore(file);
  const graphs = createGrowingGraph(diary, 20, 5);
  await run(graphs, { store, thread: "t", input: first }).result;
  await store.close();
  change(file, (db) => db.exec("UPDATE checkpoints SET hash = 'x' WHERE key & 0xffffff = 2"));
  const damaged = sqliteStore(file);
  await refusal(damaged.history("t", { limit: 10 }));
  expect((await damaged.history("t", { limit: 3 })).map(({ id }) => id)).toEqual([6, 5, 4]);
  await damaged.close();
});

test("a changed outline is refused with the name of its graph version, verify reports it, and threads run on [F6, ND7]", async () => {
  const rounds = createGrowingGraph(diary, 20, 2);
  const store = sqliteStore(file);
  await run(rounds, { store, thread: "t", input: first }).result;
  store.close();
  expect(
    change(file, (db) => db.prepare("UPDATE graphs SET outline = replace(outline, 'grow', 'glow')").run().changes),
  ).toBe(1);
  const damaged = sqliteStore(file);
  expect((await refusal(getSavedOutline(damaged, { thread: "t" }))).message).toContain(
    'the outline of graph "growing"',
  );
  expect((await damaged.verify()).faults).toMatchObject([
    { what: expect.stringContaining('the outline of graph "growing"') },
  ]);
  expect((await run(rounds, { store: damaged, thread: "u", input: first }).result).status).toBe("done");
  damaged.close();
});
