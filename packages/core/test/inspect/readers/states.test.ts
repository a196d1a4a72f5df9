/** Readers of states without the graph, compared with reads by the graph. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { findPart, parseJsonPointer, toJsonPointer } from "../../../src/base/json-pointer.ts";
import {
  defineGraph,
  defineState,
  END,
  edit,
  getHistory,
  getState,
  memoryStore,
  run,
  START,
} from "../../../src/index.ts";
import {
  applyJsonPatch,
  createLenientCodec,
  diffStates,
  getStateAt,
  getSuperstep,
  isSuperstep,
  listSupersteps,
  pruneThread,
} from "../../../src/inspect.ts";
import { diffValues } from "../../../src/state/json-patch.ts";
import { createCodec } from "../../../src/store.ts";
import { getFailure } from "../../support/failure.ts";
import { Money, moneyCodec, randomGraph, runThreadPlan, threadPlans } from "../../support/random-thread.ts";

const runs = { numRuns: 40, seed: 20_26 };

/** Removes channels that no superstep wrote and cleared channels: only the graph knows their values. */
function keepWritten(state: object, written: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(state).filter(([name]) => Object.hasOwn(written, name)));
}

describe("states without their graph", () => {
  test("equal the states that the graph reads, at every checkpoint of random forks [ND4]", async () => {
    await fc.assert(
      fc.asyncProperty(threadPlans, async (plan) => {
        const store = memoryStore();
        for (const branch of await runThreadPlan(store, plan)) {
          for await (const { checkpointId: at } of getHistory(randomGraph, {
            store,
            thread: "t",
            codec: moneyCodec,
            branch,
          })) {
            const { state } = await getState(randomGraph, { store, thread: "t", at, codec: moneyCodec });
            const { value } = await getStateAt(store, { thread: "t", at, codec: moneyCodec });
            expect(value).toEqual(keepWritten(state, value as object));
            const missing = Object.keys(state).filter((name) => !Object.hasOwn(value as object, name));
            const initial = {
              doc: { items: [7, 8], name: "first", "a/b~c": 0 },
              log: [],
              notes: {},
              total: 0,
              flash: undefined,
            };
            expect(Object.fromEntries(missing.map((name) => [name, Reflect.get(state, name)]))).toEqual(
              Object.fromEntries(missing.map((name) => [name, Reflect.get(initial, name)])),
            );
          }
        }
      }),
      runs,
    );
  });

  test("patches of supersteps and of two checkpoints lead from one state to the other [ND3, ND4]", async () => {
    await fc.assert(
      fc.asyncProperty(threadPlans, async (plan) => {
        const store = memoryStore();
        await runThreadPlan(store, plan);
        const rows = (await listSupersteps(store, { thread: "t", after: 0, limit: 500 })).filter(isSuperstep);
        const getValue = async (at: number) => (await getStateAt(store, { thread: "t", at })).value;
        for (const { id, parent } of rows) {
          const detail = await getSuperstep(store, { thread: "t", checkpoint: id });
          const before = parent === undefined ? {} : await getValue(parent);
          const after = await getValue(id);
          expect(applyJsonPatch(before, detail?.patch ?? [])).toEqual(after);
          const [first] = rows;
          const patch = await diffStates(store, { thread: "t", from: first?.id ?? 0, to: id });
          expect(applyJsonPatch(await getValue(first?.id ?? 0), patch)).toEqual(after);
        }
      }),
      { ...runs, numRuns: 20 },
    );
  });

  test("the first change of a channel with an initial value is complete without the graph [ND4]", async () => {
    const graph = defineGraph({
      name: "initial",
      state: defineState({
        doc: z.object({ a: z.number(), list: z.array(z.number()) }).default({ a: 1, list: [1, 2] }),
      }),
    })
      .nodes({ n: () => edit((draft: { doc: { list: number[] } }) => void draft.doc.list.push(3)) })
      .edges({ [START]: "n", n: END });
    const store = memoryStore();
    const { state } = await run(graph, { store, thread: "t" }).result;
    expect((await getStateAt(store, { thread: "t" })).value).toEqual(state);
  });

  test("a pruned thread has the same states at its remaining checkpoints [ND4]", async () => {
    const store = memoryStore();
    const actions = [1, 2, 3, 4, 5, 6].flatMap((n) => [{ kind: "log", n } as const, { kind: "name", n } as const]);
    await runThreadPlan(store, { actions, forks: [] });
    const rows = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    const states = await Promise.all(rows.map(({ id }) => getStateAt(store, { thread: "t", at: id })));
    await pruneThread(store, { thread: "t", keepLast: 3, codec: moneyCodec });
    const left = (await listSupersteps(store, { thread: "t" })).filter(isSuperstep);
    expect(left).toHaveLength(3);
    for (const { id } of left) {
      const place = rows.findIndex((row) => row.id === id);
      expect((await getStateAt(store, { thread: "t", at: id })).value).toEqual(states[place]?.value);
      const detail = await getSuperstep(store, { thread: "t", checkpoint: id });
      expect(detail?.patch.length).toBeGreaterThan(0);
    }
  });
});

