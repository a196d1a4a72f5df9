import { describe, expect, test } from "vitest";
import * as z from "zod";
import { argumentBounds, type Bounds, findInvalidData } from "../../../src/base/bounds.ts";
import { decide, defineTool, type Json } from "../../../src/index.ts";
import {
  call,
  createRawCall,
  type DeskTool,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";

/** Creates a value with the given nesting depth. */
function nested(levels: number): Json {
  let value: Json = 1;
  for (let level = 0; level < levels; level++) value = { down: value };
  return value;
}

const input = z.looseObject({ note: z.string().optional() });

/** Tool that accepts any arguments and records them. */
function open(): { readonly tool: DeskTool; readonly reached: unknown[] } {
  const reached: unknown[] = [];
  const run = (args: unknown): string => {
    reached.push(args);
    return "ran";
  };
  return { tool: defineTool({ name: "act", description: "Acts.", input, effect: "pure", run }), reached };
}

const tooMuch: Readonly<Record<string, readonly [Json, RegExp]>> = {
  "10 MB of text": [{ note: "x".repeat(10 * 2 ** 20) }, /hold more than 1,048,576 bytes/],
  "a megabyte of letters of three bytes": [{ note: "字".repeat(2 ** 20 / 3 + 1) }, /hold more than 1,048,576 bytes/],
  "a long key": [{ ["k".repeat(2 ** 20 + 1)]: 1 }, /hold more than 1,048,576 bytes/],
  "65 levels": [nested(65), /nested deeper than 64 levels/],
  "a thousand levels": [nested(1_000), /nested deeper than 64 levels/],
  "twenty thousand levels": [nested(20_000), /nested deeper than 64 levels/],
  "a hundred thousand and one parts": [{ list: Array.from({ length: 100_000 }, () => 0) }, /more than 100,000 parts/],
};
const hostile: Readonly<Record<string, Json>> = {
  __proto__: JSON.parse('{"__proto__":{"polluted":true}}') as Json,
  "constructor within": { a: [{ constructor: { prototype: { polluted: true } } }] },
  prototype: { prototype: 1 },
};

describe("tool arguments over the bounds", () => {
  test("arguments over 1 MiB, 64 levels or 100,000 parts are answered under their call id, not run, not stored and not resent [R15]", async () => {
    for (const [what, [args, said]] of Object.entries(tooMuch)) {
      const { tool, reached } = open();
      const done = await runToolLoop({
        tools: [tool],
        turns: [[call("act", args, "big"), call("act", { note: "fine" }, "ok")], ["sorry"]],
      });
      expect([what, done.result.status, reached]).toEqual([what, "done", [{ note: "fine" }]]);
      const [refused, fine] = listToolAnswers(done);
      expect([refused?.callId, refused?.isError, fine?.callId, fine?.isError]).toEqual(["big", true, "ok", false]);
      expect(getAnswerText(refused)).toMatch(said);
      expect(listResults(done).map(({ error }) => error?.kind)).toContain("invalid_args");
      expect(listEvents(done, "tool.rejected").map(({ reason }) => reason)).toEqual(["invalid_args"]);
      expect((done.wires[1] ?? "").length).toBeLessThan(5_000);
      expect(done.saved().length).toBeLessThan(20_000);
    }
  });

  test("arguments just within the bounds are accepted [R15]", async () => {
    for (const args of [
      { note: "x".repeat(2 ** 20 - 4) },
      nested(64),
      { list: Array.from({ length: 99_998 }, () => 0) },
    ]) {
      const { tool, reached } = open();
      const done = await runToolLoop({ tools: [tool], turns: [[call("act", args as Json)], ["ok"]] });
      expect([done.result.status, reached.length]).toEqual(["done", 1]);
    }
  });

  test("arguments replaced by a hook obey the same bounds, and oversized malformed JSON is not stored [R15]", async () => {
    const { tool, reached } = open();
    const swap = { name: "swap", beforeTool: () => decide.modify(nested(65)) };
    const done = await runToolLoop({
      tools: [tool],
      middleware: [swap],
      turns: [[call("act", {}, "a"), createRawCall("act", "{".repeat(2 ** 21), "b")], ["ok"]],
    });
    expect(reached).toEqual([]);
    expect(listToolAnswers(done).map(({ isError }) => isError)).toEqual([true, true]);
    expect(getAnswerText(listToolAnswers(done)[0])).toMatch(/deeper than 64/);
    expect((done.wires[1] ?? "").length).toBeLessThan(5_000);
  });

  test("argument keys that lead to a prototype are refused at any depth under any schema and change no prototype [R5]", async () => {
    for (const [what, args] of Object.entries(hostile)) {
      const { tool, reached } = open();
      const done = await runToolLoop({ tools: [tool], turns: [[call("act", args)], ["sorry"]] });
      expect([what, reached, listToolAnswers(done)[0]?.isError]).toEqual([what, [], true]);
      expect(getAnswerText(listToolAnswers(done)[0])).toMatch(/have the key "(__proto__|constructor|prototype)"/);
      expect(({} as { readonly polluted?: boolean }).polluted).toBeUndefined();
    }
    const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
    const { tool } = open();
    const unknown = await runToolLoop({
      tools: [tool],
      turns: [names.map((name, index) => call(name, {}, `c${index}`)), ["sorry"]],
    });
    expect(listToolAnswers(unknown).map(({ isError }) => isError)).toEqual(names.map(() => true));
  });

  test("a long list of argument issues with long keys is reported in a bounded text", async () => {
    const tool = defineTool({
      name: "act",
      description: "Acts.",
      input: z.object({ list: z.array(z.int()) }),
      effect: "pure",
      run: () => "x",
    });
    const faulty = { list: Array.from({ length: 50_000 }, () => "x"), ["k".repeat(100_000)]: 1 };
    const done = await runToolLoop({
      tools: [tool],
      turns: [[call("act", { list: faulty.list }, "a"), call("act", faulty, "b")], ["ok"]],
    });
    expect(getAnswerText(listToolAnswers(done)[0])).toMatch(/list\.0: .*; and 49980 more\.$/);
    for (const answer of listToolAnswers(done)) expect(getAnswerText(answer).length).toBeLessThan(10_000);
    expect(JSON.stringify(listResults(done)).length).toBeLessThan(20_000);
  });
});

describe("data bounds", () => {
  test("the size of data is counted in UTF-8 bytes, and the walk stops as soon as a bound is exceeded", () => {
    const bounds: Bounds = { ...argumentBounds, text: 10 };
    for (const text of ["0123456789", "01234567é", "0123456字", "012345😀"]) {
      expect(findInvalidData({ "": text }, bounds)).toBeUndefined();
      expect(findInvalidData({ "": `${text}x` }, bounds)?.reason).toBe("bounds");
    }
    const list = new Proxy([] as unknown[], {
      get: (target, name) => (name === "length" ? 1e9 : Reflect.get(target, name)),
    });
    expect(findInvalidData(list, bounds)?.text).toMatch(/parts/);
  });

  test("an exceeded bound is reported before a forbidden key, and the walk of a cycle ends at the depth limit", () => {
    expect(findInvalidData({ constructor: 1, note: "x".repeat(100) }, { ...argumentBounds, text: 50 })?.reason).toBe(
      "bounds",
    );
    const round: Record<string, unknown> = {};
    Object.assign(round, { one: round, two: round });
    expect(findInvalidData(round, argumentBounds)?.text).toMatch(/64 levels/);
  });
});
