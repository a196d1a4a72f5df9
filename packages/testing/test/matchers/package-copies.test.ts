import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { claims } from "../support/claims-graph.ts";

test("matchers of another copy of the package recognize a trace", async () => {
  const t = await testRun(claims, { input: { amount: 5 } });
  const another = new URL("../../src/run/explain-run.ts?copy", import.meta.url).href;
  const { explainRun }: typeof import("../../src/run/explain-run.ts") = await import(another);
  expect(explainRun(t.trace)).toContain("The run has not started");
  await t.finish();
  expect(explainRun(t.trace)).toContain("The run is done and accepts no more events.");
});
