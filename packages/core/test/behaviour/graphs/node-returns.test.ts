import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  commandTargets,
  defineGraph,
  defineState,
  END,
  edit,
  goto,
  memoryStore,
  overwrite,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { getFailure } from "../../support/failure.ts";
import { fromJavaScript } from "../../support/from-javascript.ts";

const S = defineState({
  count: z.number().default(0),
  text: z.string().default("start"),
  doc: z.object({ tags: z.array(z.string()), by: z.string().optional() }).default({ tags: [] }),
  when: z.map(z.string(), z.number()).default(new Map()),
  log: channel.list(z.string()),
  note: z.string().nullable().default("note"),
  flag: z.boolean().default(true),
});

/** Creates a graph of one node that returns the untyped value `returned`. */
function returning(returned: unknown) {
  return defineGraph({ name: "one", state: S })
    .nodes({ a: () => returned as undefined })
    .edges({ [START]: "a", a: END });
}

async function stateAfter(returned: unknown) {
  return (await run(returning(returned), {}).result).state;
}

describe("allowed returns of a node [E6]", () => {
  test("a node may return nothing [E6]", async () =>
    expect(await stateAfter(undefined)).toMatchObject({ count: 0, text: "start" }));
  test("a node may return a partial state [E6]", async () =>
    expect(await stateAfter({ count: 2 })).toMatchObject({ count: 2, text: "start" }));
  test("a node may return a list of partial states with undefined items, applied in order [E6]", async () =>
    expect(await stateAfter([{ count: 1, log: ["a"] }, undefined, { count: 2 }, { log: ["b"] }])).toMatchObject({
      count: 2,
      log: ["a", "b"],
    }));
  test("a node may return a recipe over a draft, which sees writes of earlier items and may change a map [E6]", async () => {
    const state = await stateAfter([
      { doc: { tags: ["x"] } },
      edit((draft: { doc: { tags: string[]; by?: string }; when: Map<string, number> }) => {
        draft.doc.tags.push("y");
        draft.doc.by = "me";
        draft.when.set("now", 1);
      }),
    ]);
    expect(state).toMatchObject({ doc: { tags: ["x", "y"], by: "me" }, when: new Map([["now", 1]]) });
  });
  test("a node may return a command with an update [E6]", async () => {
    const graph = defineGraph({ name: "one", state: S })
      .nodes({ a: () => goto("b", { count: 5 }), b: (state) => ({ text: `${state.count}` }) })
      .edges({ [START]: "a", a: commandTargets("b"), b: END });
    expect((await run(graph, {}).result).state).toMatchObject({ count: 5, text: "5" });
  });
  test("a recipe may change only channels without a reducer [E6]", async () => {
    const error = await getFailure(
      stateAfter(edit((draft: { log: string[] }) => void draft.log.push("x"))),
      "invalid_update",
    );
    expect(error.place).toMatchObject({ node: "a", channel: "log", graph: "one" });
  });

  test.each([
    ["a number", 5],
    ["null", null],
    ["null in a list", [null]],
    ["a list in a list", [[{ count: 1 }]]],
    ["a map", new Map([["count", 1]])],
    ["an instance of a class", new (class Update {})()],
    ["a text", "count"],
  ])("a node that returns %s is refused with its name", async (_name, returned) => {
    const error = await getFailure(stateAfter(returned), "invalid_update");
    expect(error.place).toMatchObject({ graph: "one", node: "a", step: 0, attempt: 1 });
    expect(error.place.task).toBe("0:0");
    expect(error.place.thread).toMatch(/^thread_/);
  });

  test("a recipe that returns a new state instead of changing its draft is refused, and a recipe that returns its draft is accepted", async () => {
    const copied = edit((draft: { count: number }) => ({ ...draft, count: 7 }));
    expect((await getFailure(stateAfter(copied), "invalid_update")).message).toContain(
      "did not change its draft and returned a value",
    );
    const partial = edit((_draft: { count: number }) => ({ count: 7 }));
    expect((await getFailure(stateAfter(partial), "invalid_update")).message).toContain(
      "did not change its draft and returned a value",
    );
    const assigned = edit((draft: { count: number }) => Object.assign(draft, { count: 7 }));
    expect(await stateAfter(assigned)).toMatchObject({ count: 7 });
    expect(await stateAfter(edit((draft: { count: number }) => draft))).toMatchObject({ count: 0 });
  });

  test("a recipe that is async, adds a channel, or breaks a schema is refused", async () => {
    const later = await getFailure(
      stateAfter(
        edit(
          fromJavaScript<(draft: { count: number }) => void>(async (draft: { count: number }) => {
            await Promise.resolve();
            draft.count = 1;
          }),
        ),
      ),
      "invalid_update",
    );
    expect(later.message).toContain("asynchronous");
    await getFailure(
      stateAfter(
        edit((draft: { more?: number }) => {
          draft.more = 1;
        }),
      ),
      "unknown_channel",
    );
    await getFailure(
      stateAfter(
        edit((draft: { more?: undefined }) => {
          draft.more = undefined;
        }),
      ),
      "unknown_channel",
    );
    const wrong = await getFailure(
      stateAfter(edit((draft: { doc: { tags: unknown[] } }) => void draft.doc.tags.push(7))),
      "invalid_update",
    );
    expect(wrong.place).toMatchObject({ channel: "doc", path: "tags.0", node: "a" });
  });
});

