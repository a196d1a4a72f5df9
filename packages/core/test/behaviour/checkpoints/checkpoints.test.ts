/** Commits of a run: content, time, size and history. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  edit,
  fork,
  getHistory,
  getState,
  goto,
  type HistoryEntry,
  join,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import type { Commit } from "../../../src/store.ts";
import { createDeferred, getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()), big: z.record(z.string(), z.number()).default({}) });

/** Creates a store that records its commits and can delay a commit. */
function watched(hold: (commit: Commit) => Promise<void> | undefined = () => undefined) {
  const inner = memoryStore();
  const commits: Commit[] = [];
  const store: Store = Object.assign(Object.create(inner) as MemoryStore, {
    commit: (commit: Commit, onCommitted: Parameters<Store["commit"]>[1]) => {
      commits.push(commit);
      const held = hold(commit);
      if (held === undefined) inner.commit(commit, onCommitted);
      else void held.then(() => inner.commit(commit, onCommitted));
    },
  });
  return { store, inner, commits };
}

test("outcomes are journaled as tasks complete; deltas, control state, journal, events and run row are committed atomically [E40]", async () => {
  const goOn = createDeferred();
  const graph = defineGraph({ name: "g", state: Log })
    .nodes({
      quick: () => ({ log: ["quick"] }),
      slow: async () => {
        await goOn.promise;
        return { log: ["slow"] };
      },
      last: () => ({ log: ["last"] }),
    })
    .edges({ [START]: ["quick", "slow"], quick: join("last"), slow: join("last"), last: END });
  const world = createVirtualWorld();
  const { store, inner, commits } = watched();
  const handle = run(graph, { store, world, thread: "t" });
  await world.waitUntilIdle();
  // The first commit is durable while the second effect runs.
  expect(await inner.effects("t", "main", 0)).toMatchObject([{ task: "0:0", name: "quick", state: "ok" }]);
  expect((await inner.head("t"))?.step).toBe(0);
  goOn.resolve();
  await handle.result;
  const steps = commits.filter(({ checkpoint }) => checkpoint !== undefined);
  expect(steps).toHaveLength(3);
  const [first, middle, final] = steps;
  expect(first).toMatchObject({ run: { status: "running" }, events: [{ seq: 1 }] });
  expect(middle?.checkpoint?.deltas.map(({ channel: oneChannel }) => oneChannel)).toEqual(["log"]);
  expect(final).toMatchObject({ run: { status: "done" }, release: true, events: [{ seq: 5 }] });
  // Folded outcomes are removed from the journal.
  expect(await inner.effects("t", "main", 0)).toEqual([]);

  const full = watched((commit) =>
    commit.checkpoint?.row.step === 1 ? new Promise<void>(() => undefined) : undefined,
  );
  const ended = run(graph, { store: full.store, thread: "t" });
  ended.result.catch((error: unknown) => error);
  await world.waitUntilIdle();
  expect((await full.inner.head("t"))?.step).toBe(0);
  expect(await full.inner.state("t", 1)).toEqual([]);
  expect((await full.inner.thread("t"))?.status).not.toBe("done");
});

test("effects of a superstep start after the commit of the superstep that scheduled them [E40]", async () => {
  const durable = createDeferred();
  const startedTasks: string[] = [];
  const graph = defineGraph({ name: "g", state: Log })
    .nodes({
      one: () => {
        startedTasks.push("one");
        return { log: ["one"] };
      },
      two: async (_state, { step }) => {
        startedTasks.push("two");
        await step("inside", () => startedTasks.push("inside"));
      },
    })
    .edges({ [START]: "one", one: "two", two: END });
  const { store } = watched(({ checkpoint }) => (checkpoint?.row.step === 1 ? durable.promise : undefined));
  const world = createVirtualWorld();
  const handle = run(graph, { store, world, thread: "t" });
  await world.waitUntilIdle();
  expect(startedTasks).toEqual(["one"]);
  durable.resolve();
  await handle.result;
  expect(startedTasks).toEqual(["one", "two", "inside"]);
});

/** Creates a graph whose turn appends an item and changes one key of a large record. */
function turns(keys: number) {
  return defineGraph({ name: "turns", state: Log })
    .nodes({
      fill: () => ({ big: Object.fromEntries(Array.from({ length: keys }, (_, key) => [`key${key}`, key])) }),
      turn: (state) => [
        { log: [`turn ${String(state.log.length).padStart(6, "0")}`] },
        edit<typeof state>((draft) => {
          draft.big["key7"] = state.log.length;
        }),
        state.log.length < 399 ? goto("turn") : goto(END),
      ],
    })
    .edges({ [START]: "fill", fill: "turn", turn: commandTargets("turn", END) });
}

test("saved bytes of a superstep depend on the change and not on the size of state or history [E41]", async () => {
  const listBytes = async (keys: number): Promise<readonly number[]> => {
    const store = memoryStore();
    await run(turns(keys), { store, thread: "t" }).result;
    const bytes: number[] = [];
    for await (const entry of getHistory(turns(keys), { store, thread: "t", nodes: ["turn"] }))
      bytes.unshift(entry.bytes);
    return bytes;
  };
  const [small, large] = await Promise.all([listBytes(10), listBytes(2_000)]);
  expect(small).toHaveLength(400);
  // A superstep of a 200 times larger state saves the same bytes, early or late, except at a new base.
  const getUsualSize = (bytes: readonly number[]): number => [...bytes].sort((one, other) => one - other)[200] ?? 0;
  expect(Math.abs(getUsualSize(large) - getUsualSize(small))).toBeLessThan(10);
  expect(getUsualSize(large)).toBeLessThan(120);
  const sum = (bytes: readonly number[]): number => bytes.reduce((total, each) => total + each, 0);
  const early = sum(large.slice(0, 200));
  expect(sum(large.slice(200))).toBeLessThan(1.5 * early);
});

