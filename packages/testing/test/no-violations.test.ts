import { checkGraph, defineGraph, defineState, END, fanOut, inputNode, join, route, START } from "@statewright/core";
import { expect, test } from "vitest";
import * as z from "zod";
import "@statewright/testing/vitest";

const State = defineState({ n: z.number().default(0) });
const sound = defineGraph({ name: "sound", state: State })
  .nodes({ a: () => undefined })
  .edges({ [START]: "a", a: END });
const stuck = defineGraph({ name: "stuck", state: State })
  .nodes({
    a: () => undefined,
    b: () => undefined,
    c: () => undefined,
    each: inputNode(z.number(), () => undefined),
    z: () => undefined,
  })
  .edges({
    [START]: ["a", "b"],
    a: join("z"),
    b: route(["c", END], () => "c"),
    c: fanOut("each", () => [1]),
    each: join("z"),
    z: END,
  });

test("toHaveNoViolations passes for a valid graph", () => {
  expect(checkGraph(sound)).toHaveNoViolations();
  expect(() => expect(checkGraph(sound)).not.toHaveNoViolations()).toThrow(
    "the graph has no violations, and should have some.",
  );
});

test("toHaveNoViolations fails for an invalid graph with the shortest path to each defect", () => {
  expect(checkGraph(stuck)).not.toHaveNoViolations();
  const assertNoViolations = (): void => expect(checkGraph(stuck)).toHaveNoViolations();
  expect(assertNoViolations).toThrow("the graph has 2 violations.");
  expect(assertNoViolations).toThrow(
    /dead_end: .*still waits for "each".*\n {2}The path: start → a \+ b → \(nothing runs\)/,
  );
  expect(assertNoViolations).toThrow(/empty_fan_out: .*after "c".*\n {2}The path: start → a \+ b → c → \(no items\)/);
});

test.each([undefined, null, [], "violations", { violations: 1 }])(
  "toHaveNoViolations refuses %j as a report",
  (received) => {
    expect(() => expect(received).toHaveNoViolations()).toThrow("expect(checkGraph(graph)).toHaveNoViolations()");
  },
);
