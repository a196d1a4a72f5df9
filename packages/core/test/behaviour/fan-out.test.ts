import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  END,
  goto,
  gotos,
  list,
  memoryStore,
  messages,
  record,
  reduce,
  resume,
  run,
  START,
  send,
  sends,
  task,
} from "../../src/index.ts";
import { eventsOf, failureOf, only } from "../support/failure.ts";
import { fromJavaScript } from "../support/from-javascript.ts";
import { virtualWorld } from "../support/virtual-world.ts";

const Work = defineState({
  items: z.array(z.string()).default([]),
  found: list(z.string()),
  done: z.boolean().default(false),
});

function mapReduce(body: (input: string) => Promise<string> | string) {
  return defineGraph({ name: "map", state: Work })
    .nodes({
      each: task(z.string().max(9), async (_state, { input }) => ({ found: [await body(input)] })),
      end: () => ({ done: true }),
    })
    .edges({ [START]: sends("each", (state) => state.items, { otherwise: "end" }), each: "end", end: END });
}

describe("sends", () => {
  test("E16 each task has an input of its own, results fold in the order of the sends, and control goes on once", async () => {
    const handle = run(
      mapReduce((input) => input.toUpperCase()),
      { input: { items: ["c", "a", "b", "a"] } },
    );
    const events = eventsOf(handle);
    const { state, steps } = await handle.result;
    expect(state).toEqual({ items: ["c", "a", "b", "a"], found: ["C", "A", "B", "A"], done: true });
    expect(steps).toBe(2);
    expect(only(events, "task.started").map(({ node, input }) => [node, input])).toEqual([
      ["each", "c"],
      ["each", "a"],
      ["each", "b"],
      ["each", "a"],
      ["end", undefined],
    ]);
  });

  test("E16 a sent task follows its node's edges, and may itself send", async () => {
    const Tree = defineState({ leaves: list(z.string()), closed: z.number().default(0) });
    const graph = defineGraph({ name: "tree", state: Tree })
      .nodes({
        branch: task(z.object({ name: z.string(), depth: z.number() }), (_state, { input: { name, depth } }) =>
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
        [START]: sends("branch", () => [{ name: "", depth: 2 }]),
        branch: gotos("branch", "close"),
        close: END,
      });
    const { state } = await run(graph, {}).result;
    expect(state).toEqual({ leaves: ["ll", "lr", "rl", "rr"], closed: 1 });
  });

  test("E16 sent tasks that all lead to more sends start them once", async () => {
    const graph = defineGraph({ name: "two", state: Work })
      .nodes({
        first: task(z.string(), (_state, { input }) => ({ found: [input] })),
        second: task(z.string(), (_state, { input }) => ({ found: [`${input}2`] })),
      })
      .edges({
        [START]: sends("first", () => ["a", "b"]),
        first: sends("second", (state) => state.found),
        second: END,
      });
    expect((await run(graph, {}).result).state.found).toEqual(["a", "b", "a2", "b2"]);
  });

  test("an input may be of a type that JSON Schema cannot say, and survives a resume", async () => {
    const Days = defineState({ years: list(z.number()) });
    const graph = defineGraph({ name: "days", state: Days, interrupts: { go: z.union([z.date(), z.bigint()]) } })
      .nodes({
        each: task(z.date(), async (_state, { input, interrupt }) => {
          const answer = await interrupt("go");
          return { years: [input.getUTCFullYear(), Number(answer)] };
        }),
      })
      .edges({ [START]: sends("each", () => [new Date(0)]), each: END });
    const store = memoryStore();
    expect(await run(graph, { store, thread: "t" }).result).toMatchObject({ status: "waiting" });
    const { state } = await resume(graph, { store, thread: "t", answers: { go: 7n } }).result;
    expect(state.years).toEqual([1970, 7]);
  });

  test("E13 no sends follow the declared `otherwise` target; without one it is a typed error", async () => {
    const { state } = await run(mapReduce(String), { input: { items: [] } }).result;
    expect(state).toEqual({ items: [], found: [], done: true });
    const graph = defineGraph({ name: "map", state: Work })
      .nodes({ first: () => undefined, each: task(z.string(), () => undefined) })
      .edges({ [START]: "first", first: sends("each", (state) => state.items), each: END });
    const error = await failureOf(run(graph, {}).result, "empty_sends");
    expect(error.place).toMatchObject({ graph: "map", node: "first" });
    expect(error.message).toContain("otherwise");
  });

  test("an input that does not fit its task is refused before any task runs", async () => {
    const ran: string[] = [];
    const graph = mapReduce((input) => {
      ran.push(input);
      return input;
    });
    const error = await failureOf(
      run(graph, { input: { items: ["short", "much too long"] } }).result,
      "invalid_update",
    );
    expect(error.message).toContain('"each"');
    expect(ran).toEqual([]);
  });

  test.each([
    ["goto to a node that takes an input", () => goto("each")],
    ["send to a node that takes none", () => send("end", "x")],
    ["send to the end", () => send(END, "x")],
  ])("a %s is refused, so that no input is lost", async (_name, body) => {
    const graph = defineGraph({ name: "wrong", state: Work })
      .nodes({
        a: () => fromJavaScript<ReturnType<typeof goto<"end">>>(body()),
        each: task(z.string(), () => undefined),
        end: () => undefined,
      })
      .edges({ [START]: "a", a: gotos("each", "end", END), each: END, end: END });
    const error = await failureOf(run(graph, {}).result, "dead_route");
    expect(error.place).toMatchObject({ node: "a", graph: "wrong" });
  });
});

describe("writes fold in declared order", () => {
  const All = defineState({
    log: list(z.string()),
    text: reduce(z.string().default(""), (before, write: string) => before + write),
    chat: messages(),
    by: record(z.string()),
  });
  const names = ["d", "b", "a", "c"];

  function scattered(delayMs: (name: string) => number, world: ReturnType<typeof virtualWorld>) {
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
        each: task(z.string(), (_state, { input }) => write(input)),
        fan: () => undefined,
        more: () => undefined,
      })
      .edges({
        [START]: ["a", "fan", "b", "d", "more"],
        a: END,
        b: END,
        d: END,
        more: sends("each", () => ["m1", "m2"]),
        fan: sends("each", () => ["f1", "f2"]),
        each: END,
      });
  }

  test("E3 nodes in the order of their declaration, then sends by emitter and index, whatever finishes first", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { minLength: 7, maxLength: 7 }), async (delays) => {
        const world = virtualWorld();
        const order = [...names, "m1", "m2", "f1", "f2"];
        const handle = run(
          scattered((name) => delays[order.indexOf(name)] ?? 0, world),
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
