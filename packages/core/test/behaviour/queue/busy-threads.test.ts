/** A new input on a thread with an unfinished run: refused, queued, or in place of the run. */
import { describe, expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import { systemWorld } from "../../../src/adapter.ts";
import {
  approval,
  channel,
  decide,
  defineGraph,
  defineMiddleware,
  defineState,
  defineTool,
  durableMachine,
  END,
  fanOut,
  fork,
  getHistory,
  getMessageText,
  getState,
  inputNode,
  type Message,
  memoryStore,
  type OnBusy,
  type RunEvent,
  type RunOptions,
  resume,
  run,
  START,
  type Store,
  steer,
  toolNode,
  updateState,
} from "../../../src/index.ts";
import { listRuns, pruneThread } from "../../../src/inspect.ts";
import type { RunRow } from "../../../src/store.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { collectEvents, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { call, checkTranscript, gate, getAnswerText, user } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ word: z.string().default(""), log: channel.list(z.string()) });

/** Graph of two steps; the word decides whether the first step waits for the gate, raises an interrupt or fails. */
function wordy() {
  const gates = new Map<string, ReturnType<typeof gate>>();
  const createGate = (word: string) => {
    const found = gates.get(word) ?? gate();
    gates.set(word, found);
    return found;
  };
  const startedRuns: string[] = [];
  const graph = defineGraph({ name: "wordy", state: Log, interrupts: { ok: z.boolean() } })
    .nodes({
      first: async ({ word }, { interrupt }) => {
        startedRuns.push(word);
        if (word.startsWith("slow")) await createGate(word).passed;
        if (word.startsWith("ask")) await interrupt("ok");
        if (word.startsWith("fail")) throw new Error("no");
        return { log: [`${word} 1`] };
      },
      second: ({ word }) => ({ log: [`${word} 2`] }),
    })
    .edges({ [START]: "first", first: "second", second: END });
  const world = createVirtualWorld();
  const start = (store: Store, word: string, more: Partial<Omit<RunOptions<never>, "input" | "context">> = {}) =>
    run(graph, { store, world, thread: "t", input: { word }, ...more });
  const log = async (store: Store) => (await getState(graph, { store, thread: "t" })).state.log;
  return { graph, world, startedRuns, open: (word: string) => createGate(word).open(undefined), start, log };
}

const brief = (rows: readonly RunRow[]) =>
  rows.map(({ status, input, reason }) => [status, input, reason].filter(Boolean));

/** Brings a thread to each state with an unfinished run; returns the store of another process. */
async function busyThreads(): Promise<readonly (readonly [string, ReturnType<typeof wordy>, Store])[]> {
  const at = async (name: string, bring: (w: ReturnType<typeof wordy>) => Promise<Store> | Store) => {
    const w = wordy();
    const store = await bring(w);
    return [name, w, store] as const;
  };
  return [
    await at("running here", async (w) => {
      const store = memoryStore();
      w.start(store, "slow");
      await w.world.waitUntilIdle();
      return store;
    }),
    await at("running elsewhere", async (w) => {
      const store = memoryStore();
      w.start(store, "slow");
      await w.world.waitUntilIdle();
      return store.peer();
    }),
    await at("waiting", async (w) => {
      const store = memoryStore();
      await w.start(store, "ask").result;
      return store;
    }),
    await at("paused", async (w) => {
      const store = memoryStore();
      await w.start(store, "paused", { breakpoints: { before: ["second"] as never } }).result;
      return store;
    }),
    await at("failed", async (w) => {
      const store = memoryStore();
      await getFailure(w.start(store, "fail").result);
      return store;
    }),
    await at("crashed", async (w) => {
      const store = memoryStore();
      ignoreResult(w.start(store, "slow").result);
      await w.world.waitUntilIdle();
      store.crash();
      return store.peer();
    }),
  ];
}

describe("busy thread", () => {
  test("a busy thread refuses a new input by default in every state of its last run and changes nothing [E27]", async () => {
    for (const [name, { start, graph }, store] of await busyThreads()) {
      const before = [await listRuns(store), (await getState(graph, { store, thread: "t" })).checkpointId];
      expect((await getFailure(start(store, "new").result)).code, name).toBe("thread_busy");
      expect([await listRuns(store), (await getState(graph, { store, thread: "t" })).checkpointId], name).toEqual(
        before,
      );
    }
  });

  test("a busy thread refuses an invalid input at once with onBusy enqueue [E27]", async () => {
    for (const [name, { graph, world }, store] of await busyThreads()) {
      const bad = { word: 7 } as never;
      const refusal = getFailure(run(graph, { store, world, thread: "t", input: bad, onBusy: "enqueue" }).result);
      expect((await refusal).code, name).toBe("invalid_input");
      expect(await listRuns(store, { status: "queued" }), name).toEqual([]);
    }
  });

  test("an invalid onBusy, metadata or key option is refused", async () => {
    const { start } = wordy();
    const store = memoryStore();
    expect((await getFailure(() => start(store, "a", { onBusy: "wait" as OnBusy }))).code).toBe("invalid_option");
    expect((await getFailure(() => start(store, "a", { metadata: { f: () => 1 } as never }))).code).toBe(
      "invalid_option",
    );
    expect((await getFailure(() => start(store, "a", { key: "" }))).code).toBe("invalid_id");
  });
});

describe("onBusy enqueue [E27]", () => {
  test("an enqueued input starts when the active run is done, and its handle returns its own result [E27]", async () => {
    const { world, startedRuns, open, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow a");
    await world.waitUntilIdle();
    const [second, third] = [start(store, "b", { onBusy: "enqueue" }), start(store, "c", { onBusy: "enqueue" })];
    const events = collectEvents(second);
    await world.waitUntilIdle();
    expect(brief(await listRuns(store))).toMatchObject([
      ["queued", '{"word":"c"}'],
      ["queued", '{"word":"b"}'],
      ["running"],
    ]);
    expect(startedRuns).toEqual(["slow a"]);
    open("slow a");
    expect(await first.result).toMatchObject({
      status: "done",
      run: first.id,
      state: { log: ["slow a 1", "slow a 2"] },
    });
    expect(await second.result).toMatchObject({ status: "done", run: second.id, state: { word: "b" } });
    expect(await third.result).toMatchObject({ status: "done", run: third.id, state: { word: "c" } });
    expect(events.map(({ type }) => type)).toContain("run.queued");
    expect(getOnlyEvent(events, "run.started")).toMatchObject([{ run: second.id }]);
    expect(events.at(-1)).toMatchObject({ type: "run.completed" });
    expect(await log(store)).toEqual(["slow a 1", "slow a 2", "b 1", "b 2", "c 1", "c 2"]);
    expect(brief(await listRuns(store))).toEqual([["done"], ["done"], ["done"]]);
  });

  test("an input enqueued after a waiting, paused, failed or crashed run starts when a resume has completed that run [E27]", async () => {
    for (const [name, { graph, world, open, start, log }, store] of await busyThreads()) {
      if (name.startsWith("running")) continue;
      const queued = await start(store, "next", { onBusy: "enqueue" }).result;
      expect(queued, name).toMatchObject({ status: "queued", thread: "t", steps: 0 });
      if (name === "failed") {
        expect((await getFailure(resume(graph, { store, world, thread: "t" }).result)).code).toBe("node_failed");
        expect(await listRuns(store, { status: "queued" }), name).toHaveLength(1);
        continue;
      }
      const answers = name === "waiting" ? { ok: true } : {};
      const resumed = resume(graph, { store, world, thread: "t", answers });
      open("slow");
      expect((await resumed.result).status, name).toBe("done");
      await world.waitUntilIdle();
      expect((await log(store)).slice(-2), name).toEqual(["next 1", "next 2"]);
      expect(await listRuns(store, { status: "queued" }), name).toEqual([]);
    }
  });

  test("an input from another process is enqueued, and the process that completes the active run starts it [E27]", async () => {
    const { world, open, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    await world.waitUntilIdle();
    expect(await start(store.peer(), "other", { onBusy: "enqueue" }).result).toMatchObject({
      status: "queued",
      state: { word: "slow", log: [] },
    });
    open("slow");
    await first.result;
    await world.waitUntilIdle();
    expect(await log(store)).toEqual(["slow 1", "slow 2", "other 1", "other 2"]);
  });

  test("an input whose process died before starting it starts with the next run or resume of the thread [E27]", async () => {
    for (const next of ["run", "resume"] as const) {
      const { graph, world, open, start, log } = wordy();
      const store = memoryStore();
      const first = start(store, "slow");
      await world.waitUntilIdle();
      await start(store.peer(), "queued", { onBusy: "enqueue" }).result;
      open("slow");
      // The process dies at the moment when its run is done: it starts no queued input.
      first.on(({ type }) => (type === "run.completed" ? store.crash() : undefined));
      await first.result;
      const other = store.peer();
      expect((await listRuns(other)).map(({ status }) => status)).toEqual(["queued", "done"]);
      if (next === "run")
        expect((await getFailure(start(other, "third").result)).message).toContain(
          "has queued inputs, which come first",
        );
      else expect((await resume(graph, { store: other, world, thread: "t" }).result).status).toBe("done");
      await world.waitUntilIdle();
      expect((await log(other)).slice(-2)).toEqual(["queued 1", "queued 2"]);
    }
  });

  test("an input behind an input that cannot be started returns the status queued", async () => {
    const { graph } = wordy();
    const memory = memoryStore();
    const at = { thread: "t" } as const;
    await run(graph, { ...at, store: memory, input: { word: "ask" } }).result;
    const { store, dead } = createCrashingStore(memory, 1, "before");
    ignoreResult(run(graph, { ...at, store, input: { word: "first" }, onBusy: "cancel" }).result);
    await dead;
    const claim = (): Promise<never> => Promise.reject(new Error("no claim"));
    const next = run(graph, { ...at, store: { ...memory.peer(), claim }, input: { word: "new" }, onBusy: "enqueue" });
    expect((await next.result).status).toBe("queued");
  });

  test("a cancelled input leaves the queue and the other queued inputs run [E27]", async () => {
    const { world, open, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    await world.waitUntilIdle();
    const [second, third] = [start(store, "b", { onBusy: "enqueue" }), start(store, "c", { onBusy: "enqueue" })];
    await world.waitUntilIdle();
    second.cancel("not needed");
    expect(await second.result).toMatchObject({ status: "cancelled", reason: "not needed", run: second.id });
    open("slow");
    await Promise.all([first.result, third.result]);
    expect(await log(store)).toEqual(["slow 1", "slow 2", "c 1", "c 2"]);
    expect(brief(await listRuns(store))).toEqual([["done"], ["cancelled", "not needed"], ["done"]]);
  });

  test("an input enqueued in another process can be cancelled through the handle that enqueued it [E27]", async () => {
    const { world, open, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    await world.waitUntilIdle();
    const second = start(store.peer(), "b", { onBusy: "enqueue" });
    expect((await second.result).status).toBe("queued");
    second.cancel();
    await world.waitUntilIdle();
    open("slow");
    await first.result;
    await world.waitUntilIdle();
    expect(await log(store)).toEqual(["slow 1", "slow 2"]);
  });

  test("an input on one branch does not wait for a suspended run on another branch", async () => {
    const { graph, world, start } = wordy();
    const store = memoryStore();
    await start(store, "a").result;
    await start(store, "ask", { branch: "other" }).result;
    expect((await start(store, "b", { onBusy: "enqueue" }).result).status).toBe("done");
    expect((await start(store, "c", { onBusy: "enqueue", branch: "other" }).result).status).toBe("queued");
    await resume(graph, { store, world, thread: "t", branch: "other", answers: { ok: true } }).result;
    await world.waitUntilIdle();
    expect((await getState(graph, { store, thread: "t", branch: "other" })).state.word).toBe("c");
  });
});

describe("idempotency key of a run", () => {
  test("a run started twice under one key runs once, in every status: running, done, waiting, failed, queued and cancelled [E27]", async () => {
    const { world, startedRuns, open, start } = wordy();
    const store = memoryStore();
    const first = start(store, "slow", { key: "k" });
    expect(start(store, "slow", { key: "k" })).toBe(first);
    await world.waitUntilIdle();
    expect(start(store, "slow", { key: "k" })).toBe(first);
    const peerFailure = await getFailure(start(store.peer(), "slow", { key: "k" }).result, "thread_busy");
    expect(peerFailure.details).toMatchObject({ run: first.id, status: "running" });
    const queued = await start(store.peer(), "q", { key: "q", onBusy: "enqueue" }).result;
    expect(await start(store.peer(), "q", { key: "q", onBusy: "enqueue" }).result).toEqual(queued);
    open("slow");
    const done = await first.result;
    await world.waitUntilIdle();
    expect(startedRuns).toEqual(["slow", "q"]);
    const { steps: _, bytes: __, ...end } = done;
    expect(await start(store, "other input", { key: "k" }).result).toMatchObject(end);
    expect(await start(store.peer(), "q", { key: "q" }).result).toMatchObject({ status: "done", state: { word: "q" } });

    const waiting = await start(store, "ask", { key: "w" }).result;
    expect(await start(store.peer(), "ask", { key: "w" }).result).toMatchObject({
      status: "waiting",
      run: waiting.run,
      interrupts: [{ key: "ok" }],
    });
    const gone = start(store, "never", { key: "gone", onBusy: "enqueue" });
    await world.waitUntilIdle();
    gone.cancel("no");
    await world.waitUntilIdle();
    expect(await start(store, "never", { key: "gone" }).result).toMatchObject({ status: "cancelled", reason: "no" });
    expect(startedRuns).toEqual(["slow", "q", "ask"]);
  });

  test("with onKeyReused refuse, a start with another input or other metadata under the key of a run is refused, while the run works and after it", async () => {
    const { world, startedRuns, open, start } = wordy();
    const store = memoryStore();
    const first = start(store, "slow", { key: "k" });
    const refuse = { key: "k", onKeyReused: "refuse" } as const;
    expect(start(store, "slow", refuse)).toBe(first);
    for (const other of [start(store, "other", refuse), start(store, "slow", { ...refuse, metadata: { n: 1 } })])
      expect((await getFailure(other.result, "key_reused")).details).toEqual({ run: first.id });
    await world.waitUntilIdle();
    await getFailure(start(store.peer(), "other", refuse).result, "key_reused");
    open("slow");
    await first.result;
    await getFailure(start(store, "other", refuse).result, "key_reused");
    expect((await start(store, "slow", refuse).result).run).toBe(first.id);
    await world.waitUntilIdle();
    expect(startedRuns).toEqual(["slow"]);
    const keyed = { ...refuse, key: "b", keyBody: { posted: 1 } };
    const started = await start(store, "one", keyed).result;
    expect((await start(store, "two", keyed).result).run).toBe(started.run);
    await getFailure(start(store, "one", { ...keyed, keyBody: { posted: 2 } }).result, "key_reused");
  });

  test("a repeated start under the key of a failed run returns its error, and under the key of a crashed run continues it", async () => {
    const { world, startedRuns, open, start } = wordy();
    const store = memoryStore();
    const error = await getFailure(start(store, "fail", { key: "f" }).result, "node_failed");
    expect((await getFailure(start(store.peer(), "fail", { key: "f" }).result)).message).toBe(error.message);
    const other = wordy();
    const dying = memoryStore();
    ignoreResult(other.start(dying, "slow", { key: "c" }).result);
    await other.world.waitUntilIdle();
    dying.crash();
    const again = other.start(dying.peer(), "slow", { key: "c" });
    const events = collectEvents(again);
    other.open("slow");
    expect((await again.result).status).toBe("done");
    expect(getOnlyEvent(events, "run.started")).toMatchObject([{ attempt: 2, recovered: true }]);
    expect(startedRuns).toEqual(["fail"]);
    open("x");
    expect(world.timers).toBe(0);
  });

  test("a run left in the queue by a dead process starts when its key is requested again and its turn has come", async () => {
    for (const onBusy of ["enqueue", "cancel", "rollback"] as const) {
      const { world, open, start, log } = wordy();
      const store = memoryStore();
      const first = start(store, "slow");
      await world.waitUntilIdle();
      const queued = await start(store.peer(), "q", { key: "q", onBusy }).result;
      // Either the process dies when the run is done, or the process dies during the run and the input replaces the
      // run.
      if (onBusy === "enqueue") first.on(({ type }) => (type === "run.completed" ? store.crash() : undefined));
      else store.crash();
      ignoreResult(first.result);
      open("slow");
      await world.waitUntilIdle();
      const other = store.peer();
      expect((await listRuns(other, { key: "q" }))[0]?.status, onBusy).toBe("queued");
      const both = [start(other, "q", { key: "q" }), start(other.peer(), "q", { key: "q" })];
      const events = collectEvents(both[0] as (typeof both)[number]);
      const [again, peerFailure] = await Promise.allSettled(both.map(({ result }) => result));
      expect(again, onBusy).toMatchObject({ value: { status: "done", run: queued.run, state: { word: "q" } } });
      expect(JSON.stringify(peerFailure), onBusy).toMatch(/"queued"|"done"|thread_busy/);
      expect(getOnlyEvent(events, "run.started"), onBusy).toMatchObject([{ run: queued.run }]);
      expect((await log(other)).slice(-2), onBusy).toEqual(["q 1", "q 2"]);
    }
  });

  test("a repeated start of a queued run reports queued, waits when the active run is in this process, and can be cancelled by its handle", async () => {
    const { graph, world, open, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    await world.waitUntilIdle();
    const queued = await start(store.peer(), "q", { key: "q", onBusy: "enqueue" }).result;
    const other = await start(store.peer(), "gone", { key: "gone", onBusy: "enqueue" }).result;
    const [again, gone] = [start(store, "q", { key: "q" }), start(store, "gone", { key: "gone" })];
    await world.waitUntilIdle();
    gone.cancel("no");
    expect(await gone.result).toMatchObject({ status: "cancelled", run: other.run, reason: "no" });
    open("slow");
    expect(await again.result).toMatchObject({ status: "done", run: queued.run });
    expect((await first.result).status).toBe("done");
    expect(await log(store)).toEqual(["slow 1", "slow 2", "q 1", "q 2"]);

    await start(store, "ask").result;
    const behind = await start(store, "last", { key: "last", onBusy: "enqueue" }).result;
    expect(await start(store.peer(), "last", { key: "last" }).result).toMatchObject({ ...behind, status: "queued" });
    // A queued input that this process starts runs here even without a waiting caller.
    const resumed = resume(graph, { store, world, thread: "t", answers: { ok: true } });
    await resumed.result;
    expect(await start(store, "last", { key: "last" }).result).toMatchObject({ status: "done", run: behind.run });
  });

  test("two processes that start a run under one key at the same moment execute the run once", async () => {
    for (let round = 0; round < 20; round++) {
      const { startedRuns, start } = wordy();
      const store = memoryStore();
      const both = [store, store.peer()].map((each) => start(each, "a", { key: "k", onBusy: "enqueue" }).result);
      const ends = await Promise.allSettled(both);
      expect(startedRuns).toEqual(["a"]);
      expect(new Set(ends.flatMap((end) => (end.status === "fulfilled" ? [end.value.run] : []))).size).toBe(1);
    }
  });

  test("a run with a key requires a store", async () => {
    const { graph } = wordy();
    expect((await getFailure(() => run(graph, { key: "k" }))).code).toBe("missing_store");
  });
});

describe("onBusy interrupt [E27]", () => {
  test("a run in this process stops at once, and the new input starts [E27]", async () => {
    const { world, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    const events = collectEvents(first);
    await world.waitUntilIdle();
    const second = start(store, "new", { onBusy: "cancel" });
    expect(await first.result).toMatchObject({ status: "cancelled", reason: "interrupted by a new input" });
    expect(events.at(-1)).toMatchObject({ type: "run.cancelled", reason: "interrupted by a new input" });
    expect(await second.result).toMatchObject({ status: "done", run: second.id });
    expect(await log(store)).toEqual(["new 1", "new 2"]);
    expect(brief(await listRuns(store))).toEqual([["done"], ["cancelled", "interrupted by a new input"]]);
  });

  test("a run in another process stops at its next commit, and that process starts the new input [E27]", async () => {
    const { world, open, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    await world.waitUntilIdle();
    expect((await start(store.peer(), "new", { onBusy: "cancel" }).result).status).toBe("queued");
    open("slow");
    expect(await first.result).toMatchObject({ status: "cancelled", reason: "interrupted by a new input" });
    await world.waitUntilIdle();
    expect(await log(store)).toEqual(["slow 1", "new 1", "new 2"]);
  });

  test("a waiting, paused, failed or crashed run ends, and the new input starts at once [E27]", async () => {
    for (const [name, { graph, world, start, log }, store] of await busyThreads()) {
      if (name.startsWith("running")) continue;
      const next = start(store, "new", { onBusy: "cancel" });
      const own = collectEvents(next);
      const all: RunEvent[] = [];
      const reading = (async () => {
        for await (const event of next.events({ after: 0 })) all.push(event);
      })();
      expect(await next.result, name).toMatchObject({ status: "done", run: next.id, state: { word: "new" } });
      const ends = (events: readonly RunEvent[]) => events.filter(({ type }) => /^run.c/.test(type));
      expect(ends(own), name).toMatchObject([{ type: "run.completed" }]);
      // A reader of the thread sees which run has ended.
      const [before] = (await listRuns(store)).slice(-1);
      await reading;
      expect(ends(all), name).toMatchObject([{ type: "run.cancelled", run: before?.id }, { type: "run.completed" }]);
      expect((await log(store)).slice(-2), name).toEqual(["new 1", "new 2"]);
      expect(brief(await listRuns(store)), name).toEqual([["done"], ["cancelled", "interrupted by a new input"]]);
      const steps = [];
      for await (const { source } of getHistory(graph, { store, thread: "t" })) steps.push(source);
      expect(steps.slice(0, 4), name).toEqual(["step", "step", "input", "cancel"]);
      if (name === "waiting") {
        const late = await getFailure(resume(graph, { store, world, thread: "t", answers: { ok: true } }).result);
        expect(late.code).toBe("already_answered");
        expect(late.details).toMatchObject({
          answer: { declined: true, by: next.id, reason: "interrupted by a new input" },
        });
      }
    }
  });

  test("inputs enqueued earlier start before the interrupting input [E27]", async () => {
    const { world, start, log } = wordy();
    const store = memoryStore();
    const first = start(store, "slow");
    await world.waitUntilIdle();
    const rest = [start(store, "b", { onBusy: "enqueue" }), start(store, "c", { onBusy: "cancel" })];
    expect((await first.result).status).toBe("cancelled");
    await Promise.all(rest.map(({ result }) => result));
    expect(await log(store)).toEqual(["b 1", "b 2", "c 1", "c 2"]);
  });

  test("an interrupted run keeps recorded tool results and answers its pending tool calls with the reason [E27]", async () => {
    const ran: string[] = [];
    const tool = (name: string) =>
      defineTool({
        name,
        description: name,
        input: z.object({}),
        effect: "once",
        run: () => {
          ran.push(name);
          return `${name} happened`;
        },
      });
    const ask = defineMiddleware({
      name: "ask",
      beforeTool: ({ call: made }) =>
        made.name === "pay" ? decide.interrupt(made, "large") : { action: "allow" as const },
    });
    const Chat = defineState({ messages: channel.messages(), notes: channel.list(z.string()) });
    const calls = [call("look"), call("pay"), call("pay", {}, "again")];
    const graph = defineGraph({ name: "chat", state: Chat, interrupts: { approve: approval } })
      .nodes({
        model: ({ messages: all }) => {
          checkTranscript(all);
          const first = all.every(({ role }) => role === "user");
          const said = first ? calls : [{ type: "text" as const, text: "done" }];
          const message = { role: "assistant", id: `a${all.length}`, content: said, finish: "calls" } as const;
          return { messages: [message] };
        },
        tools: toolNode({ tools: [tool("look"), tool("pay")], middleware: [ask] }),
        beside: () => ({ notes: ["noted"] }),
        end: () => undefined,
      })
      .edges({ [START]: "model", model: ["tools", "beside"], tools: "end", beside: END, end: END });
    const store = memoryStore();
    const first = await run(graph, { store, thread: "t", input: { messages: [user("go")] } }).result;
    expect(first.status).toBe("waiting");
    const again = run(graph, {
      store,
      thread: "t",
      input: { messages: [user("never mind", "u2")] },
      onBusy: "cancel",
    });
    const { state } = await again.result;
    const said = state.messages.map((each: Message) => [
      each.role,
      each.role === "tool" ? [each.callId, getAnswerText(each), each.isError] : each.id,
    ]);
    expect(said).toEqual([
      ["user", "u1"],
      ["assistant", "a1"],
      ["tool", ["id_look", "look happened", false]],
      ["tool", ["id_pay", "Not executed: interrupted by a new input.", true]],
      ["tool", ["again", "Not executed: interrupted by a new input.", true]],
      ["user", "u2"],
      ["assistant", "a6"],
    ]);
    expect(ran).toEqual(["look"]);
    expect(state.notes).toEqual(["noted", "noted"]);
  });

  test("results of parallel tasks that completed next to an open interrupt are folded into the state of the interrupted run [E27]", async () => {
    const graph = defineGraph({ name: "fan", state: Log, interrupts: { ok: z.boolean() } })
      .nodes({
        plan: () => undefined,
        each: inputNode(z.string(), async (_state, { input, interrupt }) => {
          if (input === "ask") await interrupt("ok");
          return { log: [input] };
        }),
      })
      .edges({
        [START]: "plan",
        plan: fanOut("each", ({ word }) => (word === "" ? ["a", "ask", "b"] : [word])),
        each: END,
      });
    const store = memoryStore();
    expect((await run(graph, { store, thread: "t" }).result).status).toBe("waiting");
    const next = await run(graph, { store, thread: "t", input: { word: "new" }, onBusy: "cancel" }).result;
    expect(next.state.log).toEqual(["a", "b", "new"]);
  });
});

describe("onBusy rollback [E27]", () => {
  test("a rollback restores the state before the run with a checkpoint marked as such, and the new input starts [E27]", async () => {
    for (const [name, { graph, world, open, start, log }, store] of await busyThreads()) {
      if (name === "running elsewhere") continue;
      const next = start(store, "new", { onBusy: "rollback" });
      await world.waitUntilIdle();
      open("slow");
      expect(await next.result, name).toMatchObject({
        status: "done",
        state: { word: "new", log: ["new 1", "new 2"] },
      });
      expect(brief(await listRuns(store)), name).toEqual([["done"], ["cancelled", "rolled back for a new input"]]);
      expect(await log(store), name).toEqual(["new 1", "new 2"]);
      const steps = [];
      for await (const step of getHistory(graph, { store, thread: "t" })) steps.push(step);
      expect(steps.map(({ source }) => source).slice(0, 4), name).toEqual(["step", "step", "input", "rollback"]);
      expect(
        Object.values(steps[3]?.changes ?? {}).map((delta) => delta?.kind),
        name,
      ).toContain("replace");
    }
  });

  test("a rollback returns consumed inbox messages to the inbox, and the next run takes each message once", async () => {
    const State = defineState({ messages: channel.messages(), word: z.string().default("") });
    const graph = defineGraph({ name: "asks", state: State, interrupts: { ok: z.boolean() } })
      .nodes({
        first: () => ({}),
        second: async ({ word }, { interrupt }) => {
          if (word === "ask") await interrupt("ok");
          if (word === "fail") throw new Error("no");
        },
      })
      .edges({ [START]: "first", first: "second", second: END });
    const listTexts = ({ messages: all }: { readonly messages: readonly Message[] }): readonly string[] =>
      all.flatMap((message) => (message.role === "user" ? [getMessageText(message)] : []));
    for (const word of ["ask", "fail"]) {
      const store = memoryStore();
      const at = { store, thread: "t" };
      await run(graph, { ...at, input: { word: "" } }).result;
      await steer(graph, { ...at, input: "before the run" });
      const busy = run(graph, { ...at, input: { word } });
      await busy.steer("to the run");
      await busy.followUp("when it ends");
      await busy.result.then(
        ({ status }) => expect(status).toBe("waiting"),
        (error) => expect(error).toBeDefined(),
      );
      expect(listTexts((await getState(graph, at)).state), word).toEqual(["before the run", "to the run"]);
      expect(
        (await store.inbox("t", "main")).map(({ kind }) => kind),
        word,
      ).toEqual(["followUp"]);
      const next = await run(graph, { ...at, input: { word: "new" }, onBusy: "rollback" }).result;
      expect(listTexts(next.state), word).toEqual(["before the run", "to the run"]);
      // The queued input stays queued, and no rows of the earlier run remain.
      const { namespaces } = await store.exportThread("t");
      expect(
        namespaces.flatMap(({ inbox }) => inbox.map(({ kind, deliveredTo }) => [kind, deliveredTo])),
        word,
      ).toEqual([["followUp", undefined]]);
    }
  });

  test("a rollback reverts the last run only and unsets a channel that this run was the first to set [E27]", async () => {
    const State = defineState({ topic: z.string(), extra: z.string().optional(), log: channel.list(z.string()) });
    const graph = defineGraph({ name: "layers", state: State, interrupts: { ok: z.boolean() } })
      .nodes({
        work: async ({ topic }, { interrupt, step }) => {
          await step("effect", () => 1, { effect: "once" });
          if (topic === "ask") await interrupt("ok");
          return { log: [topic], extra: `of ${topic}` };
        },
        more: async ({ topic }, { interrupt }) => {
          if (topic === "b") await interrupt("ok");
        },
      })
      .edges({ [START]: "work", work: "more", more: END });
    const store = memoryStore();
    const start = (topic: string, more = {}) => run(graph, { store, thread: "t", input: { topic }, ...more }).result;
    await start("a");
    expect(await start("b")).toMatchObject({
      status: "waiting",
      state: { topic: "b", log: ["a", "b"], extra: "of b" },
    });
    const back = await start("ask", { onBusy: "rollback" });
    expect(back).toMatchObject({ status: "waiting", state: { topic: "ask", log: ["a"], extra: "of a" } });
    const other = memoryStore();
    await run(graph, { store: other, thread: "t", input: { topic: "ask" } }).result;
    const lacking = run(graph, { store: other, thread: "t", onBusy: "rollback" } as never);
    const refusal = await getFailure(lacking.result);
    expect([refusal.code, refusal.details]).toEqual(["invalid_input", ["topic"]]);
    // Recorded effects stay recorded.
    expect((await store.effects("t", "main")).filter(({ effect }) => effect === "once").length).toBeGreaterThan(2);
  });

  test("a rollback of a run that started with a resume, on a fork or after an update returns to the state where it started [E27]", async () => {
    const graph = defineGraph({ name: "forked", state: Log, interrupts: { ok: z.boolean() } })
      .nodes({
        one: ({ word }) => ({ log: [`${word} 1`] }),
        two: ({ word }) => ({ log: [`${word} 2`] }),
        three: async ({ word }, { interrupt }) => {
          if (word === "old") await interrupt("ok");
        },
      })
      .edges({ [START]: "one", one: "two", two: "three", three: END });
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: { word: "old" } }).result;
    await fork(graph, { store, thread: "t", at: 2, name: "b" });
    const branch = { store, thread: "t", branch: "b" } as const;
    expect((await resume(graph, branch).result).state.log).toEqual(["old 1", "old 2"]);
    await pruneThread(store, { thread: "t", keepLast: 1 });
    const next = await run(graph, { ...branch, input: { word: "new" }, onBusy: "rollback" }).result;
    expect(next.state.log).toEqual(["old 1", "new 1", "new 2"]);
    // An input in the middle of a run starts no other run.
    await updateState(graph, { store, thread: "t", as: START, values: { log: ["more"] } });
    const last = await run(graph, { store, thread: "t", input: { word: "new" }, onBusy: "rollback" }).result;
    expect(last.state.log).toEqual(["new 1", "new 2"]);
  });

  test("a resume ends the run for a queued interrupt or rollback input whose process has died [E27]", async () => {
    for (const [onBusy, reason, log] of [
      ["rollback", "rolled back for a new input", ["new 1", "new 2"]],
      ["cancel", "interrupted by a new input", ["new 1", "new 2"]],
    ] as const) {
      const { graph } = wordy();
      const owner = memoryStore();
      await run(graph, { store: owner, thread: "t", input: { word: "ask" } }).result;
      const { store, dead } = createCrashingStore(owner, 1, "before");
      ignoreResult(run(graph, { store, thread: "t", input: { word: "new" }, onBusy }).result);
      await dead;
      const next = { store: owner.peer(), thread: "t" } as const;
      const resumed = await resume(graph, { ...next, answers: { ok: true } }).result;
      expect(resumed, onBusy).toMatchObject({ status: "cancelled", reason });
      for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => systemWorld().schedule.soon(resolve));
      expect((await getState(graph, next)).state.log, onBusy).toEqual(log);
    }
  });

  test("a rollback of a run that is active in another process happens in that process [E27]", async () => {
    const { world, open, start, log } = wordy();
    const store = memoryStore();
    await start(store, "a").result;
    const first = start(store, "slow");
    await world.waitUntilIdle();
    expect((await start(store.peer(), "new", { onBusy: "rollback" }).result).status).toBe("queued");
    open("slow");
    expect(await first.result).toMatchObject({ status: "cancelled", reason: "rolled back for a new input" });
    await world.waitUntilIdle();
    expect(await log(store)).toEqual(["a 1", "a 2", "new 1", "new 2"]);
  });
});

describe("busy durable machine", () => {
  const machine = durableMachine(
    setup({ types: { events: {} as { type: "GO" } } }).createMachine({
      id: "drawn",
      initial: "open",
      states: { open: { on: { GO: "shut" } }, shut: { type: "final" } },
    }),
    { version: 1 },
  );

  test("a durable machine enqueues a new input and refuses onBusy interrupt and rollback [E27]", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    await run(machine, { store, world, thread: "t" }).result;
    for (const onBusy of ["cancel", "rollback"] as const) {
      const refusal = await getFailure(() => run(machine, { store, world, thread: "t", onBusy }));
      expect(refusal.code).toBe("invalid_option");
      expect(refusal.message).toContain("Send an event with resume");
    }
    expect((await run(machine, { store, world, thread: "t", onBusy: "enqueue" }).result).status).toBe("queued");
    expect((await resume(machine, { store, world, thread: "t", answers: { GO: true } }).result).status).toBe("done");
    await world.waitUntilIdle();
    expect((await listRuns(store)).map(({ status }) => status)).toEqual(["waiting", "done"]);
  });
});
