import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createFrozenCopy } from "../../src/base/json.ts";
import { defineTool, isToolError, ToolError } from "../../src/index.ts";
import { toToolError } from "../../src/tool/definition/tool-error.ts";
import { isResult, toErrorResult, toOutput, toResult } from "../../src/tool/result.ts";

const facts = { callId: "c", name: "act", attempts: 1, elapsedMs: 2 };

describe("tool outputs", () => {
  test("text, nothing, data and tool outputs are distinguished", () => {
    expect(toOutput("x")).toEqual({ content: "x" });
    expect(toOutput(undefined)).toEqual({ content: "" });
    expect(toOutput({ content: "x", details: 1 })).toEqual({ content: "x", details: 1 });
    expect(toOutput({ content: [] })).toEqual({ content: [] });
    for (const data of [null, 0, false, [], {}, { content: 7 }, { content: [1] }, { content: [{ kind: "x" }] }])
      expect(toOutput(data)).toEqual({ content: [{ type: "json", value: data }], value: data });
  });

  test("returned data with a text field named content is treated as data and not as a tool output", () => {
    const file = { path: "a.txt", content: "hello" };
    expect(toOutput(file)).toEqual({ content: [{ type: "json", value: file }], value: file });
    for (const output of [
      { content: "x", error: null },
      { content: "x", isError: false, code: 5 },
      { content: "x", value: { a: 1 }, details: 1, terminate: true },
    ])
      expect(toOutput(output).content).toBe("x");
  });

  test("a Map or Set in returned data is refused and not serialized as an empty object", () => {
    for (const [data, name] of [
      [new Map([["a", 1]]), "Map"],
      [{ rows: [{ tags: new Set(["a"]) }] }, "Set"],
    ] as const)
      expect(() => toOutput(data)).toThrow(`The tool returned a ${name}, which JSON cannot represent`);
    // The value is a list in JSON, or exceeds the depth limit.
    const asList = { toJSON: () => ({ tags: ["a"] }), tags: new Set(["a"]) };
    expect(toOutput(asList).content).toEqual([{ type: "json", value: { tags: ["a"] } }]);
    let deep: unknown = {};
    for (let level = 0; level < 20_000; level++) deep = [deep];
    expect(() => toOutput(deep)).not.toThrow();
    // The value is readable by programs.
    expect(toOutput({ content: "1 row", value: new Map([["a", 1]]) }).content).toBe("1 row");
  });

  test("a tool result is deeply frozen, and its source objects are not", () => {
    const mine = { content: "x", value: { deep: [1] }, details: { log: ["a"] } };
    const result = toResult(mine, facts);
    expect(
      Object.isFrozen(result) &&
        Object.isFrozen(result.value) &&
        Object.isFrozen((result.details as { log: unknown }).log),
    ).toBe(true);
    mine.value.deep.push(2);
    mine.details.log.push("b");
    expect([result.value, result.details]).toEqual([{ deep: [1] }, { log: ["a"] }]);
  });

  test("a tool result has the id and name of its call, whatever the tool returned", () => {
    expect(toResult({ content: "x", callId: "forged", attempts: 99, error: { kind: "x" } }, facts)).toEqual({
      ...facts,
      content: [{ type: "text", text: "x" }],
      isError: false,
    });
  });

  test("isResult accepts tool results and nothing else", () => {
    expect(isResult(toResult("x", facts))).toBe(true);
    expect(isResult(toErrorResult(ToolError.failed("x"), facts))).toBe(true);
    for (const value of [
      undefined,
      null,
      "x",
      {},
      { content: "x", isError: false },
      { content: [], isError: 0 },
      { content: [{ type: "text" }], isError: false },
    ])
      expect(isResult(value)).toBe(false);
  });
});

describe("frozen copies", () => {
  test("frozenCopy handles cycles, keeps values that are not plain data, and changes no prototype", () => {
    const date = new Date(0);
    const round: Record<string, unknown> = { date, list: [1] };
    round["self"] = round;
    const copy = createFrozenCopy(round) as typeof round;
    expect(copy).not.toBe(round);
    expect(copy["self"]).toBe(copy);
    expect(copy["date"]).toBe(date);
    const evil = createFrozenCopy(JSON.parse('{"__proto__":{"x":1}}') as object);
    expect([Object.getPrototypeOf(evil), Object.keys(evil)]).toEqual([Object.prototype, ["__proto__"]]);
    expect(createFrozenCopy(Object.freeze([1]))).toEqual([1]);
  });
});

describe("conversion to tool errors", () => {
  test("any thrown value becomes a tool error with a text", () => {
    expect(toToolError(new Error("x"))).toMatchObject({ kind: "failed", modelMessage: "x", disposition: "repair" });
    expect(toToolError(new RangeError())).toMatchObject({ modelMessage: "RangeError" });
    expect(toToolError("text")).toMatchObject({ modelMessage: "text" });
    for (const thrown of [null, undefined, 0, {}, Symbol("s")])
      expect(toToolError(thrown).modelMessage).toBe("The tool failed without a message");
    const mine = ToolError.notFound("x");
    expect(toToolError(mine)).toBe(mine);
  });

  test("a tool error of another copy of the package is recognized, and a lookalike is not", () => {
    const other = Object.assign(new Error("x"), { kind: "not_found", modelMessage: "x", userMessage: "x" });
    Object.defineProperty(other, Symbol.for("statewright.toolError"), { value: true });
    expect(isToolError(other)).toBe(true);
    expect(isToolError(Object.assign(new Error("x"), { kind: "not_found" }))).toBe(false);
    expect(isToolError({ [Symbol.for("statewright.toolError")]: true })).toBe(false);
  });

  test("a tool error with a retry delay has the disposition retry", () => {
    expect(ToolError.failed("x").disposition).toBe("repair");
    expect(ToolError.failed("x", { retryAfterMs: 5 }).disposition).toBe("retry");
    expect([
      ToolError.timeout(5).disposition,
      ToolError.unavailable("x").disposition,
      ToolError.cancelled().disposition,
    ]).toEqual(["retry", "retry", "control"]);
  });
});

test("a tool can be called directly without a listener", async () => {
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input: z.object({}),
    run: (_args, { update }) => (update === undefined ? "quiet" : "loud"),
  });
  expect(await tool.call({}, { progress: () => undefined } as never, { id: "c", name: "act", args: {} })).toBe("quiet");
});
