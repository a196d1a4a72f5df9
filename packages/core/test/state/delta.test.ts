import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import {
  createInitialState,
  createStateWriter,
  parseDelta,
  restoreState,
} from "../../src/checkpoint/codec/saved-state.ts";
import { getPlan } from "../../src/compile/plan.ts";
import { channel, defineGraph, defineState, END, edit, START } from "../../src/index.ts";
import { readReturn, type State } from "../../src/run/session/returns.ts";
import { reduceSuperstep } from "../../src/run/superstep/superstep.ts";
import { applyDelta, type Delta, type Patch, plainCodec } from "../../src/store.ts";
import { getFailure } from "../support/failure.ts";

test("a clear delta leaves no value, and an append delta to no value gives a list", () => {
  expect(applyDelta("x", { kind: "clear" })).toBeUndefined();
  expect(applyDelta(undefined, { kind: "append", items: [1] })).toEqual([1]);
});

test("a patch delta changes its own path and shares the rest of the value", () => {
  const before = { kept: { a: 1 }, list: [1, 2, 3] };
  const after = applyDelta(before, {
    kind: "patch",
    patches: [
      { op: "replace", path: ["list", 1], value: 9 },
      { op: "remove", path: ["list", 0] },
      { op: "add", path: ["list", 2], value: 7 },
      { op: "add", path: ["new"], value: { deep: [] } },
      { op: "add", path: ["new", "deep", 0], value: 1 },
      { op: "replace", path: ["list", "length"], value: 2 },
    ],
  }) as typeof before;
  expect(after).toEqual({ kept: { a: 1 }, list: [9, 3], new: { deep: [1] } });
  expect(after.kept).toBe(before.kept);
  expect(before).toEqual({ kept: { a: 1 }, list: [1, 2, 3] });
  expect(() => after.list.push(1)).toThrow(TypeError);
});

test("a delta that does not match its value is reported as a corrupt store", async () => {
  const unfit: readonly (readonly [current: unknown, patch: Patch])[] = [
    [5, { op: "add", path: ["a", "b"], value: 1 }],
    [[1], { op: "replace", path: ["length"], value: 4_000_000_000 }],
    [[1], { op: "replace", path: ["length"], value: "x" }],
    [[1], { op: "replace", path: [4_000_000_000], value: 1 }],
    [[1], { op: "add", path: ["a"], value: 1 }],
  ];
  for (const [current, patch] of unfit)
    await getFailure(() => applyDelta(current, { kind: "patch", patches: [patch] }), "store_corrupt");
  await getFailure(() => applyDelta("x", { kind: "append", items: [1] }), "store_corrupt");
});

test("a malformed stored delta is reported as a corrupt store", async () => {
  const none = [
    ["append", "5"],
    ["append", '{"length":9}'],
    ["patch", "{}"],
    ["patch", "[null]"],
    ["patch", '[{"op":"move","path":[]}]'],
    ["patch", '[{"op":"add","path":[null]}]'],
    ["patch", '[{"op":"add","path":"ab"}]'],
  ] as const;
  for (const [kind, text] of none) await getFailure(() => parseDelta(plainCodec, { kind, text }), "store_corrupt");
});

test("a key `__proto__` in a patch is data [E48]", () => {
  const after = applyDelta({}, { kind: "patch", patches: [{ op: "add", path: ["__proto__"], value: { x: 1 } }] });
  expect(Object.hasOwn(after as object, "__proto__")).toBe(true);
  expect(Object.getPrototypeOf(after)).toBe(Object.prototype);
});

const Free = defineState({
  doc: z.record(z.string(), z.any()).default({}),
  when: z.map(z.string(), z.number()).default(new Map()),
});
const free = defineGraph({ name: "free", state: Free })
  .nodes({ a: () => undefined })
  .edges({ [START]: "a", a: END });

