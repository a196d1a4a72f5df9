import { join } from "node:path";
import process from "node:process";
import coverage from "@statewright/testing/coverage";
import { expect, test } from "vitest";
import { createVitest, type Reporter } from "vitest/node";
import { listViolations, removeExcepted } from "../src/coverage/coverage-table.ts";

const folder = join(import.meta.dirname, "support/covered");

test("the coverage reporter collects from workers, lists uncovered parts, and fails a run below the threshold", async () => {
  const said: string[] = [];
  const failed: string[] = [];
  const logger = { log: (text: string) => said.push(text), error: (text: string) => said.push(text) };
  const reporter: Reporter = coverage({ threshold: { nodes: 100, edges: 90 } });
  const recordingReporter: Reporter = {
    onInit: () => reporter.onInit?.({ config: { root: folder }, logger } as never),
    onTestRunEnd: (modules, ...end) => {
      failed.push(...modules.flatMap((module) => module.errors().map(({ message }) => message)));
      return reporter.onTestRunEnd?.(modules, ...end);
    },
  };
  const vitest = await createVitest("test", {
    config: false,
    root: folder,
    watch: false,
    include: ["*.suite.ts"],
    reporters: [recordingReporter],
  });
  await vitest.start();
  await vitest.close();
  const { exitCode } = process;
  process.exitCode = undefined;
  expect(failed).toEqual([]);
  expect(exitCode).toBe(1);
  expect(said.join("\n")).toMatchInlineSnapshot(`
    "
    Graph coverage

    graph      nodes      edges  interrupts  tools  guards
    shop   3/3 100 %  5/6  83 %   2/2 100 %      -       -
      edges never: review → end

    ERROR: coverage of the edges of the graph "shop": expected at least 90 %, got 83 %. Not covered: review → end"
  `);
});

test("excluded parts do not count for coverage, and an exclusion that matches nothing is refused", () => {
  const nothing = { nodes: [], edges: [], interrupts: [], tools: [], guards: [] };
  const coverage = {
    graph: "shop",
    declared: { ...nothing, edges: ["review -> __end__", "ask -> review"], outline: { nodes: [], edges: [] } },
    hits: { ...nothing, edges: ["ask -> review"] },
  };
  expect(listViolations([coverage], { edges: 90 })).toHaveLength(1);
  expect(listViolations([removeExcepted(coverage, ["review → end"])], { edges: 90 })).toEqual([]);
  expect(() => removeExcepted(coverage, ["review → ask"])).toThrow(
    'coverage: `except` must be names from the coverage table of the graph "shop", got "review → ask". Use a name from the table',
  );
});
