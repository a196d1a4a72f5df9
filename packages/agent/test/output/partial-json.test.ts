import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PartialJson } from "../../src/output/partial-json.ts";

function getReading(...pieces: readonly string[]): unknown {
  const json = new PartialJson();
  for (const piece of pieces) json.add(piece);
  return json.read();
}

describe("incremental JSON", () => {
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
    ['{"a": 1, "a": 2}', { a: 2 }],
    ['{"a": tr', {}],
    ['{"a": true, "b": [', { a: true, b: [] }],
    ['{"a": [1, 2', { a: [1] }],
    ['[{"a": "{[,', [{ a: "{[," }]],
    ['{"a": 1} and more', { a: 1 }],
    ['```json\n{"a": 1}\n```', { a: 1 }],
    ["```\n[1, 2", [1]],
    [" \n```json \n\n  [1, 2", [1]],
    ["```\njson [1", undefined],
    ["`` `[1", undefined],
    ["\ufeff{", {}],
    ['```js\n{"a": 1}', undefined],
    ["{odd}", undefined],
    ['{"a": }', undefined],
    ['{"a": 1,}', undefined],
    ["[1,]", undefined],
    ["[1 2", undefined],
    ["[1}", undefined],
    ['{"a" "b"', undefined],
    ['{"a": "b\\x', undefined],
    ['{"a": "b\nc', undefined],
    ['{"a": 01,', undefined],
  ])("the incomplete JSON text %j parses as %j", (text, value) => {
    expect(getReading(text)).toEqual(value);
    expect(getReading(...text)).toEqual(value);
  });

  test("incremental JSON parses a __proto__ key as an own key", () => {
    const read = getReading('{"__proto__": {"a": 1}, "b": "c');
    expect(JSON.stringify(read)).toBe('{"__proto__":{"a":1},"b":"c"}');
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });

  test("incremental JSON stops at the nesting limit and returns no value", () => {
    const json = new PartialJson();
    const more = Array.from({ length: 600 }, () => json.add("["));
    expect(more.lastIndexOf(true)).toBe(499);
    expect(json.read()).toBe(undefined);
    expect(getReading("[".repeat(500) + "]".repeat(500))).toEqual(JSON.parse("[".repeat(500) + "]".repeat(500)));
  });

  /** Returns whether the part contains only data of the whole: texts may be cut, and members may be missing. */
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

  test("incremental JSON of any document in any chunks holds only final content, reports growth, and ends complete", () => {
    const documents = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()));
    fc.assert(
      fc.property(documents, fc.integer({ min: 1, max: 9 }), fc.boolean(), (document, size, spaced) => {
        const whole: unknown = JSON.parse(JSON.stringify(document));
        const text = JSON.stringify(whole, null, spaced ? 2 : 0);
        const json = new PartialJson();
        const wrong: string[] = [];
        let before: { readonly read: unknown; readonly said: string | undefined } = {
          read: undefined,
          said: undefined,
        };
        for (let at = 0; at < text.length; at += size) {
          const isMore = json.add(text.slice(at, at + size));
          const read = json.read();
          const said = JSON.stringify(read);
          if (read !== undefined && !isPartOf(read, whole)) wrong.push(`at ${at}: not in the whole`);
          if (!isMore && said !== before.said) wrong.push(`at ${at}: more that was not told`);
          if (JSON.stringify(before.read) !== before.said) wrong.push(`at ${at}: what was read has changed`);
          before = { read, said };
        }
        expect(wrong).toEqual([]);
        expect(json.read()).toEqual(whole);
      }),
      { numRuns: 400 },
    );
  });
});