test("an unknown key in a node return is a type error, and a run-time error that names node and key [E4]", async () => {
  const base = defineGraph({ name: "one", state: S });
  // @ts-expect-error returns a channel that the state does not have
  base.nodes({ a: () => ({ cuont: 1 }) });
  for (const key of ["cuont", "toString", "__proto__"]) {
    const error = await getFailure(stateAfter(JSON.parse(`{"${key}":1}`)), "unknown_channel");
    expect(error.message).toContain(`the node "a" wrote the channel "${key}"`);
    expect(error.place).toMatchObject({ graph: "one", node: "a", channel: key });
  }
});

test("0, an empty string, false and null survive input, update, save and load; undefined is not written [E5]", async () => {
  const store = memoryStore();
  const graph = defineGraph({
    name: "falsy",
    state: S,
    interrupts: { ok: z.union([z.literal(0), z.literal(""), z.null(), z.literal(false)]) },
  })
    .nodes({
      a: (state) => [
        { log: [JSON.stringify([state.count, state.text, state.note, state.flag])] },
        { count: undefined, note: undefined },
      ],
      b: async (_state, { interrupt, step }) => {
        const stepped = [
          await step("n", () => null),
          await step("f", () => false),
          await step("z", () => 0),
          await step("e", () => ""),
        ];
        const answer = await interrupt("ok");
        return { count: 0, text: "", note: null, flag: false, log: [JSON.stringify([stepped, answer])] };
      },
    })
    .edges({ [START]: "a", a: "b", b: END });
  const input = { count: 0, text: "", note: null, flag: false, doc: undefined };
  const first = await run(graph, { store, thread: "t", input }).result;
  expect(first.state).toMatchObject({ count: 0, text: "", note: null, flag: false, doc: { tags: [] } });
  const second = await resume(graph, { store, thread: "t", answers: { ok: null } }).result;
  expect(second).toMatchObject({ status: "done" });
  const { state } = await resume(graph, { store, thread: "t" }).result;
  expect(state).toMatchObject({ count: 0, text: "", note: null, flag: false });
  expect(state.log).toEqual(['[0,"",null,false]', '[[null,false,0,""],null]']);
});

