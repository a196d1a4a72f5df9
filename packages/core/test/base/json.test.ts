import fc from "fast-check";
import { expect, test } from "vitest";
import { deepFreeze, isPlainObject, sameData } from "../../src/base/json.ts";

test("freezing reaches lists, objects, entries of maps and members of sets", () => {
  const value = deepFreeze({ list: [{ a: 1 }], map: new Map([["k", { b: 2 }]]), set: new Set([{ c: 3 }]) });
  expect(() => Object.assign(value.list[0]!, { a: 2 })).toThrow(TypeError);
  expect(() => Object.assign(value.map.get("k")!, { b: 3 })).toThrow(TypeError);
  expect(() => Object.assign([...value.set][0]!, { c: 4 })).toThrow(TypeError);
});

test("a frozen map, set and date refuse their methods that change, and keep those that read", () => {
  const value = deepFreeze({ map: new Map([["k", 1]]), set: new Set([1]), date: new Date(5) });
  expect(() => value.map.set("k", 2)).toThrow(TypeError);
  expect(() => value.map.clear()).toThrow(TypeError);
  expect(() => value.set.add(2)).toThrow(TypeError);
  expect(() => value.set.delete(1)).toThrow(TypeError);
  expect(() => value.date.setTime(0)).toThrow(TypeError);
  expect(() => value.date.setFullYear(1999)).toThrow(TypeError);
  expect([value.map.get("k"), value.set.has(1), value.date.getTime()]).toEqual([1, true, 5]);
  expect(value).toEqual({ map: new Map([["k", 1]]), set: new Set([1]), date: new Date(5) });
});

test("what somebody froze one level deep is frozen inside", () => {
  const inside = { changed: false };
  deepFreeze({ outer: Object.freeze({ inside }) });
  expect(() => Object.assign(inside, { changed: true })).toThrow(TypeError);
});

test("freezing ends on a cycle, and leaves bytes and regular expressions usable", () => {
  const round: { self?: unknown; bytes: Uint8Array; find: RegExp } = { bytes: new Uint8Array([1]), find: /a/g };
  round.self = round;
  deepFreeze(round);
  expect(Object.isFrozen(round)).toBe(true);
  expect("banana".match(round.find)).toHaveLength(3);
});

test("freezing ends where a value holds itself in many places, the first time and again", () => {
  const knot: unknown[] = [];
  knot.push(knot, knot, { knot }, [{ knot, again: knot }]);
  for (let time = 0; time < 3; time++) deepFreeze([knot, { knot }]);
  expect(Object.isFrozen((knot[3] as unknown[])[0])).toBe(true);
});

test("plain objects are those of literals and of JSON", () => {
  expect([{}, Object.create(null), JSON.parse("{}")].map(isPlainObject)).toEqual([true, true, true]);
  expect([[], null, new Map(), new Date(), new (class {})(), "x"].map(isPlainObject)).toEqual(Array(6).fill(false));
});

test("equal data is recognised whatever its identity, and anything different is not", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
      expect(sameData(left, structuredClone(left))).toBe(true);
      if (JSON.stringify(left) !== JSON.stringify(right) && sameData(left, right)) expect(left).toEqual(right);
    }),
  );
  expect(sameData({ a: undefined }, {})).toBe(false);
  expect(sameData([1], { 0: 1 })).toBe(false);
  expect(sameData(new Array(1), [1])).toBe(false);
  expect(sameData(new Array(1), [undefined])).toBe(false);
  expect(sameData(0, -0)).toBe(false);
  expect(sameData(new Date(1), new Date(1))).toBe(false);
});
