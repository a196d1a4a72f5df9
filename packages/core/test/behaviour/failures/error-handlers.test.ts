import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  goto,
  inputNode,
  memoryStore,
  type NodePolicy,
  type NodeRuntime,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });
const declined = () => Object.assign(new RangeError("declined", { cause: new Error("no funds") }), { code: "E402" });

describe("error handler", () => {
  test("an error handler runs after the last retry in the same superstep with the error and its cause, and gives the result [E21, E19]", async () => {
    const world = createVirtualWorld();
    const calls: string[] = [];
    const graph = defineGraph({ name: "pay", state: Log })
      .nodes({
        pay: {
          run: (_state, { attempt, run: at }) => {
            calls.push(`pay ${attempt} in step ${at.step}`);
            throw declined();
          },
          retry: { attempts: 3, initialMs: 1, on: () => true },
          onError: (state, { error, attempt, run: at }) => {
            calls.push(`handler after ${attempt} in step ${at.step}, log ${state.log.length}`);
            expect(error).toMatchObject({
              code: "node_failed",
              place: { graph: "pay", node: "pay", attempt: 3 },
              cause: { name: "RangeError", message: "declined", code: "E402", cause: { message: "no funds" } },
            });
            return { log: ["handled"] };
          },
        },
        after: () => ({ log: ["after"] }),
      })
      .edges({ [START]: "pay", pay: "after", after: END });
    const handle = run(graph, { world });
    const events = collectEvents(handle);
    await world.advance(1_000);
    expect(await handle.result).toMatchObject({ steps: 2, state: { log: ["handled", "after"] } });
    expect(calls).toEqual([
      "pay 1 in step 0",
      "pay 2 in step 0",
      "pay 3 in step 0",
      "handler after 3 in step 0, log 0",
    ]);
    expect(getOnlyEvent(events, "task.handled")).toMatchObject([
      { node: "pay", attempt: 3, error: { code: "node_failed" } },
    ]);
    expect(getOnlyEvent(events, "task.failed")).toEqual([]);
    expect(getOnlyEvent(events, "task.completed").map(({ node }) => node)).toEqual(["pay", "after"]);
  });

  test("an error handler gets the input of the node and may route to another node [E21]", async () => {
    const graph = defineGraph({ name: "sent", state: Log })
      .nodes({
        each: inputNode(
          z.object({ n: z.number() }),
          (_state, { input }) => {
            if (input.n % 2 === 1) throw new Error("odd");
            return { log: [`${input.n}`] };
          },
          { onError: (_state, { input, error }) => goto("odd", { log: [`${input.n} ${String(error.cause)}`] }) },
        ),
        odd: () => ({ log: ["odd"] }),
      })
      .edges({
        [START]: fanOut("each", () => [1, 2, 3].map((n) => ({ n }))),
        each: commandTargets("odd"),
        odd: END,
      });
    expect((await run(graph, {}).result).state.log).toEqual(["1 Error: odd", "2", "3 Error: odd", "odd"]);
  });

  test("an error handler also handles a timeout, and obeys the same time limits as an attempt [E21]", async () => {
    const world = createVirtualWorld();
    const graph = (hangs: boolean) =>
      defineGraph({ name: "slow", state: Log })
        .nodes({
          a: {
            run: () => new Promise<undefined>(() => undefined),
            timeoutMs: 50,
            onError: (_state, { error }) =>
              hangs ? new Promise<undefined>(() => undefined) : { log: [`${error.code} in ${error.place.node}`] },
          },
        })
        .edges({ [START]: "a", a: END });
    const handle = run(graph(false), { world });
    await world.advance(50);
    expect((await handle.result).state.log).toEqual(["task_timeout in a"]);
    const failing = getFailure(run(graph(true), { world }).result, "task_timeout");
    await world.advance(100);
    await failing;
    expect(world.timers).toBe(0);
  });

  test("an error handler never catches an interrupt or a cancel [E21]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const handled: string[] = [];
    const graph = defineGraph({ name: "calm", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        ask: {
          run: async (_state, { interrupt }) => {
            try {
              return { log: [`${await interrupt("go")}`] };
            } catch {
              return { log: ["caught"] };
            }
          },
          onError: () => void handled.push("ask"),
        },
        hang: {
          run: async (_state, { signal }) => {
            await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
          },
          onError: () => void handled.push("hang"),
        },
      })
      .edges({ [START]: "ask", ask: "hang", hang: END });
    expect((await run(graph, { world, store, thread: "t" }).result).status).toBe("waiting");
    const going = resume(graph, { world, store, thread: "t", answers: { go: true } });
    await world.waitUntilIdle();
    going.cancel("enough");
    expect(await going.result).toMatchObject({ status: "cancelled", reason: "enough", state: { log: ["true"] } });
    await world.waitUntilIdle();
    expect(handled).toEqual([]);
  });

  test("an error handler is cancelled with the run [E21]", async () => {
    const world = createVirtualWorld();
    const graph = defineGraph({ name: "calm", state: Log })
      .nodes({
        a: {
          run: () => {
            throw new Error("no");
          },
          onError: () => new Promise<undefined>(() => undefined),
        },
      })
      .edges({ [START]: "a", a: END });
    const handle = run(graph, { world, store: memoryStore() });
    await world.waitUntilIdle();
    handle.cancel();
    expect((await handle.result).status).toBe("cancelled");
  });
});