type Draft = Record<string, unknown>;
const name = fc.constantFrom("a", "b", "c");
const item = fc.oneof(
  fc.integer(),
  fc.constant(null),
  fc.record({ x: fc.integer() }),
  fc.array(fc.integer(), { maxLength: 3 }),
);
/** One operation of a recipe on a document of objects and lists. */
const anyEdit: fc.Arbitrary<(draft: Draft) => void> = fc.oneof(
  fc.tuple(name, item).map(
    ([key, value]) =>
      (draft: Draft) =>
        void Object.assign(draft, { [key]: value }),
  ),
  name.map((key) => (draft: Draft) => void delete draft[key]),
  fc.tuple(name, fc.array(item, { maxLength: 4 })).map(
    ([key, items]) =>
      (draft: Draft) =>
        void Object.assign(draft, { [key]: items }),
  ),
  fc.tuple(name, item, fc.nat(3)).map(([key, value, at]) => (draft: Draft) => {
    const inside = draft[key];
    if (Array.isArray(inside)) inside.splice(at, 1, value, value);
    else if (typeof inside === "object" && inside !== null) Object.assign(inside, { y: value });
  }),
  fc.tuple(name, fc.nat(2)).map(([key, length]) => (draft: Draft) => {
    const inside = draft[key];
    if (Array.isArray(inside)) inside.length = Math.min(length, inside.length);
  }),
  name.map((key) => (draft: Draft) => void (Array.isArray(draft[key]) && draft[key].reverse())),
  fc.tuple(name, name).map(
    ([from, to]) =>
      (draft: Draft) =>
        Object.assign(draft, { [to]: { inside: draft[from] } }),
  ),
);

test("saved deltas of any recipe replay to the folded state", () => {
  const plan = getPlan(free);
  fc.assert(
    fc.property(fc.array(fc.array(anyEdit, { minLength: 1, maxLength: 4 }), { maxLength: 5 }), (steps) => {
      let state: State = Object.freeze(createInitialState(Free.channels));
      const writer = createStateWriter(Free.channels, plainCodec, []);
      const saved: { kind: Delta["kind"]; text: string }[] = [];
      for (const [index, edits] of steps.entries()) {
        const recipe = edit((draft: { doc: Draft }) => edits.forEach((work) => void work(draft.doc)));
        const outcome = readReturn(plan, "a", state, recipe);
        const result = reduceSuperstep(
          plan,
          index,
          { state, joins: {} },
          { results: [{ task: { id: `${index}:0`, node: "a" }, outcome }] },
        );
        for (const { channel: oneChannel, kind, text } of writer.rows(result.deltas, result.state))
          if (oneChannel === "doc") saved.push({ kind, text });
        state = result.state;
        const restored = restoreState(Free.channels, plainCodec, [{ channel: "doc", deltas: saved }]);
        expect(restored["doc"]).toEqual(state["doc"]);
      }
    }),
    { numRuns: 300 },
  );
});

test("a recipe result transformed by a schema is saved as transformed", () => {
  const Trimmed = defineState({ user: z.object({ name: z.string().trim() }).default({ name: "" }) });
  const graph = defineGraph({ name: "trim", state: Trimmed })
    .nodes({ a: () => undefined })
    .edges({ [START]: "a", a: END });
  const before = createInitialState(Trimmed.channels);
  const recipe = edit(
    (draft: { user: { name: string; extra?: number } }) =>
      Object.assign(draft.user, { name: " x ", extra: 1 }) && undefined,
  );
  const outcome = readReturn(getPlan(graph), "a", before, recipe);
  const { state, deltas } = reduceSuperstep(
    getPlan(graph),
    1,
    { state: before, joins: {} },
    { results: [{ task: { id: "1:0", node: "a" }, outcome }] },
  );
  expect(state["user"]).toEqual({ name: "x" });
  expect(applyDelta(before["user"], deltas["user"]!)).toEqual({ name: "x" });
});

test("list holes survive patches and recipes [E48]", () => {
  const Board = defineState({ cells: z.custom<unknown[]>().default([]) });
  const graph = defineGraph({ name: "board", state: Board })
    .nodes({ a: () => undefined })
    .edges({ [START]: "a", a: END });
  const applyRecipe = (before: unknown[], recipe: (draft: { cells: unknown[] }) => void) => {
    const outcome = readReturn(getPlan(graph), "a", { cells: before }, edit(recipe));
    const { state, deltas } = reduceSuperstep(
      getPlan(graph),
      1,
      { state: { cells: before }, joins: {} },
      { results: [{ task: { id: "1:0", node: "a" }, outcome }] },
    );
    const [row] = createStateWriter(Board.channels, plainCodec, []).rows(deltas, state);
    const saved = row === undefined ? undefined : parseDelta(plainCodec, row);
    return { state: state["cells"], saved: saved && applyDelta(before, saved) };
  };
  const moved = applyRecipe(
    Object.assign(new Array(3), { 0: "o" }),
    (draft) => void Object.assign(draft.cells, { 2: "x" }),
  );
  expect(moved.state).toStrictEqual(Object.assign(new Array(3), { 0: "o", 2: "x" }));
  expect(moved.saved).toStrictEqual(moved.state);
  const grown = applyRecipe(["o"], (draft) => void Object.assign(draft.cells, { 3: "x" }));
  expect(grown.state).toStrictEqual(Object.assign(new Array(4), { 0: "o", 3: "x" }));
  expect(grown.saved).toStrictEqual(grown.state);
});

