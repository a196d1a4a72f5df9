/** The file store and the memory store get the same operations and must return equal results. */
import { join } from "node:path";
import process from "node:process";
import { isStatewrightError, memoryStore, type RunStatus, type Store } from "@statewright/core";
import { copyThread, deleteThread } from "@statewright/core/inspect";
import type { Claim, ClaimRequest, Commit, SuperstepPage } from "@statewright/core/store";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { saveCommit } from "./support/rows.ts";
import { sqliteStore } from "./support/sqlite-store.ts";
import { createFolder } from "./support/stores.ts";

const threads = ["t", "u"] as const;
/** Target threads of copies. */
const copy = "v";
const branches = ["main", "b", "c"] as const;
/** Child namespaces below their branch. */
const inner = ["/1:0", "/1:1", "/1:0/own", "/a b"] as const;
const statuses = ["running", "waiting", "done", "failed"] as const satisfies readonly RunStatus[];

const delta = fc.record({
  channel: fc.constantFrom("list", "last", "draft"),
  kind: fc.constantFrom("append", "replace", "patch", "clear"),
  base: fc.boolean(),
  text: fc.string({ maxLength: 20 }).map((text) => JSON.stringify(text)),
});

const effect = fc.record({
  ahead: fc.integer({ min: -1, max: 1 }),
  key: fc.constantFrom("model", "pay", "read"),
  kind: fc.constantFrom("task", "model", "tool"),
  effect: fc.constantFrom("pure", "idempotent", "once"),
  state: fc.constantFrom("started", "ok", "error"),
  outcome: fc.option(
    fc.string({ maxLength: 20 }).map((text) => JSON.stringify(text)),
    { nil: undefined },
  ),
});

const timer = fc.record({
  do: fc.constantFrom("arm", "arm", "drop"),
  id: fc.constantFrom("tick", "wait", "\ufffd", "\u{1d11e}"),
  generation: fc.nat(4),
  dueAt: fc.nat(5),
});

const work = fc.oneof(
  fc.record({
    do: fc.constant("claim" as const),
    thread: fc.constantFrom(...threads),
    branch: fc.option(fc.constantFrom(...branches), { nil: undefined }),
    version: fc.integer({ min: 1, max: 2 }),
    mustExist: fc.integer({ min: 0, max: 3 }).map((value) => value === 0),
  }),
  fc.record({
    do: fc.constant("commit" as const),
    thread: fc.constantFrom(...threads),
    line: fc.oneof(fc.constant(""), fc.constantFrom(...inner)),
    /** Parent checkpoint of a new child namespace. */
    origin: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
    stale: fc.integer({ min: 0, max: 7 }).map((value) => value === 0),
    run: fc.option(fc.record({ id: fc.constantFrom("r1", "r2"), status: fc.constantFrom(...statuses) }), {
      nil: undefined,
    }),
    checkpoint: fc.option(fc.uniqueArray(delta, { maxLength: 3, selector: ({ channel }) => channel }), {
      nil: undefined,
    }),
    gap: fc.integer({ min: 0, max: 7 }).map((value) => value === 0),
    effects: fc.array(effect, { maxLength: 3 }),
    question: fc.option(fc.record({ id: fc.constantFrom("q1", "q2"), answer: fc.boolean() }), { nil: undefined }),
    timers: fc.array(timer, { maxLength: 3 }),
    release: fc.integer({ min: 0, max: 3 }).map((value) => value === 0),
  }),
  fc.record({
    do: fc.constant("branch" as const),
    thread: fc.constantFrom(...threads),
    branch: fc.constantFrom(...branches),
    from: fc.integer({ min: 1, max: 6 }),
    inner: fc.array(fc.record({ line: fc.constantFrom(...inner), from: fc.integer({ min: 1, max: 6 }) }), {
      maxLength: 2,
    }),
    deltas: fc.uniqueArray(delta, { maxLength: 2, selector: ({ channel }) => channel }),
  }),
  fc.record({
    do: fc.constantFrom("prune" as const, "copy" as const, "delete" as const),
    thread: fc.constantFrom(...threads),
    keepLast: fc.integer({ min: 1, max: 3 }),
    limit: fc.constantFrom(1, 100),
  }),
);

type Work = typeof work extends fc.Arbitrary<infer Value> ? Value : never;

/** Engine-side knowledge of the claimed threads, equal for both stores. */
interface Engine {
  readonly claims: Map<string, Claim>;
  /** By thread, then by namespace. */
  readonly heads: Map<string, Map<string, { readonly id: number; readonly step: number } | undefined>>;
  readonly next: Map<string, number>;
  time: number;
}