const line = defineGraph({ name: "line", state: Log, interrupts: { ok: z.boolean() } })
  .nodes({
    one: () => ({ log: ["one"] }),
    two: async (_state, { interrupt }) => ({ log: [String(await interrupt("ok"))] }),
    three: () => ({ log: ["three"] }),
  })
  .edges({ [START]: "one", one: "two", two: "three", three: END });

async function listEntries(options: Omit<Parameters<typeof getHistory>[1], "thread">): Promise<HistoryEntry[]> {
  const entries: HistoryEntry[] = [];
  for await (const entry of getHistory(line, { ...options, thread: "t" } as Parameters<
    typeof getHistory<LineTypes>
  >[1]))
    entries.push(entry as HistoryEntry);
  return entries;
}
type LineTypes = NonNullable<typeof line.types>;

test("history is paged, newest first and filterable; each entry has its kind, changes, next nodes and parent [E42]", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const pages: number[] = [];
  const counting: Store = Object.assign(Object.create(store) as MemoryStore, {
    history: (thread: string, page: Parameters<Store["history"]>[1]) => {
      pages.push(page.limit);
      return store.history(thread, page);
    },
  });
  await run(line, { store, world, thread: "t" }).result;
  await world.advance(1_000);
  const second = await resume(line, { store, world, thread: "t", answers: { ok: true } }).result;
  const all = await listEntries({ store: counting, pageSize: 3 });
  expect(pages).toEqual([3, 3]);
  expect(all.map(({ node, next, source, parent }) => [node, ...next, source, parent])).toEqual([
    ["three", END, "step", 3],
    ["two", "three", "step", 2],
    ["one", "two", "step", 1],
    [undefined, "one", "input", undefined],
  ]);
  expect(all[1]).toMatchObject({
    checkpointId: 3,
    branch: "main",
    step: 2,
    run: second.run,
    at: 1_001_000,
    changes: { log: { kind: "append", items: ["true"] } },
  });
  const ids = async (filter: object): Promise<readonly number[]> =>
    (await listEntries({ store, ...filter })).map(({ checkpointId }) => checkpointId);
  expect(await ids({ nodes: ["one", "three"] })).toEqual([4, 2]);
  expect(await ids({ sources: ["input"] })).toEqual([1]);
  expect(await ids({ since: 1_000_500 })).toEqual([4, 3]);
  expect(await ids({ until: 1_000_500 })).toEqual([2, 1]);
  expect(await ids({ run: second.run, before: 3 })).toEqual([2, 1]);
  await getFailure(ids({ node: "one" }), "invalid_option");
});

test("a fork is a named branch with exactly the edited state, the original is unchanged and the head moves on request [E43]", async () => {
  const store = memoryStore();
  await run(line, { store, thread: "t" }).result;
  await resume(line, { store, thread: "t", answers: { ok: true } }).result;
  const bytes = async (): Promise<string> =>
    JSON.stringify([
      await store.history("t", { branch: "main", limit: 100 }),
      await Promise.all([1, 2, 3, 4].map((id) => store.state("t", id))),
    ]);
  const before = await bytes();
  const at = 2;
  await fork(line, { store, thread: "t", at, name: "edited", update: { big: { seven: 7 }, log: ["by hand"] } });
  expect(await bytes()).toBe(before);
  const edited = await getState(line, { store, thread: "t", branch: "edited" });
  expect(edited.state).toEqual({ log: ["one", "by hand"], big: { seven: 7 } });
  expect((await getState(line, { store, thread: "t" })).branch).toBe("main");
  expect(await store.branches("t")).toEqual([
    { name: "main", from: undefined, head: 4 },
    { name: "edited", from: 2, head: 5 },
  ]);
  await getFailure(fork(line, { store, thread: "t", at, name: "edited" }), "thread_exists");

  await fork(line, { store, thread: "t", at, name: "main2", moveHead: true });
  expect((await getState(line, { store, thread: "t" })).branch).toBe("main2");
  const waiting = await resume(line, { store, thread: "t" }).result;
  expect(waiting).toMatchObject({ status: "waiting", branch: "main2" });
  expect(await bytes()).toBe(before);
});

test("host diagnostics go to one log port that is silent by default, and no output is printed [E69]", async () => {
  const printed: unknown[] = [];
  const written = process.stdout.write;
  const complained = process.stderr.write;
  const keep = (chunk: unknown): boolean => {
    printed.push(chunk);
    return true;
  };
  const graph = defineGraph({ name: "late", state: Log })
    .nodes({
      slow: {
        timeoutMs: 10,
        run: async () => {
          await late.promise;
          return { log: ["late"] };
        },
        onError: () => undefined,
      },
      after: () => undefined,
    })
    .edges({ [START]: "slow", slow: "after", after: END });
  let late = createDeferred();
  const world = createVirtualWorld();
  const silent = { clock: world.clock, random: world.random, schedule: world.schedule, log: () => undefined };
  process.stdout.write = keep as typeof process.stdout.write;
  process.stderr.write = keep as typeof process.stderr.write;
  try {
    for (const given of [silent, world]) {
      late = createDeferred();
      const { result } = run(graph, { world: given });
      await world.advance(20);
      await result;
      late.resolve();
      await world.waitUntilIdle();
    }
  } finally {
    process.stdout.write = written;
    process.stderr.write = complained;
  }
  expect(printed).toEqual([]);
  expect(world.lines).toMatchObject([{ level: "warn", message: 'a late result of "slow" was dropped' }]);
});