test("an object without a prototype keeps none after a change, in state and in saved data [E48]", () => {
  const bare = (entries: object): object => Object.assign(Object.create(null), entries);
  const Words = defineState({ counts: z.custom<Record<string, unknown>>().default({}) });
  const graph = defineGraph({ name: "words", state: Words })
    .nodes({ a: () => undefined })
    .edges({ [START]: "a", a: END });
  const before = { counts: bare({ the: 1, in: bare({ there: 2 }) }) };
  const recipe = edit(
    (draft: typeof before & { counts: { in: object } }) =>
      void Object.assign(draft.counts.in, { new: bare({ x: undefined }) }),
  );
  const outcome = readReturn(getPlan(graph), "a", before, recipe);
  const { state, deltas } = reduceSuperstep(
    getPlan(graph),
    1,
    { state: before, joins: {} },
    { results: [{ task: { id: "1:0", node: "a" }, outcome }] },
  );
  const [row] = createStateWriter(Words.channels, plainCodec, []).rows(deltas, state);
  const saved = row === undefined ? undefined : parseDelta(plainCodec, row);
  expect(saved?.kind).toBe("patch");
  const wanted = bare({ the: 1, in: bare({ there: 2, new: bare({ x: undefined }) }) });
  expect(state["counts"]).toStrictEqual(wanted);
  expect(saved && applyDelta(before.counts, saved)).toStrictEqual(wanted);
});

test("a recipe may change a map, which is saved complete", () => {
  const before = createInitialState(Free.channels);
  const outcome = readReturn(
    getPlan(free),
    "a",
    before,
    edit((draft: { when: Map<string, number> }) => void draft.when.set("k", 1)),
  );
  const { state, deltas } = reduceSuperstep(
    getPlan(free),
    1,
    { state: before, joins: {} },
    { results: [{ task: { id: "1:0", node: "a" }, outcome }] },
  );
  expect(state["when"]).toEqual(new Map([["k", 1]]));
  expect(deltas["when"]).toEqual({ kind: "replace", value: new Map([["k", 1]]) });
});

test("state is rebuilt from any mix of rows, with initial values for channels without writes", () => {
  const { channels } = defineState({
    log: channel.list(z.number()),
    by: channel.record(z.number()),
    n: z.number().default(7),
    gone: z.string().default(""),
  });
  const text = (value: unknown) => plainCodec.encode(value, "the test");
  const restored = restoreState(channels, plainCodec, [
    { channel: "log", deltas: [1, 2, 3].map((n) => ({ kind: "append", text: text([n]) })) },
    {
      channel: "by",
      deltas: [
        { kind: "patch", text: text([{ op: "add", path: ["a"], value: 1 }]) },
        {
          kind: "patch",
          text: text([
            { op: "remove", path: ["a"] },
            { op: "add", path: ["b"], value: 2 },
          ]),
        },
        { kind: "replace", text: text({ z: 0 }) },
        { kind: "replace", text: text({ c: 3 }) },
        { kind: "patch", text: text([{ op: "add", path: ["d"], value: 4 }]) },
      ],
    },
    { channel: "removed from the graph", deltas: [{ kind: "replace", text: "1" }] },
  ]);
  expect(restored).toEqual({ log: [1, 2, 3], by: { c: 3, d: 4 }, n: 7, gone: "" });
});

test("patches larger than their value are replaced by a new base", () => {
  const { channels } = defineState({ by: channel.record(z.string()) });
  const writer = createStateWriter(channels, plainCodec, []);
  let state: Record<string, unknown> = createInitialState(channels);
  const kinds: string[] = [];
  for (let step = 0; step < 60; step++) {
    const { value, delta } = channels["by"]!.reduce(state["by"], [[["k", "x".repeat(200) + step]]]);
    state = { by: value };
    kinds.push(...writer.rows({ by: delta }, state).map((row) => row.kind));
  }
  expect(new Set(kinds)).toEqual(new Set(["patch", "replace"]));
  expect(kinds.filter((kind) => kind === "replace").length).toBeLessThan(10);
});