describe("channels", () => {
  test("every channel kind works through a run, and an untracked value is absent after a resume [E1]", async () => {
    const client = new URL("https://client.example");
    const Kinds = defineState({
      last: z.string().default(""),
      items: channel.list(z.number()),
      sum: channel.reduce(z.number().default(1), (sum, by: { readonly add: number }) => sum + by.add),
      chat: channel.messages(),
      by: channel.record(z.number()),
      flash: channel.ephemeral(z.string()),
      client: channel.untracked(z.instanceof(URL)),
    });
    const seen: unknown[] = [];
    const graph = defineGraph({ name: "kinds", state: Kinds, interrupts: { go: z.boolean() } })
      .nodes({
        a: () => ({
          last: "a",
          items: [1],
          sum: { add: 1 },
          by: { x: 1, y: 1 },
          chat: [{ role: "system", id: "s", content: "one" } as const],
          flash: "now",
          client,
        }),
        b: (state) => {
          seen.push(state.flash, state.client);
          return {
            last: "b",
            items: [2, 3],
            sum: { add: 10 },
            by: { y: undefined, z: 2 },
            chat: { role: "system", id: "s", content: "two" } as const,
          };
        },
        c: async (state, { interrupt }) => {
          seen.push(state.flash, state.client);
          await interrupt("go");
          seen.push(state.client);
        },
      })
      .edges({ [START]: "a", a: "b", b: "c", c: END });
    const store = memoryStore();
    const handed = await run(graph, { store, thread: "t", input: { sum: 100 } }).result;
    expect(handed.state.client).toBe(client);
    const { state } = await resume(graph, { store, thread: "t", answers: { go: true } }).result;
    expect(state).toEqual({
      last: "b",
      items: [1, 2, 3],
      sum: 111,
      by: { x: 1, z: 2 },
      chat: [{ role: "system", id: "s", content: "two" }],
      flash: undefined,
      client: undefined,
    });
    expect(seen).toEqual(["now", client, undefined, client, undefined, undefined, undefined]);
    const saved = JSON.stringify(await store.history("t", { limit: 100 }));
    expect(saved).not.toContain("client.example");
  });

  test("a channel accepts any Standard Schema [E1]", async () => {
    const even = {
      "~standard": {
        version: 1 as const,
        vendor: "mine",
        types: undefined as { readonly input: number; readonly output: number } | undefined,
        validate: (value: unknown) =>
          typeof value === "number" && value % 2 === 0
            ? { value }
            : { issues: [{ message: "expected an even number" }] },
      },
    };
    const graph = defineGraph({ name: "even", state: defineState({ n: even }) })
      .nodes({ a: (state) => ({ n: state.n + 1 }) })
      .edges({ [START]: "a", a: END });
    const error = await getFailure(run(graph, { input: { n: 2 } }).result, "invalid_update");
    expect(error.message).toContain("expected an even number");
  });

  test("the input of a channel with a reducer is its complete value and not one write", async () => {
    const Sum = defineState({ sum: channel.reduce(z.number(), (sum, by: { readonly add: number }) => sum + by.add) });
    const graph = defineGraph({ name: "sum", state: Sum })
      .nodes({ a: () => ({ sum: { add: 1 } }) })
      .edges({ [START]: "a", a: END });
    expect((await run(graph, { input: { sum: 5 } }).result).state.sum).toBe(6);
  });
});

