import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  type Graph,
  inputNode,
  memoryStore,
  resume,
  route,
  run,
  START,
  StatewrightError,
  type Store,
  subgraph,
} from "../../../src/index.ts";
import type { Commit } from "../../../src/store.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()), last: z.unknown().optional() });

describe("resume after a failure", () => {
  test("siblings of a failed task complete and are saved, every failure is reported, and a resume reruns only tasks without a result [E24]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    let broken = true;
    const body =
      (name: string, delayMs: number, fails = false) =>
      async () => {
        ran.push(name);
        await new Promise<void>((resolve) => void world.schedule.after(delayMs, resolve));
        if (fails && broken) throw Object.assign(new Error(`${name} is broken`), { code: "EBROKEN" });
        return { log: [name] };
      };
    const graph = defineGraph({ name: "par", state: Log })
      .nodes({ a: body("a", 30), b: body("b", 10, true), c: body("c", 20), d: body("d", 1, true), z: body("z", 0) })
      .edges({ [START]: ["a", "b", "c", "d"], a: "z", b: "z", c: "z", d: "z", z: END });
    const handle = run(graph, { world, store, thread: "t" });
    const failing = getFailure(handle.result, "node_failed");
    await world.advance(100);
    const error = await failing;
    expect(error.message).toContain("b is broken");
    expect(error.message).toContain("d is broken");
    expect(error.message).toContain("2 finished tasks are saved");
    expect(error.details).toMatchObject([{ cause: { code: "EBROKEN" } }, { cause: { code: "EBROKEN" } }]);
    expect(ran).toEqual(["a", "b", "c", "d"]);
    ran.length = 0;
    broken = false;
    const going = resume(graph, { world, store: store.peer(), thread: "t" });
    const events = collectEvents(going);
    await world.advance(100);
    const { state } = await going.result;
    expect(state.log).toEqual(["a", "b", "c", "d", "z"]);
    expect(ran).toEqual(["b", "d", "z"]);
    expect(getOnlyEvent(events, "task.completed").map(({ node, reused }) => [node, reused])).toEqual([
      ["a", true],
      ["c", true],
      ["d", false],
      ["b", false],
      ["z", false],
    ]);
    expect(getOnlyEvent(events, "run.started")).toMatchObject([{ attempt: 2, recovered: false }]);
  });

  test("an error names graph, node, task, step, attempt and thread and keeps the original, also after a load from the store [E25]", async () => {
    const store = memoryStore();
    const original = Object.assign(new RangeError("too far", { cause: new Error("root") }), { code: "EFAR" });
    const graph = defineGraph({ name: "far", state: Log })
      .nodes({
        a: () => ({ log: ["a"] }),
        b: () => {
          throw original;
        },
      })
      .edges({ [START]: "a", a: "b", b: END });
    const place = { graph: "far", node: "b", task: "1:0", step: 1, attempt: 1, thread: "t" };
    const error = await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect(error.place).toMatchObject(place);
    for (const named of ['node "b"', 'graph "far"', "step 1", "attempt 1", 'thread "t"'])
      expect(error.message).toContain(named);
    expect(error.cause).toBe(original);
    const read = async () => (await store.peer().runs({ thread: "t" }))[0]?.error;
    const record = {
      code: "node_failed",
      place,
      cause: {
        name: "RangeError",
        message: "too far",
        code: "EFAR",
        stack: original.stack,
        cause: { message: "root" },
      },
    };
    expect(await read()).toMatchObject(record);
    const again = await getFailure(resume(graph, { store, thread: "t" }).result, "node_failed");
    expect(again.cause).toBe(original);
    expect(await read()).toMatchObject(record);
  });

  test.each([
    ["a text", "plain text", '"b" in graph "far" failed: plain text'],
    ["nothing", undefined, "undefined was thrown"],
    ["an object", { secret: "SECRET" }, "an object that is not an Error was thrown"],
  ])("%s that was thrown is reported and stored [E25]", async (_name, thrown, said) => {
    const store = memoryStore();
    const graph = defineGraph({ name: "far", state: Log })
      .nodes({
        b: () => {
          throw thrown;
        },
      })
      .edges({ [START]: "b", b: END });
    const error = await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect(error.message).toContain(said);
    expect(error.message).not.toContain("SECRET");
    expect(error.cause).toBe(thrown);
    expect((await store.runs())[0]?.status).toBe("failed");
  });

  test("a resumed run has no end time and no error", async () => {
    const store = memoryStore();
    let broken = true;
    const hold = createDeferred();
    const graph = defineGraph({ name: "far", state: Log })
      .nodes({
        b: async () => {
          if (broken) throw new Error("no");
          await hold.promise;
        },
      })
      .edges({ [START]: "b", b: END });
    const world = createVirtualWorld();
    await getFailure(run(graph, { world, store, thread: "t" }).result);
    broken = false;
    const going = resume(graph, { world, store, thread: "t" });
    await world.waitUntilIdle();
    expect((await store.runs())[0]).toMatchObject({
      status: "running",
      attempt: 2,
      endedAt: undefined,
      error: undefined,
    });
    hold.resolve();
    expect((await going.result).status).toBe("done");
    expect(await store.runs()).toHaveLength(1);
  });

  test("a new input on a waiting, failed or running thread is refused", async () => {
    const store = memoryStore();
    const graph = defineGraph({ name: "busy", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        a: async (state, { interrupt }) => {
          if (state.last === "fail") throw new Error("no");
          await interrupt("go");
        },
      })
      .edges({ [START]: "a", a: END });
    await getFailure(run(graph, { store, thread: "failed", input: { last: "fail" } }).result, "node_failed");
    await run(graph, { store, thread: "waits" }).result;
    for (const thread of ["failed", "waits"]) {
      const error = await getFailure(run(graph, { store, thread }).result, "thread_busy");
      expect(error.message).toContain("resume");
      expect((await store.thread(thread))?.status).toBe(thread === "failed" ? "failed" : "waiting");
    }
  });
});

