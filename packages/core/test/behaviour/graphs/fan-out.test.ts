import fc from "fast-check";
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
  resume,
  run,
  START,
  send,
} from "../../../src/index.ts";
import { collectEvents, getFailure, getOnlyEvent } from "../../support/failure.ts";
import { fromJavaScript } from "../../support/from-javascript.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Work = defineState({
  items: z.array(z.string()).default([]),
  found: channel.list(z.string()),
  done: z.boolean().default(false),
});

function mapReduce(body: (input: string) => Promise<string> | string) {
  return defineGraph({ name: "map", state: Work })
    .nodes({
      each: inputNode(z.string().max(9), async (_state, { input }) => ({ found: [await body(input)] })),
      end: () => ({ done: true }),
    })
    .edges({ [START]: fanOut("each", (state) => state.items, { otherwise: "end" }), each: "end", end: END });
}

describe("sent tasks", () => {
  test("sent tasks get their own inputs, their results fold in send order, and control continues once [E16]", async () => {
    const handle = run(
      mapReduce((input) => input.toUpperCase()),
      { input: { items: ["c", "a", "b", "a"] } },
    );
    const events = collectEvents(handle);
    const { state, steps } = await handle.result;
    expect(state).toEqual({ items: ["c", "a", "b", "a"], found: ["C", "A", "B", "A"], done: true });
    expect(steps).toBe(2);
    expect(getOnlyEvent(events, "task.started").map(({ node, input }) => [node, input])).toEqual([
      ["each", "c"],
      ["each", "a"],
      ["each", "b"],
      ["each", "a"],
      ["end", undefined],
    ]);
  });

  test("a sent task follows the edges of its node and may send further tasks [E16]", async () => {
    const Tree = defineState({ leaves: channel.list(z.string()), closed: z.number().default(0) });
    const graph = defineGraph({ name: "tree", state: Tree })
      .nodes({
        branch: inputNode(z.object({ name: z.string(), depth: z.number() }), (_state, { input: { name, depth } }) =>
          depth === 0
            ? [{ leaves: [name] }, goto("close")]
            : [
                send("branch", { name: `${name}l`, depth: depth - 1 }),
                send("branch", { name: `${name}r`, depth: depth - 1 }),
              ],
        ),
        close: (state) => ({ closed: state.closed + 1 }),
      })
      .edges({
        [START]: fanOut("branch", () => [{ name: "", depth: 2 }]),
        branch: commandTargets("branch", "close"),
        close: END,
      });
    const { state } = await run(graph, {}).result;
    expect(state).toEqual({ leaves: ["ll", "lr", "rl", "rr"], closed: 1 });
  });

  test("sent tasks with a common fan-out edge start its sends once [E16]", async () => {
    const graph = defineGraph({ name: "two", state: Work })
      .nodes({
        first: inputNode(z.string(), (_state, { input }) => ({ found: [input] })),
        second: inputNode(z.string(), (_state, { input }) => ({ found: [`${input}2`] })),
      })
      .edges({
        [START]: fanOut("first", () => ["a", "b"]),
        first: fanOut("second", (state) => state.found),
        second: END,
      });
    expect((await run(graph, {}).result).state.found).toEqual(["a", "b", "a2", "b2"]);
  });

  test("the input of a sent task may have a type without a JSON Schema, and survives a resume", async () => {
    const Days = defineState({ years: channel.list(z.number()) });
    const graph = defineGraph({ name: "days", state: Days, interrupts: { go: z.union([z.date(), z.bigint()]) } })
      .nodes({
        each: inputNode(z.date(), async (_state, { input, interrupt }) => {
          const answer = await interrupt("go");
          return { years: [input.getUTCFullYear(), Number(answer)] };
        }),
      })
      .edges({ [START]: fanOut("each", () => [new Date(0)]), each: END });
    const store = memoryStore();
    expect(await run(graph, { store, thread: "t" }).result).toMatchObject({ status: "waiting" });
    const { state } = await resume(graph, { store, thread: "t", answers: { go: 7n } }).result;
    expect(state.years).toEqual([1970, 7]);
  });

  test("an empty fan-out follows the declared `otherwise` target, and fails with a typed error without one [E13]", async () => {
    const { state } = await run(mapReduce(String), { input: { items: [] } }).result;
    expect(state).toEqual({ items: [], found: [], done: true });
    const graph = defineGraph({ name: "map", state: Work })
      .nodes({ first: () => undefined, each: inputNode(z.string(), () => undefined) })
      .edges({ [START]: "first", first: fanOut("each", (state) => state.items), each: END });
    const error = await getFailure(run(graph, {}).result, "empty_fan_out");
    expect(error.place).toMatchObject({ graph: "map", node: "first" });
    expect(error.message).toContain("otherwise");
  });

  test("an invalid input of a sent task is refused before any task runs", async () => {
    const ran: string[] = [];
    const graph = mapReduce((input) => {
      ran.push(input);
      return input;
    });
    const error = await getFailure(
      run(graph, { input: { items: ["short", "much too long"] } }).result,
      "invalid_update",
    );
    expect(error.message).toContain('"each"');
    expect(ran).toEqual([]);
  });

  test.each([
    ["goto to a node with input", () => goto("each")],
    ["send to a node without input", () => send("end", "x")],
    ["send to the end", () => send(END, "x")],
  ])("a %s is refused, so that no input is lost", async (_name, body) => {
    const graph = defineGraph({ name: "wrong", state: Work })
      .nodes({
        a: () => fromJavaScript<ReturnType<typeof goto<"end">>>(body()),
        each: inputNode(z.string(), () => undefined),
        end: () => undefined,
      })
      .edges({ [START]: "a", a: commandTargets("each", "end", END), each: END, end: END });
    const error = await getFailure(run(graph, {}).result, "dead_route");
    expect(error.place).toMatchObject({ node: "a", graph: "wrong" });
  });
});

