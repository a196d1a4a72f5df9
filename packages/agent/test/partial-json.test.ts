import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { partialJson } from "../src/partial-json.ts";

describe("JSON that is still being written", () => {
  test.each<readonly [string, unknown]>([
    ["", undefined],
    ["  ", undefined],
    ["Hello", undefined],
    ['"text"', undefined],
    ["7", undefined],
    ["{", {}],
    ['{"a', {}],
    ['{"a"', {}],
    ['{"a":', {}],
    ['{"a": "', { a: "" }],
    ['{"a": "b', { a: "b" }],
    ['{"a": "b\\', { a: "b" }],
    ['{"a": "b\\u00', { a: "b" }],
    ['{"a": "b\\\\', { a: "b\\" }],
    ['{"a": "b\\"c', { a: 'b"c' }],
    ['{"a": "b", "c', { a: "b" }],
    ['{"a": 1', {}],
    ['{"a": 1,', { a: 1 }],
    ['{"a": 1}', { a: 1 }],
    ['{"a": tr', {}],
    ['{"a": true, "b": [', { a: true, b: [] }],
    ['{"a": [1, 2', { a: [1] }],
    ['[{"a": "{[,', [{ a: "{[," }]],
    ['{"a": 1} and more', { a: 1 }],
    ["{odd}", undefined],
    ['{"a": }', undefined],
  ])("%j is %j", (text, value) => {
    expect(partialJson(text)).toEqual(value);
  });

  /** Whether nothing stands in the part that is not in the whole: texts may be cut, the rest may be missing. */
  function isPartOf(part: unknown, whole: unknown): boolean {
    if (typeof part === "string")
      return typeof whole === "string" && whole.startsWith(part.replace(/[\uD800-\uDBFF]$/, ""));
    if (Array.isArray(part)) return Array.isArray(whole) && part.every((each, index) => isPartOf(each, whole[index]));
    if (typeof part !== "object" || part === null) return Object.is(part, whole);
    return (
      typeof whole === "object" &&
      whole !== null &&
      Object.entries(part).every(([key, each]) => isPartOf(each, (whole as Record<string, unknown>)[key]))
    );
  }

  test("of any document, cut anywhere, holds nothing that the whole does not, and the whole in the end", () => {
    const documents = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()));
    fc.assert(
      fc.property(documents, fc.nat(), fc.boolean(), (document, place, spaced) => {
        const whole: unknown = JSON.parse(JSON.stringify(document));
        const text = JSON.stringify(whole, null, spaced ? 2 : 0);
        const part = partialJson(text.slice(0, place % (text.length + 1)));
        expect(part === undefined || isPartOf(part, whole)).toBe(true);
        expect(partialJson(text)).toEqual(whole);
      }),
      { numRuns: 2_000 },
    );
  });
});