describe("resume after a crash", () => {
  test("a completed task, and a completed step of an interrupted task, never rerun after a crash [E26]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const hold = createDeferred();
    const graph = defineGraph({ name: "crash", state: Log })
      .nodes({
        first: () => {
          ran.push("first");
          return { log: ["first"] };
        },
        quick: () => {
          ran.push("quick");
          return { log: ["quick"] };
        },
        slow: async (_state, { step }) => {
          const one = await step("one", () => {
            ran.push("one");
            return { at: new Date(7) };
          });
          await hold.promise;
          const two = await step("two", () => void ran.push("two"));
          return { log: [`slow ${one.at.getTime()} ${two}`] };
        },
      })
      .edges({ [START]: "first", first: ["quick", "slow"], quick: END, slow: END });
    const handle = run(graph, { world, store, thread: "t" });
    ignoreResult(handle.result);
    await world.waitUntilIdle();
    store.crash();
    hold.resolve();
    await world.waitUntilIdle();
    expect(ran.splice(0)).toEqual(["first", "quick", "one", "two"]);
    const going = resume(graph, { world, store: store.peer(), thread: "t" });
    const events = collectEvents(going);
    const { state } = await going.result;
    expect(state.log).toEqual(["first", "quick", "slow 7 undefined"]);
    expect(ran).toEqual(["two"]);
    expect(getOnlyEvent(events, "run.started")).toMatchObject([{ recovered: true }]);
    expect(getOnlyEvent(events, "effect.reused")).toMatchObject([{ key: "one", node: "slow" }]);
  });

  test("replayed values are frozen like the originals [E26]", async () => {
    const store = memoryStore();
    const graph = defineGraph({ name: "frozen", state: Log, interrupts: { go: z.object({ n: z.number() }) } })
      .nodes({
        a: () => ({ last: { inside: [1] } }),
        each: inputNode(z.object({ tags: z.array(z.string()) }), async (_state, { input, interrupt }) => {
          const answer = await interrupt("go");
          expect(() => input.tags.push("more")).toThrow(TypeError);
          expect(() => Object.assign(answer, { n: 2 })).toThrow(TypeError);
        }),
        fan: () => undefined,
        first: () => undefined,
        c: (state) => void Object.assign(state.last as object, { inside: "changed" }),
      })
      .edges({
        [START]: ["fan", "first"],
        first: "a",
        fan: fanOut("each", () => [{ tags: ["x"] }]),
        a: "c",
        each: END,
        c: END,
      });
    expect((await run(graph, { store, thread: "t" }).result).status).toBe("waiting");
    const error = await getFailure(
      resume(graph, { store, thread: "t", answers: { go: { n: 1 } } }).result,
      "node_failed",
    );
    expect(error.place.node).toBe("c");
    expect(error.cause).toBeInstanceOf(TypeError);
  });

  test("a step runs once across resumes and its result is replayed, including false and null [E32]", async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const results: readonly unknown[] = [false, null, 0, "", undefined, Number.NaN, { deep: new Map([["k", 1n]]) }];
    const graph = defineGraph({ name: "steps", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        a: async (_state, { step, interrupt }) => {
          const found: unknown[] = [];
          for (const [index, result] of results.entries())
            found.push(
              await step(`s${index}`, () => {
                ran.push(`s${index}`);
                return result;
              }),
            );
          await interrupt("go");
          return { last: found };
        },
      })
      .edges({ [START]: "a", a: END });
    await run(graph, { store, thread: "t" }).result;
    await resume(graph, { store, thread: "t" }).result;
    const { state } = await resume(graph, { store: store.peer(), thread: "t", answers: { go: true } }).result;
    expect(state.last).toEqual(results);
    expect(ran).toEqual(results.map((_, index) => `s${index}`));
  });

  test("the result of a step is saved as of the end of the step", async () => {
    const store = memoryStore();
    const graph = defineGraph({ name: "as-it-was", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        a: async (_state, { step, interrupt }) => {
          const plain = await step("plain", () => ({ list: [1] }));
          const bytes = await step("bytes", () => ({ in: Uint8Array.of(1) }));
          const found = { last: [[...plain.list], bytes.in[0]] };
          expect(() => (plain.list as number[]).push(2)).toThrow(TypeError);
          bytes.in[0] = 2;
          await interrupt("go");
          return found;
        },
      })
      .edges({ [START]: "a", a: END });
    expect((await run(graph, { store, thread: "t" }).result).status).toBe("waiting");
    const { state } = await resume(graph, { store: store.peer(), thread: "t", answers: { go: true } }).result;
    expect(state.last).toEqual([[1], 1]);
  });

  test("a repeated step key in one task is refused with its name [E32]", async () => {
    const graph = defineGraph({ name: "steps", state: Log })
      .nodes({
        a: async (_state, { step }) => {
          await step("pay", () => 1);
          await step("pay", () => 2);
        },
      })
      .edges({ [START]: "a", a: END });
    const error = await getFailure(run(graph, {}).result, "repeated_step");
    expect(error.message).toContain('"pay"');
    expect(error.place).toMatchObject({ node: "a", task: "0:0" });
  });

  test("a step may use any key, and no key collides with the result of its task", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const graph = defineGraph({ name: "keys", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        a: async (_state, { step, interrupt }) => {
          const results = [await step("task", () => "one"), await step("a/b c", () => "two")];
          await interrupt("go");
          return { log: results };
        },
        b: () => undefined,
        empty: async (_state, { step }) => {
          const refusal = await getFailure(
            step("", () => "never"),
            "repeated_step",
          );
          return { log: [refusal.code] };
        },
      })
      .edges({ [START]: ["a", "b", "empty"], a: END, b: END, empty: END });
    await run(graph, { world, store, thread: "t" }).result;
    await world.waitUntilIdle();
    const { state } = await resume(graph, { world, store, thread: "t", answers: { go: true } }).result;
    expect(state.log).toEqual(["one", "two", "repeated_step"]);
  });

  test("a failed `once` step is repeated neither by a retry nor by a resume", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    let charges = 0;
    const graph = defineGraph({ name: "once", state: Log })
      .nodes({
        a: {
          run: async (_state, { step }) => {
            await step(
              "charge",
              () => {
                charges++;
                throw new Error("declined");
              },
              { effect: "once" },
            );
          },
          retry: { attempts: 3, initialMs: 1 },
        },
      })
      .edges({ [START]: "a", a: END });
    const handle = run(graph, { world, store, thread: "t" });
    const failing = getFailure(handle.result, "node_failed");
    await world.advance(10_000);
    await failing;
    const going = resume(graph, { world, store, thread: "t" });
    const again = getFailure(going.result, "node_failed");
    await world.advance(10_000);
    expect((await again).cause).toMatchObject({ message: "declined" });
    expect(charges).toBe(1);
  });
});

