import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { claims } from "../support/claims.ts";

test("the matchers of another copy of the package know whose trace they are given", async () => {
  const t = await testRun(claims, { input: { amount: 5 } });
  const another = new URL("../../src/run/account.ts?copy", import.meta.url).href;
  const { account }: typeof import("../../src/run/explain-run.ts") = await import(another);
  expect(account(t.trace)).toContain("It has not begun");
  await t.finish();
  expect(account(t.trace)).toContain("It is done and accepts nothing more.");
});