describe("parts of a state", () => {
  const state = { big: "x".repeat(1_000), list: [{ deep: { deeper: 1 } }, 2, 3], small: 1 };
  const graph = defineGraph({
    name: "parts",
    state: defineState({ big: z.string(), list: z.array(z.unknown()), small: z.number() }),
  })
    .nodes({ n: () => ({}) })
    .edges({ [START]: "n", n: END });

  async function createPartsStore() {
    const store = memoryStore();
    await run(graph, { store, thread: "t", input: state }).result;
    return store;
  }

  test("a path selects a part, and a path that the state does not have selects nothing [ND4]", async () => {
    const store = await createPartsStore();
    expect((await getStateAt(store, { thread: "t", path: "/list/0/deep" })).value).toEqual({ deeper: 1 });
    expect((await getStateAt(store, { thread: "t", path: "/list/9/deep" })).value).toBeUndefined();
    expect((await getStateAt(store, { thread: "t", path: "/constructor" })).value).toBeUndefined();
  });

  test("parts below the depth are null and listed with their bytes [ND4]", async () => {
    const store = await createPartsStore();
    const { value, cut } = await getStateAt(store, { thread: "t", depth: 2 });
    expect(value).toEqual({ ...state, list: [null, 2, 3] });
    expect(cut).toEqual([{ path: "/list/0", bytes: 23 }]);
    expect((await getStateAt(store, { thread: "t", depth: 0 })).value).toBeNull();
  });

  test("a result is not larger than its limit of bytes, and names the parts left out [ND4]", async () => {
    const store = await createPartsStore();
    const { value, cut } = await getStateAt(store, { thread: "t", maxBytes: 100 });
    expect(JSON.stringify(value).length).toBeLessThanOrEqual(100);
    expect(cut).toEqual([{ path: "/big", bytes: 1_002 }]);
    const list = await getStateAt(store, { thread: "t", path: "/list", maxBytes: 26 });
    expect(list.cut).toEqual([{ path: "/list/1", bytes: 2, items: 2 }]);
    expect(list.value).toEqual([{ deep: { deeper: 1 } }]);
  });

  test("a path that is no JSON Pointer is refused with the fix [ND4]", async () => {
    const store = await createPartsStore();
    for (const path of ["list", "/a~2"]) {
      const { message } = await getFailure(getStateAt(store, { thread: "t", path }), "invalid_option");
      expect(message).toContain("must be a JSON Pointer");
    }
    await getFailure(getStateAt(store, { thread: "t", at: 99 }), "unknown_checkpoint");
    await getFailure(getStateAt(store, { thread: "u" }), "unknown_thread");
  });
});