describe("unsavable values", () => {
  test("an unsavable value fails the step with its path before the save, and a resume continues from the previous checkpoint [E48]", async () => {
    const store = memoryStore();
    let value: unknown = { deep: [() => 1] };
    const graph = defineGraph({ name: "closed", state: Log })
      .nodes({ a: () => ({ log: ["a"] }), b: () => ({ last: value, log: ["b"] }) })
      .edges({ [START]: "a", a: "b", b: END });
    const error = await getFailure(run(graph, { store, thread: "t" }).result, "unencodable_value");
    expect(error.message).toContain('the channel "last" contains a function at "deep.0"');
    expect((await store.thread("t"))?.status).toBe("failed");
    expect((await store.head("t"))?.step).toBe(1);
    value = "plain";
    expect((await resume(graph, { store, thread: "t" }).result).state).toEqual({ log: ["a", "b"], last: "plain" });
  });

  test("an unsavable value in a return or a step keeps the results of siblings [E48]", async () => {
    const world = createVirtualWorld();
    const hold = createDeferred();
    let value: unknown = Symbol("x");
    const ran: string[] = [];
    for (const where of ["return", "step", "once step"]) {
      const store = memoryStore();
      value = Symbol("x");
      ran.length = 0;
      const graph = defineGraph({ name: "closed", state: Log })
        .nodes({
          bad: async (_state, { step }) =>
            where === "return"
              ? { last: [value] }
              : { last: await step("make", () => [value], { effect: where === "step" ? "idempotent" : "once" }) },
          good: async () => {
            ran.push("good");
            await hold.promise;
            return { log: ["good"] };
          },
        })
        .edges({ [START]: ["bad", "good"], bad: END, good: END });
      const handle = run(graph, { world, store, thread: "t" });
      const failing = getFailure(handle.result, "unencodable_value");
      await world.waitUntilIdle();
      hold.resolve();
      const error = await failing;
      expect(error.message).toContain("contains a symbol at ");
      expect((await store.runs())[0]).toMatchObject({ status: "failed", error: { code: "unencodable_value" } });
      value = 1;
      if (where !== "once step") {
        expect((await resume(graph, { world, store, thread: "t" }).result).state).toEqual({ log: ["good"], last: [1] });
        expect(ran).toEqual(["good"]);
      }
    }
  });

  test("an untracked channel accepts any value, also next to siblings", async () => {
    const world = createVirtualWorld();
    const hold = createDeferred();
    const State = defineState({
      client: channel.untracked(z.custom<{ call(): number }>()),
      flash: channel.ephemeral(z.string()),
      log: channel.list(z.string()),
    });
    const graph = defineGraph({ name: "process", state: State })
      .nodes({
        open: () => ({ client: { call: () => 7 }, flash: "x" }),
        other: async () => void (await hold.promise),
        use: (state) => ({ log: [`${state.client?.call()} ${state.flash}`] }),
      })
      .edges({ [START]: ["open", "other"], open: "use", other: END, use: END });
    const handle = run(graph, { world, store: memoryStore(), thread: "t" });
    await world.waitUntilIdle();
    hold.resolve();
    expect((await handle.result).state.log).toEqual(["7 x"]);
  });
});