describe("fold order of writes", () => {
  const All = defineState({
    log: channel.list(z.string()),
    text: channel.reduce(z.string().default(""), (before, write: string) => before + write),
    chat: channel.messages(),
    by: channel.record(z.string()),
  });
  const names = ["d", "b", "a", "c"];

  function createFanOutGraph(delayMs: (name: string) => number, world: ReturnType<typeof createVirtualWorld>) {
    const write = async (name: string) => {
      await new Promise<void>((resolve) => void world.schedule.after(delayMs(name), resolve));
      return {
        log: [name],
        text: name,
        by: { last: name },
        chat: { role: "system", id: name === "a" ? "b" : name, content: name } as const,
      };
    };
    return defineGraph({ name: "scattered", state: All })
      .nodes({
        d: () => write("d"),
        b: () => write("b"),
        a: () => write("a"),
        each: inputNode(z.string(), (_state, { input }) => write(input)),
        fan: () => undefined,
        more: () => undefined,
      })
      .edges({
        [START]: ["a", "fan", "b", "d", "more"],
        a: END,
        b: END,
        d: END,
        more: fanOut("each", () => ["m1", "m2"]),
        fan: fanOut("each", () => ["f1", "f2"]),
        each: END,
      });
  }

  test("writes fold by node declaration order, then sends by emitter and index, whatever the completion order [E3]", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { minLength: 7, maxLength: 7 }), async (delays) => {
        const world = createVirtualWorld();
        const order = [...names, "m1", "m2", "f1", "f2"];
        const handle = run(
          createFanOutGraph((name) => delays[order.indexOf(name)] ?? 0, world),
          { world, store: memoryStore() },
        );
        await world.advance(200);
        const { state } = await handle.result;
        expect(state.log).toEqual(["d", "b", "a", "f1", "f2", "m1", "m2"]);
        expect(state.text).toBe("dbaf1f2m1m2");
        expect(state.by).toEqual({ last: "m2" });
        expect(state.chat.map(({ id, content }) => [id, content])).toEqual([
          ["d", "d"],
          ["b", "a"],
          ["f1", "f1"],
          ["f2", "f2"],
          ["m1", "m1"],
          ["m2", "m2"],
        ]);
      }),
      { numRuns: 25 },
    );
  });
});