async function perform(store: Store, engine: Engine, item: Work): Promise<unknown> {
  engine.time += 10;
  try {
    switch (item.do) {
      case "claim": {
        const { thread, branch, version, mustExist } = item;
        const request: ClaimRequest = {
          thread,
          branch,
          graph: "g",
          version,
          shape: `s${version}`,
          at: engine.time,
          mustExist,
        };
        const claim = await store.claim(request);
        engine.claims.set(thread, claim);
        const heads = new Map<string, { readonly id: number; readonly step: number } | undefined>();
        for (const line of inner)
          heads.set(`${claim.branch}${line}`, await store.head(thread, `${claim.branch}${line}`));
        engine.heads.set(thread, heads.set(claim.branch, claim.head));
        engine.next.set(thread, claim.nextCheckpoint);
        return claim;
      }
      case "commit": {
        const commit = getCommit(engine, item);
        await saveCommit(store, commit);
        const row = commit.checkpoint?.row;
        if (row !== undefined) {
          engine.heads.get(item.thread)?.set(commit.branch, row);
          engine.next.set(item.thread, row.id + 1);
        }
        return "told";
      }
      case "branch": {
        const { thread, branch, from, deltas } = item;
        const row = { ...getRow(engine, 0, from, from), source: "fork", branch } as const;
        const checkpoint = { row, deltas };
        const lines = item.inner.map(({ line, from: at }) => ({ namespace: `${branch}${line}`, from: at, checkpoint }));
        return await store.branch({ thread, branch, from, checkpoint, interrupts: [], inner: lines });
      }
      case "prune": {
        const { thread, keepLast, limit } = item;
        return await store.prune({ thread, keepLast, limit, merge: (rows) => rows });
      }
      case "copy":
        await copyThread(store, item.thread, copy);
        return "copied";
      case "delete": {
        await deleteThread(store, item.thread);
        for (const known of [engine.claims, engine.heads, engine.next]) known.delete(item.thread);
        return "deleted";
      }
    }
  } catch (thrown) {
    return isStatewrightError(thrown) ? thrown.code : String(thrown);
  }
}

function getRow(engine: Engine, id: number, parent: number | undefined, step: number) {
  const control = JSON.stringify({ at: engine.time });
  const from = { id, branch: "main", step, parent, source: "step", nodes: ["n"], control, run: "r1" } as const;
  return { ...from, at: engine.time, durationMs: 0.5, seq: engine.time, bytes: 3 };
}

function getCommit(engine: Engine, item: Extract<Work, { do: "commit" }>): Commit {
  const { thread, run: given, checkpoint, gap, effects, question, timers, release, stale } = item;
  const claim = engine.claims.get(thread);
  const branch = `${claim?.branch ?? "main"}${item.line}`;
  const head = engine.heads.get(thread)?.get(branch);
  const run = item.line === "" ? given : undefined;
  const origin = item.line === "" ? undefined : item.origin;
  const step = head?.step ?? 0;
  const id = (engine.next.get(thread) ?? 1) + (gap ? 1 : 0);
  const at = engine.time;
  return {
    thread,
    branch,
    epoch: (claim?.epoch ?? 1) - (stale ? 1 : 0),
    seq: at,
    // A file store remembers a release that it could not write; a memory store can write every valid release.
    release: release && (item.line === "" || head !== undefined),
    ...(run === undefined
      ? {}
      : { run: { ...run, thread, branch, graph: "g", version: 1, attempt: 1, startedAt: 1_000, endedAt: at + 1 } }),
    ...(checkpoint === undefined
      ? {}
      : { checkpoint: { row: { ...getRow(engine, id, head?.id ?? origin, step + 1), branch }, deltas: checkpoint } }),
    timers: timers.map(({ do: act, id, generation, dueAt }) =>
      act === "drop"
        ? { drop: { id, generation } }
        : { arm: { id, kind: "after" as const, generation, dueAt, about: `${id} ${at}` } },
    ),
    effects: effects.map(({ ahead, ...rest }) => ({
      ...rest,
      step: Math.max(0, step + ahead),
      task: `${step + ahead}:0`,
      name: rest.key,
      attempts: 1,
      idempotencyKey: "k",
      startedAt: at,
    })),
    ...(question === undefined
      ? {}
      : {
          interrupts: [
            {
              id: question.id,
              branch,
              step,
              task: `${step}:0`,
              node: "n",
              key: "k",
              payload: "1",
              raisedAt: at,
              ...(question.answer ? { answer: "true", answeredAt: at } : {}),
            },
          ],
        }),
  };
}