describe("failing store", () => {
  /** Creates a memory store whose commits fail while `trouble` returns an error. */
  function createFailingStore(trouble: (commit: Commit) => StatewrightError | undefined): Store {
    const store = memoryStore();
    return {
      ...store,
      commit: (commit, onCommitted) => {
        const failure = trouble(commit);
        if (failure === undefined) store.commit(commit, onCommitted);
        else queueMicrotask(() => onCommitted(failure));
      },
    };
  }
  const full = () => new StatewrightError("store_full", { what: "no room", next: "Make room" });
  const line = defineGraph({ name: "line", state: Log })
    .nodes({ a: () => ({ log: ["a"] }), b: () => ({ log: ["b"] }) })
    .edges({ [START]: "a", a: "b", b: END });

  test("a full store pauses the run, and a resume continues when there is space", async () => {
    let room = false;
    const store = createFailingStore((commit) =>
      !room && commit.checkpoint?.row.nodes.includes("a") ? full() : undefined,
    );
    const handle = run(line, { store, thread: "t" });
    const events = collectEvents(handle);
    expect(await handle.result).toMatchObject({ status: "paused", cause: { code: "store_full" }, state: { log: [] } });
    expect(events.at(-1)?.type).toBe("run.paused");
    expect(getOnlyEvent(events, "step.committed").map(({ nodes }) => nodes)).toEqual([[]]);
    room = true;
    expect((await resume(line, { store, thread: "t" }).result).state.log).toEqual(["a", "b"]);
  });

  test("a failed journal write stops the run before the run reports waiting", async () => {
    const world = createVirtualWorld();
    const graph = defineGraph({ name: "journal", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        a: () => ({ log: ["a"] }),
        b: async (_state, { interrupt, clock }) => {
          await new Promise<void>((resolve) => void world.schedule.after(5, resolve));
          await interrupt("go", { payload: clock.now() });
        },
      })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    let room = false;
    const store = createFailingStore((commit) => (!room && (commit.effects?.length ?? 0) > 0 ? full() : undefined));
    const handle = run(graph, { world, store, thread: "t" });
    await world.advance(10);
    expect((await handle.result).status).toBe("paused");
    room = true;
    const going = resume(graph, { world, store, thread: "t" });
    await world.advance(10);
    expect((await going.result).status).toBe("waiting");
  });

  test("a fenced writer stops: its signal fires and nothing of it is saved", async () => {
    const world = createVirtualWorld();
    let replaced = false;
    const fenced = () =>
      new StatewrightError("fenced", { what: "another writer owns the thread", next: "Nothing was saved" });
    const store = createFailingStore(() => (replaced ? fenced() : undefined));
    const reasons: unknown[] = [];
    const graph = defineGraph({ name: "fenced", state: Log })
      .nodes({
        a: async (_state, { signal, step }) => {
          signal.addEventListener("abort", () => reasons.push(signal.reason.code));
          await step("one", () => {
            replaced = true;
          });
          await new Promise<never>(() => undefined);
        },
        b: () => undefined,
      })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    const handle = run(graph, { world, store, thread: "t" });
    const failing = getFailure(handle.result, "fenced");
    await world.waitUntilIdle();
    await failing;
    expect(reasons).toEqual(["fenced"]);
  });

  test("a failure that cannot be saved is not reported: the run is paused, and a resume meets the failure again", async () => {
    let room = false;
    let broken = true;
    const store = createFailingStore((commit) => (!room && commit.run?.status === "failed" ? full() : undefined));
    const graph = defineGraph({ name: "broken", state: Log })
      .nodes({
        a: () => {
          if (broken) throw new Error("a is broken");
          return { log: ["a"] };
        },
      })
      .edges({ [START]: "a", a: END });
    const handle = run(graph, { store, thread: "t" });
    const events = collectEvents(handle);
    expect(await handle.result).toMatchObject({ status: "paused", cause: { code: "store_full" } });
    expect(events.at(-1)?.type).toBe("run.paused");
    room = true;
    await getFailure(resume(graph, { store, thread: "t" }).result, "node_failed");
    broken = false;
    expect((await resume(graph, { store, thread: "t" }).result).state.log).toEqual(["a"]);
  });

  test("a resume whose first write fails emits no start, stores no answer and releases the thread", async () => {
    let room = true;
    const store = createFailingStore((commit) => (!room && commit.run?.status === "running" ? full() : undefined));
    const graph = defineGraph({ name: "asking", state: Log, interrupts: { go: z.boolean() } })
      .nodes({ a: async (_state, { interrupt }) => ({ log: [String(await interrupt("go"))] }) })
      .edges({ [START]: "a", a: END });
    await run(graph, { store, thread: "t" }).result;
    room = false;
    const going = resume(graph, { store, thread: "t", answers: { go: true } });
    const events = collectEvents(going);
    expect((await going.result).status).toBe("paused");
    expect(events.map(({ type }) => type)).toEqual(["run.paused"]);
    room = true;
    expect((await resume(graph, { store, thread: "t", answers: { go: false } }).result).state.log).toEqual(["false"]);
  });

  test("a paused run is listed as paused when the store accepts that write", async () => {
    const locked = new StatewrightError("store_locked", { what: "locked", next: "Wait" });
    const store = createFailingStore((commit) => (commit.checkpoint?.row.nodes.includes("a") ? locked : undefined));
    expect((await run(line, { store, thread: "t" }).result).status).toBe("paused");
    const [paused] = await store.runs();
    expect(paused?.status).toBe("paused");
    expect(paused?.endedAt).toBeUndefined();
  });

  test("a journal row lost during the commit of its superstep stops the run with its cause and not as a cancel", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    let failing: ((failure: StatewrightError) => void) | undefined;
    const store: Store = {
      ...inner,
      commit: (commit, onCommitted) => {
        if (commit.checkpoint === undefined && (commit.effects?.length ?? 0) > 0) failing = onCommitted;
        else {
          failing?.(full());
          failing = undefined;
          inner.commit(commit, onCommitted);
        }
      },
    };
    const graph = defineGraph({ name: "lost", state: Log })
      .nodes({
        a: async (_state, { step }) => {
          await step("one", () => 1);
          await world.waitUntilIdle();
          return { log: ["a"] };
        },
        b: () => ({ log: ["b"] }),
      })
      .edges({ [START]: "a", a: "b", b: END });
    const handle = run(graph, { world, store, thread: "t" });
    expect(await handle.result).toMatchObject({ status: "paused", state: { log: ["a"] } });
    expect((await resume(graph, { world, store: inner, thread: "t" }).result).state.log).toEqual(["a", "b"]);
  });
});