describe("failing error handler", () => {
  test.each(["without a store", "with one"])(
    "a failing error handler fails the run %s and is not called for its own failure [E21]",
    async (store) => {
      let calls = 0;
      const graph = defineGraph({ name: "bad", state: Log })
        .nodes({
          a: {
            run: () => {
              throw new Error("first");
            },
            onError: () => {
              calls++;
              throw new Error("second");
            },
          },
        })
        .edges({ [START]: "a", a: END });
      const handle = run(graph, store === "with one" ? { store: memoryStore() } : {});
      const events = collectEvents(handle);
      const error = await getFailure(handle.result, "node_failed");
      expect(error.cause).toMatchObject({ message: "second" });
      expect(calls).toBe(1);
      expect(getOnlyEvent(events, "task.handled")).toMatchObject([{ error: { cause: { message: "first" } } }]);
      expect(getOnlyEvent(events, "task.failed")).toMatchObject([{ error: { cause: { message: "second" } } }]);
    },
  );

  test("a failure that the error handler rethrows is reported unchanged, and a resume starts with the body again", async () => {
    const store = memoryStore();
    let broken = true;
    const ran: string[] = [];
    const graph = defineGraph({ name: "picky", state: Log })
      .nodes({
        a: {
          run: () => {
            ran.push("body");
            if (broken) throw new Error("broken");
            return { log: ["mended"] };
          },
          onError: (_state, { error }) => {
            ran.push("handler");
            throw error;
          },
        },
        b: () => ({ log: ["b"] }),
      })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    const error = await getFailure(run(graph, { store, thread: "t" }).result, "node_failed");
    expect(error).toMatchObject({ place: { node: "a" }, cause: { message: "broken" } });
    await getFailure(resume(graph, { store, thread: "t" }).result, "node_failed");
    broken = false;
    expect((await resume(graph, { store, thread: "t" }).result).state.log).toEqual(["mended", "b"]);
    expect(ran).toEqual(["body", "handler", "body", "handler", "body"]);
  });

  test("the return of an error handler is validated like the return of a node", async () => {
    const graph = (returned: unknown, policy: NodePolicy = {}) =>
      defineGraph({ name: "bad", state: Log })
        .nodes({
          a: {
            run: () => {
              throw new Error("no");
            },
            onError: () => returned as undefined,
            ...policy,
          },
        })
        .edges({ [START]: "a", a: END });
    expect((await getFailure(run(graph({ lgo: [] }), {}).result, "unknown_channel")).place.node).toBe("a");
    expect((await getFailure(run(graph(goto("a")), {}).result, "dead_route")).place.node).toBe("a");
  });
});