/** All reads of a store. Channels have no order. */
async function readStore(store: Store): Promise<unknown> {
  const observed: unknown[] = [
    await store.threads(),
    removePlaces(await store.runs()),
    removePlaces(await store.runs({ status: "waiting", limit: 1 })),
    await store.timers(),
    await store.timers({ dueBy: 2, limit: 3 }),
    await store.timers({ thread: "t", dueBy: 3 }),
    removePlaces(await store.openInterrupts()),
    removePlaces(await store.openInterrupts({ thread: "t", key: "approve", limit: 1 })),
  ];
  for (const thread of [...threads, copy]) {
    observed.push(await store.thread(thread), await store.branches(thread), removePlaces(await store.runs({ thread })));
    observed.push(await store.namespaces(thread, "branch"), await store.namespaces(thread, "child"));
    observed.push(
      await readTimeline(store, thread, { limit: 100 }),
      await readTimeline(store, thread, { after: 0, limit: 3 }),
    );
    observed.push(await readTimeline(store, thread, { before: 1_200, limit: 4 }));
    observed.push(await readTimeline(store, thread, { after: 1_150, limit: 100 }));
    for (const branch of branches.flatMap((name) => [name, ...inner.map((line) => `${name}${line}`)])) {
      const history = await store.history(thread, { branch, limit: 50 });
      observed.push(
        history.map((each) => ({ ...each, deltas: sorted(each.deltas) })),
        (await store.history(thread, { branch, limit: 2, before: 4 })).map(({ id }) => id),
        await store.head(thread, branch),
        await readTimeline(store, thread, { branch, limit: 100 }),
        await readTimeline(store, thread, { branch, after: 1_100, limit: 3 }),
        await store.effects(thread, branch),
        await store.effects(thread, branch, 1),
        await store.interrupts(thread, branch),
      );
      for (const { id } of history)
        observed.push(await store.checkpoint(thread, id), sorted(await store.state(thread, id)));
    }
  }
  return JSON.parse(JSON.stringify(observed));
}

/** Channels and effects have no order. */
async function readTimeline(store: Store, thread: string, page: SuperstepPage): Promise<readonly unknown[]> {
  const rows = (await store.supersteps?.(thread, page)) ?? [];
  return rows.map((row) =>
    "durableEvent" in row
      ? row
      : {
          ...row.superstep,
          changes: sorted(row.superstep.changes),
          effects: row.superstep.effects.toSorted((one, other) => (one.key < other.key ? -1 : 1)),
        },
  );
}

/** Each store numbers its interrupts differently; their order is equal. */
function removePlaces(rows: readonly { readonly position: number }[]): readonly unknown[] {
  return rows.map(({ position: _, ...row }) => row);
}

function sorted<Item extends { readonly channel: string }>(items: readonly Item[]): readonly Item[] {
  return items.toSorted((one, other) => (one.channel < other.channel ? -1 : 1));
}

function engine(): Engine {
  return { claims: new Map(), heads: new Map(), next: new Map(), time: 1_000 };
}

describe("file and memory parity", () => {
  test("random operations have equal results and threads in a file and in memory, also after reopening", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(work, { maxLength: 40 }), async (items) => {
        const home = createFolder();
        const path = join(home.path, "agent.db");
        const [memory, file] = [memoryStore(), sqliteStore(path, { durability: "normal" })];
        const [one, other] = [engine(), engine()];
        try {
          for (const item of items) {
            const [expected, found] = [await perform(memory, one, item), await perform(file, other, item)];
            expect(JSON.parse(JSON.stringify(found))).toEqual(JSON.parse(JSON.stringify(expected)));
          }
          const left = await readStore(memory);
          expect(await readStore(file)).toEqual(left);
          for (const store of [memory, file])
            expect(await store.snapshot?.((reads) => readStore({ ...store, ...reads }))).toEqual(left);
          expect((await file.verify()).faults).toEqual([]);
          await file.close();
          const next = memory.peer();
          await memory.close();
          const again = sqliteStore(path);
          expect(await readStore(again)).toEqual(await readStore(next));
          await again.close();
        } finally {
          await file.close();
          home.remove();
        }
      }),
      { numRuns: process.env["STATEWRIGHT_WHOLE"] === "1" ? 300 : 30, seed: 20_26 },
    );
  }, 120_000);
});
