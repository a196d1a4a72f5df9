import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mergeDeltas } from "../../src/checkpoint/codec/merge-deltas.ts";
import { encodeDelta, parseDelta } from "../../src/checkpoint/codec/saved-state.ts";
import type { PrunedDelta } from "../../src/checkpoint/export/thread-export.ts";
import { applyDelta, createCodec, type Delta, plainCodec } from "../../src/store.ts";

const value = fc.oneof(fc.integer(), fc.string({ maxLength: 3 }), fc.constant(null), fc.date({ noInvalidDate: true }));
const items = fc.array(value, { maxLength: 3 });

/** Deltas of lists and records, as folds write them. */
const listDelta: fc.Arbitrary<Delta> = fc.oneof(
  { weight: 5, arbitrary: items.map((each): Delta => ({ kind: "append", items: each })) },
  { weight: 1, arbitrary: items.map((each): Delta => ({ kind: "replace", value: each })) },
  {
    weight: 2,
    arbitrary: value.map((each): Delta => ({ kind: "patch", patches: [{ op: "add", path: [0], value: each }] })),
  },
);
const passingDelta: fc.Arbitrary<Delta> = fc.oneof(
  items.map((each): Delta => ({ kind: "append", items: each })),
  fc.constant<Delta>({ kind: "clear" }),
);
const recordDelta: fc.Arbitrary<Delta> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc
      .tuple(fc.constantFrom("a", "b", "__proto__"), value)
      .map(([key, each]): Delta => ({ kind: "patch", patches: [{ op: "add", path: [key], value: each }] })),
  },
  { weight: 1, arbitrary: value.map((each): Delta => ({ kind: "replace", value: { of: each } })) },
);

function listRows(deltas: readonly Delta[]): readonly PrunedDelta[] {
  return deltas.map((delta, index) => ({
    channel: "c",
    kind: delta.kind,
    base: delta.kind === "replace" || delta.kind === "clear",
    text: encodeDelta(plainCodec, "c", delta),
    checkpoint: index + 1,
  }));
}

function fold(rows: readonly PrunedDelta[], initial: unknown): unknown {
  return rows.map((row) => parseDelta(plainCodec, row)).reduce(applyDelta, initial);
}

describe("merged deltas", () => {
  test.each([
    ["a list", listDelta, [1, 2]],
    ["a list that is cleared", passingDelta, []],
    ["a record", recordDelta, { a: 1 }],
  ] as const)("merged deltas lead %s to the same value, at checkpoints of the original deltas", (_, delta, initial) => {
    fc.assert(
      fc.property(fc.array(delta, { maxLength: 20 }), (deltas) => {
        const rows = listRows(deltas);
        const merged = mergeDeltas(plainCodec, rows);
        expect(fold(merged, initial)).toEqual(fold(rows, initial));
        const places = merged.map(({ checkpoint }) => checkpoint);
        expect(places).toEqual([...new Set(places)].toSorted((one, other) => one - other));
        expect(places.every((place) => place >= 1 && place <= rows.length)).toBe(true);
        expect(merged.filter(({ base }, index) => base && index > 0)).toEqual([]);
      }),
    );
  });

  test("merging gives one append for a list that only grew, and one value for a replaced record", () => {
    const grown = listRows(["a", "b", "c"].map((item): Delta => ({ kind: "append", items: [item] })));
    expect(mergeDeltas(plainCodec, grown)).toEqual([{ ...grown[2], count: 3, text: '["a","b","c"]' }]);
    const patched = listRows([
      { kind: "replace", value: { a: 1 } },
      { kind: "patch", patches: [{ op: "add", path: ["b"], value: 2 }] },
    ]);
    expect(mergeDeltas(plainCodec, patched)).toEqual([
      { channel: "c", kind: "replace", base: true, text: '{"a":1,"b":2}', checkpoint: 2 },
    ]);
  });

  test("deltas that the codec cannot decode are not merged", () => {
    class Money {
      readonly cents: number;
      constructor(cents: number) {
        this.cents = cents;
      }
    }
    const codec = createCodec([
      {
        tag: "money",
        matches: (each): each is Money => each instanceof Money,
        encode: ({ cents }: Money) => cents,
        decode: (cents) => new Money(cents as number),
      },
    ]);
    const rows = [1, 2].map((cents, index) => ({
      channel: "c",
      kind: "append" as const,
      base: false,
      text: codec.encode([new Money(cents)], "money"),
      checkpoint: index + 1,
    }));
    expect(mergeDeltas(plainCodec, rows)).toEqual(rows);
    expect(mergeDeltas(codec, rows)).toHaveLength(1);
  });

  test("a large delta is not rewritten to merge small deltas", () => {
    const large: Delta = { kind: "append", items: ["x".repeat(100_000)] };
    const small = Array.from({ length: 5 }, (): Delta => ({ kind: "append", items: ["y"] }));
    const rows = listRows([large, ...small]);
    const merged = mergeDeltas(plainCodec, rows);
    expect(merged).toHaveLength(2);
    expect(merged[0]).toBe(rows[0]);
  });
});
