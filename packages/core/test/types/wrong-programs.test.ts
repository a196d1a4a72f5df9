/** The compiler refuses each program of wrong-programs.ts for its one mistake, with a readable message. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { type Compiled, createConsumerProject } from "../support/consumer-project.ts";
import { mistakes } from "./wrong-programs.ts";

const lines = readFileSync(new URL("wrong-programs.ts", import.meta.url), "utf8").split("\n");
const expectation = /^\s*\/\/ @ts-expect-error (.*)$/;
const beginnings = lines.flatMap((line, index) => (line.startsWith("wrong(") ? [index + 1] : []));

let compiled: Compiled;
beforeAll(async () => {
  const project = await createConsumerProject();
  const program = lines.map((line) => (expectation.test(line) ? "" : line)).join("\n");
  compiled = await project.compile("wrong-programs", program.replace("../../src/index.ts", "@statewright/core"));
  await project.remove();
});

test("at least forty distinct type errors are covered, and their shared code compiles", () => {
  expect(new Set(mistakes).size).toBe(beginnings.length);
  expect(mistakes.length).toBeGreaterThanOrEqual(40);
  expect(compiled.errors.filter(({ line }) => line < (beginnings[0] ?? 0))).toEqual([]);
});

test.each(mistakes.map((mistake, index) => [mistake, index] as const))(
  "a wrong program does not compile: %s",
  (_mistake, index) => {
    const first = beginnings[index] ?? 0;
    const after = beginnings[index + 1] ?? lines.length;
    const expected = lines.flatMap((line, at) => {
      const words = at >= first && at < after ? expectation.exec(line)?.[1] : undefined;
      return words === undefined ? [] : [{ line: at + 2, message: expect.stringContaining(words) }];
    });
    expect(expected).toHaveLength(1);
    expect(compiled.errors.filter(({ line }) => line >= first && line < after)).toEqual(expected);
  },
);
