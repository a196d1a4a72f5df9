import { expect, test } from "vitest";
import * as z from "zod";
import {
  type CommonOptions,
  channel,
  defineGraph,
  defineState,
  END,
  fanOut,
  inputNode,
  memoryStore,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Log = defineState({ log: channel.list(z.string()) });

/** Creates four sibling tasks; task b fails after 10 ms. `ran` records the end of each task. */
function four(world: ReturnType<typeof createVirtualWorld>, ran: string[], broken: () => boolean) {
  const body =
    (name: string, delayMs: number) =>
    async (
      _state: unknown,
      { signal, step }: { signal: AbortSignal; step: (key: string, work: () => unknown) => Promise<unknown> },
    ) => {
      await step("begin", () => void ran.push(`${name} begins`));
      signal.addEventListener("abort", () => ran.push(`${name} is told`));
      await new Promise<void>((resolve) => void world.schedule.after(delayMs, resolve));
      if (name === "b" && broken()) throw new Error("b is broken");
      ran.push(`${name} ends`);
      return { log: [name] };
    };
  return defineGraph({ name: "four", state: Log })
    .nodes({
      a: body("a", 5),
      b: body("b", 10),
      c: { run: body("c", 20), retry: { attempts: 3, initialMs: 1 } },
      d: body("d", 30),
      z: () => ({ log: ["z"] }),
    })
    .edges({ [START]: ["a", "b", "c", "d"], a: "z", b: "z", c: "z", d: "z", z: END });
}

test("onTaskFailure abort signals the siblings of a failed task at once and keeps completed results [E24]", async () => {
  const world = createVirtualWorld();
  const store = memoryStore();
  const ran: string[] = [];
  let broken = true;
  const graph = four(world, ran, () => broken);
  const handle = run(graph, { world, store, thread: "t", onTaskFailure: "abort" });
  const events = collectEvents(handle);
  const failing = getFailure(handle.result, "node_failed");
  await world.advance(10);
  const error = await failing;
  expect(error).toMatchObject({ place: { node: "b" }, cause: { message: "b is broken" } });
  expect(ran.splice(0)).toEqual(["a begins", "b begins", "c begins", "d begins", "a ends", "c is told", "d is told"]);
  expect(getOnlyEvent(events, "task.retried")).toEqual([]);
  await world.advance(100);
  expect(ran.splice(0)).toEqual(["c ends", "d ends"]);
  expect(world.lines.map(({ message }) => message)).toEqual([
    'a late result of "c" was dropped',
    'a late result of "d" was dropped',
  ]);
  broken = false;
  const going = resume(graph, { world, store: store.peer(), thread: "t", onTaskFailure: "abort" });
  await world.advance(100);
  expect((await going.result).state.log).toEqual(["a", "b", "c", "d", "z"]);
  expect(ran).toEqual(["b ends", "c ends", "d ends"]);
  expect(world.timers).toBe(0);
});

test("onTaskFailure abort does not start a task that waits for a concurrency slot when a sibling fails", async () => {
  const world = createVirtualWorld();
  const ran: number[] = [];
  const graph = defineGraph({ name: "queue", state: Log })
    .nodes({
      each: inputNode(z.number(), async (_state, { input }) => {
        ran.push(input);
        if (input === 2) throw new Error("no");
      }),
    })
    .edges({ [START]: fanOut("each", () => [1, 2, 3, 4]), each: END });
  const options: CommonOptions = { world, maxConcurrency: 1 };
  await getFailure(run(graph, { ...options, onTaskFailure: "abort" }).result, "node_failed");
  expect(ran.splice(0)).toEqual([1, 2]);
  await getFailure(run(graph, { ...options, onTaskFailure: "finish" }).result, "node_failed");
  expect(ran).toEqual([1, 2, 3, 4]);
});

test("onTaskFailure abort does not call the error handler of a stopped sibling, and a handled failure stops no sibling", async () => {
  const world = createVirtualWorld();
  const handled: string[] = [];
  const graph = (handles: boolean) =>
    defineGraph({ name: "handled", state: Log })
      .nodes({
        a: {
          run: () => {
            throw new Error("no");
          },
          ...(handles ? { onError: () => ({ log: ["handled"] }) } : {}),
        },
        b: {
          run: () => new Promise<undefined>((resolve) => void world.schedule.after(5, () => resolve(undefined))),
          onError: () => void handled.push("b"),
        },
      })
      .edges({ [START]: ["a", "b"], a: END, b: END });
  const calm = run(graph(true), { world, onTaskFailure: "abort" });
  await world.advance(10);
  expect((await calm.result).state.log).toEqual(["handled"]);
  const failing = getFailure(run(graph(false), { world, onTaskFailure: "abort" }).result, "node_failed");
  await world.advance(10);
  await failing;
  expect(handled).toEqual([]);
});

test("a cancel during onTaskFailure abort ends the run as cancelled", async () => {
  const world = createVirtualWorld();
  const graph = four(world, [], () => true);
  const handle = run(graph, { world, onTaskFailure: "abort" });
  await world.advance(7);
  handle.cancel();
  expect((await handle.result).status).toBe("cancelled");
  await world.advance(100);
  expect(world.timers).toBe(0);
});

test("an unknown onTaskFailure value is refused", async () => {
  const graph = four(createVirtualWorld(), [], () => false);
  const error = await getFailure(run(graph, { onTaskFailure: "ignore" as never }).result, "invalid_option");
  expect(error.message).toContain('onTaskFailure: expected "finish" or "abort", got "ignore"');
});