describe("JSON Patch", () => {
  const values = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, 0, 1, "a", "/", "~", ""),
      fc.array(tie("value"), { maxLength: 5 }),
      fc.dictionary(fc.constantFrom("a", "b/c", "d~e", "", "__proto__", "0"), tie("value"), { maxKeys: 4 }),
    ),
  })).value;

  test("the difference of two values, applied to the first, gives the second [ND4]", () => {
    fc.assert(
      fc.property(values, values, (before, after) => {
        const changes = diffValues(before, after);
        expect(
          applyJsonPatch(
            before,
            changes.map(({ op }) => op),
          ),
        ).toEqual(after);
        if (JSON.stringify(before) === JSON.stringify(after)) expect(changes).toEqual([]);
        let current: unknown = before;
        for (const { op, before: replaced } of changes) {
          if (op.op !== "add") expect(findPart(current, parseJsonPointer("test", op.path)).value).toEqual(replaced);
          current = applyJsonPatch(current, [op]);
        }
      }),
      { numRuns: 500, seed: 20_26 },
    );
  });

  test("a pointer keeps every key, also with slashes and tildes [ND4]", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 4 }), (path) => {
        expect(parseJsonPointer("test", toJsonPointer(path))).toEqual(path);
      }),
      { seed: 20_26 },
    );
  });

  test("dates, maps and sets are compared by content and replaced whole [ND4]", () => {
    const before = { when: new Date(1), map: new Map([["a", 1]]), set: new Set([1]), same: new Date(5) };
    const after = { when: new Date(2), map: new Map([["a", 2]]), set: new Set([1]), same: new Date(5) };
    expect(diffValues(before, after).map(({ op }) => op.path)).toEqual(["/when", "/map"]);
  });

  test("an appended item is one operation, whatever the length of the list [ND4]", () => {
    const list = Array.from({ length: 1_000 }, (_, n) => ({ n }));
    expect(diffValues({ list }, { list: [...list, 1] }).map(({ op }) => op)).toEqual([
      { op: "add", path: "/list/1000", value: 1 },
    ]);
    expect(diffValues({ list }, { list: list.slice(1) }).map(({ op }) => op)).toEqual([
      { op: "remove", path: "/list/0" },
    ]);
  });

  test("an operation on a part that does not exist is refused [ND4]", async () => {
    for (const path of ["/a/b", "/list/4", "/list/01", "/x"])
      await getFailure(() => applyJsonPatch({ list: [1] }, [{ op: "replace", path, value: 1 }]), "invalid_option");
  });
});

describe("foreign values", () => {
  test("a value of an unknown class is shown with its tag and data, and the rest of the state too [ND5]", async () => {
    const store = memoryStore();
    await runThreadPlan(store, {
      actions: [
        { kind: "price", n: 5 },
        { kind: "log", n: 1 },
      ],
      forks: [],
    });
    const { value } = await getStateAt(store, { thread: "t" });
    expect(value).toMatchObject({ price: { foreign: "money", data: { cents: 5 } }, log: [{ n: 1 }] });
    const known = await getStateAt(store, { thread: "t", path: "/price", codec: moneyCodec });
    expect(known.value).toEqual(new Money(5));
  });

  test("built-in types, known classes and refused values are told apart [ND5]", async () => {
    const money = {
      tag: "money",
      matches: (value: unknown): value is Money => value instanceof Money,
      encode: ({ cents }: Money) => cents,
      decode: (data: unknown) => {
        if (typeof data !== "number") throw new TypeError("no number");
        return new Money(data);
      },
    };
    const text = createCodec([money]).encode({ at: new Date(3), price: new Money(1), set: new Set([1]) }, "test");
    const old = '{"price":{"$":"money","v":{"cents":1}},"deep":[{"$":"other","v":{"$":"date","v":3}}]}';
    const lenient = createLenientCodec([money]);
    expect(lenient.decode(text)).toEqual({ at: new Date(3), price: new Money(1), set: new Set([1]) });
    expect(lenient.decode(old)).toEqual({
      price: { foreign: "money", data: { cents: 1 } },
      deep: [{ foreign: "other", data: new Date(3) }],
    });
    expect(createLenientCodec().decode('{"$":"money","n":2,"v":1}')).toEqual({ foreign: "money", data: 1 });
    await getFailure(() => lenient.encode(1, "a value"), "unencodable_value");
    await getFailure(() => lenient.decode("{"), "store_corrupt");
  });

  test("a path selects own keys only, not parts that every object has [ND4]", async () => {
    const store = memoryStore();
    await runThreadPlan(store, { actions: [{ kind: "notes", n: 1 }], forks: [] });
    expect((await getStateAt(store, { thread: "t", path: "/notes/k1" })).value).toBe(1);
    expect((await getStateAt(store, { thread: "t", path: "/notes/toString" })).value).toBeUndefined();
  });
});