describe("a route that fails after its body", () => {
  const Count = defineState({ n: z.number().default(0) });
  let isBroken = true;
  let ran = 0;
  const body = () => {
    ran += 1;
    return { n: ran };
  };
  const broken: Readonly<Record<string, () => Graph>> = {
    throws: () =>
      defineGraph({ name: "throws", state: Count })
        .nodes({ a: body })
        .edges({
          [START]: "a",
          a: route([END], () => {
            if (isBroken) throw new Error("no way");
            return END;
          }),
        }) as Graph,
    "dead route": () =>
      defineGraph({ name: "dead", state: Count })
        .nodes({ a: body })
        .edges({ [START]: "a", a: route([END], () => (isBroken ? ("x" as typeof END) : END)) }) as Graph,
    "empty fan-out": () =>
      defineGraph({ name: "empty", state: Count })
        .nodes({ a: body, each: inputNode(z.number(), () => undefined) })
        .edges({ [START]: "a", a: fanOut("each", () => (isBroken ? [] : [1])), each: END }) as Graph,
    "handled failure": () =>
      defineGraph({ name: "handled", state: Count })
        .nodes({
          a: {
            run: () => {
              throw new Error("down");
            },
            onError: body,
          },
        })
        .edges({ [START]: "a", a: route([END], () => (isBroken ? ("x" as typeof END) : END)) }) as Graph,
    subgraph: () =>
      defineGraph({ name: "outer", state: Count })
        .nodes({
          inner: subgraph(
            defineGraph({ name: "inner", state: Count })
              .nodes({ a: body })
              .edges({ [START]: "a", a: route([END], () => (isBroken ? ("x" as typeof END) : END)) }),
            { input: () => ({}), output: ({ n }) => ({ n }) },
          ),
        })
        .edges({ [START]: "inner", inner: END }) as Graph,
  };

  test.each(Object.keys(broken))("the body runs once and a resume decides the route again: %s [FX10]", async (name) => {
    const store = memoryStore();
    const graph = (broken[name] as () => Graph)();
    isBroken = true;
    ran = 0;
    await getFailure(run(graph, { store, thread: "t" }).result);
    await getFailure(resume(graph, { store, thread: "t" }).result);
    isBroken = false;
    const { status, state } = await resume(graph, { store, thread: "t" }).result;
    expect({ status, state, ran }).toEqual({ status: "done", state: { n: 1 }, ran: 1 });
  });
});