describe("write conflicts [E2]", () => {
  const Conflict = defineState({
    x: z.number().default(0),
    log: channel.list(z.string()),
    flash: channel.ephemeral(z.string()),
  });
  const clashing = defineGraph({ name: "clash", state: Conflict })
    .nodes({ first: () => undefined, a: () => ({ x: 1, log: ["a"] }), b: () => ({ log: ["b"], x: 2 }) })
    .edges({ [START]: "first", first: ["a", "b"], a: END, b: END });

  test("two tasks that write a `last` channel conflict; the error names channel and nodes, and nothing is applied [E2]", async () => {
    const store = memoryStore();
    const error = await getFailure(run(clashing, { store, thread: "t" }).result, "channel_conflict");
    expect(error.message).toContain('"a" and "b" wrote the channel "x"');
    expect(error.place).toMatchObject({ graph: "clash", channel: "x", thread: "t", step: 1 });
    const savedRows = await store.state("t", (await store.head("t"))?.id ?? 0);
    expect(savedRows).toEqual([]);
  });

  test("recipes, ephemeral channels and two tasks of one node conflict on a common channel [E2]", async () => {
    const recipes = defineGraph({ name: "clash", state: Conflict })
      .nodes({
        a: () =>
          edit((draft: { x: number }) => {
            draft.x = 1;
          }),
        b: () => ({ flash: "b", x: 1 }),
      })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    await getFailure(run(recipes, {}).result, "channel_conflict");
    const flashes = defineGraph({ name: "clash", state: Conflict })
      .nodes({ a: () => ({ flash: "a" }), b: () => ({ flash: "b" }) })
      .edges({ [START]: ["a", "b"], a: END, b: END });
    await getFailure(run(flashes, {}).result, "channel_conflict");
  });

  test("a task may write a channel several times, and the last write wins", async () => {
    expect(await stateAfter([{ count: 1 }, { count: 2 }])).toMatchObject({ count: 2 });
  });

  test("an overwrite is the base of its channel, other writes of the step fold on top, and two overwrites conflict [E10]", async () => {
    const by = (returned: Readonly<Record<"a" | "b" | "c", unknown>>) =>
      defineGraph({
        name: "over",
        state: defineState({
          log: channel.list(z.string()),
          sum: channel.reduce(z.number().default(0), (sum, n: number) => sum + n),
        }),
      })
        .nodes({ a: () => returned.a as undefined, b: () => returned.b as undefined, c: () => returned.c as undefined })
        .edges({ [START]: ["a", "b", "c"], a: END, b: END, c: END });
    const input = { log: ["old"], sum: 1_000 };
    const { state } = await run(
      by({ a: { log: ["a"], sum: 1 }, b: { log: overwrite(["base"]), sum: 2 }, c: { log: ["c"], sum: overwrite(10) } }),
      { input },
    ).result;
    expect(state).toEqual({ log: ["base", "a", "c"], sum: 13 });
    const error = await getFailure(
      run(by({ a: { log: overwrite([]) }, b: {}, c: { log: overwrite(["x"]) } }), { input }).result,
      "channel_conflict",
    );
    expect(error.message).toContain('"a" and "c" overwrote the channel "log"');
  });
});

test("an overwrite of a record or of messages replaces the complete value", async () => {
  const Whole = defineState({ by: channel.record(z.number()), chat: channel.messages() });
  const graph = defineGraph({ name: "whole", state: Whole })
    .nodes({ a: () => ({ by: overwrite({ z: 1 }), chat: overwrite([]) }) })
    .edges({ [START]: "a", a: END });
  const input = { by: { a: 1 }, chat: [{ role: "system", id: "s", content: "x" } as const] };
  expect((await run(graph, { input }).result).state).toEqual({ by: { z: 1 }, chat: [] });
});

test("a reducer that throws, or returns an invalid value, fails with the name of the node whose write it folded", async () => {
  const Bad = defineState({
    sum: channel.reduce(z.number().max(9).default(0), (sum, by: number) => (by === 13 ? JSON.parse("{") : sum + by)),
  });
  const graph = (second: number) =>
    defineGraph({ name: "bad", state: Bad })
      .nodes({ a: () => ({ sum: 1 }), b: () => ({ sum: second }) })
      .edges({ [START]: ["a", "b"], a: END, b: END });
  for (const second of [13, 50]) {
    const error = await getFailure(run(graph(second), {}).result, "invalid_update");
    expect(error.place).toMatchObject({ node: "b", channel: "sum", graph: "bad", step: 0 });
  }
});