describe("error handler after a resume", () => {
  const createAskingGraph = (seen: unknown[], ran: string[]) =>
    defineGraph({ name: "asks", state: Log, interrupts: { go: z.string() } })
      .nodes({
        pay: {
          run: async (_state, { step, interrupt }) => {
            ran.push("pay");
            await step("note", () => "of the body");
            const first = await interrupt("go");
            throw Object.assign(declined(), { first });
          },
          onError: async (_state, { error, step, interrupt }) => {
            seen.push([error.code, error.cause instanceof Error && error.cause.message, error.place.attempt]);
            const note = await step("note", () => {
              ran.push("note");
              return "of the handler";
            });
            const second = await interrupt("go");
            return { log: [`${note}, ${second}`] };
          },
        },
      })
      .edges({ [START]: "pay", pay: END });

  test("a resumed error handler sees the same failure, the body does not rerun, and its step keys and interrupts are its own [E21]", async () => {
    const store = memoryStore();
    const seen: unknown[] = [];
    const ran: string[] = [];
    const graph = createAskingGraph(seen, ran);
    await run(graph, { store, thread: "t" }).result;
    const first = await resume(graph, { store, thread: "t", answers: { go: "one" } }).result;
    expect(first).toMatchObject({ status: "waiting", interrupts: [{ key: "go", node: "pay" }] });
    const peer = store.peer();
    const { state } = await resume(graph, { store: peer, thread: "t", answers: { go: "two" } }).result;
    expect(state.log).toEqual(["of the handler, two"]);
    expect(ran).toEqual(["pay", "pay", "note"]);
    expect(seen).toEqual([
      ["node_failed", "declined", 1],
      ["node_failed", "declined", 1],
    ]);
  });

  test("an error handler that crashed continues with its recorded failure, although the body would succeed now [E21]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const hold = createDeferred();
    const graph = defineGraph({ name: "crash", state: Log })
      .nodes({
        a: {
          run: () => {
            ran.push("body");
            if (ran.length === 1) throw new Error("once");
          },
          onError: async (_state, { error }) => {
            ran.push("handler");
            await hold.promise;
            return { log: [String(error.cause)] };
          },
        },
      })
      .edges({ [START]: "a", a: END });
    ignoreResult(run(graph, { world, store, thread: "t" }).result);
    await world.waitUntilIdle();
    store.crash();
    hold.resolve();
    await world.waitUntilIdle();
    const { state } = await resume(graph, { world, store: store.peer(), thread: "t" }).result;
    expect(state.log).toEqual(["Error: once"]);
    expect(ran).toEqual(["body", "handler", "handler"]);
  });

  test("an error handler that started has a durable failure: the body does not rerun after a crash at any commit [FX80, E21]", async () => {
    for (const when of ["before", "after"] as const)
      for (let nth = 1; ; nth++) {
        const owner = memoryStore();
        const { store, dead, isDead } = createCrashingStore(owner, nth, when);
        const ran: string[] = [];
        const graph = defineGraph({ name: "crash", state: Log })
          .nodes({
            a: {
              run: () => {
                ran.push("body");
                throw new Error("no");
              },
              onError: () => {
                ran.push("handler");
                return { log: ["handled"] };
              },
            },
          })
          .edges({ [START]: "a", a: END });
        await Promise.race([run(graph, { store, thread: "t", input: {} }).result, dead]);
        if (!isDead()) break;
        const peer = owner.peer();
        const hasStarted = (await peer.head("t")) !== undefined;
        const next = { store: peer, thread: "t" };
        const { state } = await (hasStarted ? resume(graph, next) : run(graph, { ...next, input: {} })).result;
        expect(state.log, `commit ${nth}, ${when}`).toEqual(["handled"]);
        expect(ran.indexOf("handler"), `commit ${nth}, ${when}`).toBeGreaterThan(ran.lastIndexOf("body"));
      }
  });

  test("the handler of an aborted sibling does not run, and a resume starts with its body again [FX80, E21]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const hold = createDeferred();
    const down = createDeferred();
    let fails = true;
    const graph = defineGraph({ name: "siblings", state: Log })
      .nodes({
        slow: {
          run: async (_state, { signal }) => {
            ran.push("slow");
            if (!fails) return { log: ["slow"] };
            await hold.promise;
            signal.throwIfAborted();
            return {};
          },
          onError: (_state, { error }) => {
            ran.push(`handler of ${error.code}`);
            return { log: ["handled"] };
          },
        },
        fast: async () => {
          await down.promise;
          if (fails) throw new Error("down");
          return { log: ["fast"] };
        },
      })
      .edges({ [START]: ["slow", "fast"], slow: END, fast: END });
    const handle = run(graph, { world, store, thread: "t", input: {}, onTaskFailure: "abort" });
    ignoreResult(handle.result);
    await world.waitUntilIdle();
    down.resolve();
    await world.waitUntilIdle();
    hold.resolve();
    await getFailure(handle.result, "node_failed");
    fails = false;
    const { state } = await resume(graph, { world, store, thread: "t", onTaskFailure: "abort" }).result;
    expect([state.log, ran]).toEqual([
      ["slow", "fast"],
      ["slow", "slow"],
    ]);
  });

  test("a handler that a failed sibling aborts gets the original failure again after a resume [FX80, E21]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const ran: string[] = [];
    const down = createDeferred();
    let fails = true;
    const graph = defineGraph({ name: "siblings", state: Log })
      .nodes({
        pay: {
          run: (): { log: string[] } => {
            ran.push("body");
            throw new Error("card refused");
          },
          onError: async (_state, { error, signal }) => {
            ran.push(String(error.cause));
            if (fails) await new Promise((_resolve, reject) => signal.addEventListener("abort", reject));
            return { log: ["handled"] };
          },
        },
        fast: async () => {
          await down.promise;
          if (fails) throw new Error("down");
          return { log: ["fast"] };
        },
      })
      .edges({ [START]: ["pay", "fast"], pay: END, fast: END });
    const handle = run(graph, { world, store, thread: "t", input: {}, onTaskFailure: "abort" });
    ignoreResult(handle.result);
    await world.waitUntilIdle();
    down.resolve();
    await getFailure(handle.result, "node_failed");
    fails = false;
    const { state } = await resume(graph, { world, store, thread: "t", onTaskFailure: "abort" }).result;
    expect([state.log, ran]).toEqual([
      ["handled", "fast"],
      ["body", "Error: card refused", "Error: card refused"],
    ]);
  });

  test("the result of an error handler is journaled next to siblings and replayed [E21]", async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const graph = defineGraph({ name: "beside", state: Log, interrupts: { go: z.boolean() } })
      .nodes({
        a: {
          run: () => {
            ran.push("body");
            throw new Error("no");
          },
          onError: () => {
            ran.push("handler");
            return goto("z", { log: ["handled"] });
          },
        },
        b: async (_state, { interrupt }) => void (await interrupt("go")),
        z: () => ({ log: ["z"] }),
      })
      .edges({ [START]: ["a", "b"], a: commandTargets("z"), b: END, z: END });
    expect((await run(graph, { store, thread: "t" }).result).status).toBe("waiting");
    const { state } = await resume(graph, { store: store.peer(), thread: "t", answers: { go: true } }).result;
    expect(state.log).toEqual(["handled", "z"]);
    expect(ran).toEqual(["body", "handler"]);
  });

  test("a step key reserved for error handlers is refused in a body, also when the node has no handler", async () => {
    const body = async (_state: unknown, { step }: NodeRuntime): Promise<void> =>
      void (await step("onError/x", () => 1));
    const handled = defineGraph({ name: "kept", state: Log })
      .nodes({ a: { run: body, onError: (_state, { error }) => ({ log: [error.message] }) } })
      .edges({ [START]: "a", a: END });
    expect((await run(handled, {}).result).state.log[0]).toContain("reserved for error handlers");
    const plain = defineGraph({ name: "kept", state: Log })
      .nodes({ a: body })
      .edges({ [START]: "a", a: END });
    const error = await getFailure(run(plain, {}).result, "repeated_step");
    expect(error.message).toContain("reserved for error handlers");
  });
});
