import fc from "fast-check";
import { expect, test } from "vitest";
import { deepFreeze, isPlainObject, isSameData } from "../../src/base/json.ts";

test("deepFreeze reaches lists, objects, map entries and set members", () => {
  const value = deepFreeze({ list: [{ a: 1 }], map: new Map([["k", { b: 2 }]]), set: new Set([{ c: 3 }]) });
  expect(() => Object.assign(value.list[0]!, { a: 2 })).toThrow(TypeError);
  expect(() => Object.assign(value.map.get("k")!, { b: 3 })).toThrow(TypeError);
  expect(() => Object.assign([...value.set][0]!, { c: 4 })).toThrow(TypeError);
});

test("a frozen map, set or date rejects mutating methods and keeps its readers", () => {
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

test("deepFreeze freezes the content of an object that was frozen one level deep", () => {
  const inside = { changed: false };
  deepFreeze({ outer: Object.freeze({ inside }) });
  expect(() => Object.assign(inside, { changed: true })).toThrow(TypeError);
});

test("deepFreeze ends on a cycle and leaves bytes and regular expressions usable", () => {
  const round: { self?: unknown; bytes: Uint8Array; find: RegExp } = { bytes: new Uint8Array([1]), find: /a/g };
  round.self = round;
  deepFreeze(round);
  expect(Object.isFrozen(round)).toBe(true);
  expect("banana".match(round.find)).toHaveLength(3);
});

test("deepFreeze ends on a value that contains itself in many places, also when repeated", () => {
  const knot: unknown[] = [];
  knot.push(knot, knot, { knot }, [{ knot, again: knot }]);
  for (let time = 0; time < 3; time++) deepFreeze([knot, { knot }]);
  expect(Object.isFrozen((knot[3] as unknown[])[0])).toBe(true);
});

test("isPlainObject accepts object literals, parsed JSON and objects without a prototype, and nothing else", () => {
  expect([{}, Object.create(null), JSON.parse("{}")].map(isPlainObject)).toEqual([true, true, true]);
  expect([[], null, new Map(), new Date(), new (class {})(), "x"].map(isPlainObject)).toEqual(Array(6).fill(false));
});

test("sameData accepts equal data of another identity and rejects different data", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
      expect(isSameData(left, structuredClone(left))).toBe(true);
      if (JSON.stringify(left) !== JSON.stringify(right) && isSameData(left, right)) expect(left).toEqual(right);
    }),
  );
  expect(isSameData({ a: undefined }, {})).toBe(false);
  expect(isSameData([1], { 0: 1 })).toBe(false);
  expect(isSameData(new Array(1), [1])).toBe(false);
  expect(isSameData(new Array(1), [undefined])).toBe(false);
  expect(isSameData(0, -0)).toBe(false);
  expect(isSameData(new Date(1), new Date(1))).toBe(false);
});
