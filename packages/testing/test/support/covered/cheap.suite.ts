import { defineTool } from "@statewright/core";
import { testRun, toolTest } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import * as z from "zod";
import { shop } from "./shop.ts";

test("a cheap order is paid", async () => {
  const t = await testRun(shop, { input: { cents: 5 } });
  await t.finish();
  expect(t.status).toBe("done");
});

test("a tool is tested outside any graph", async () => {
  const price = defineTool({
    name: "price",
    description: "What it costs.",
    input: z.object({ item: z.string() }),
    effect: "pure",
    run: ({ item }) => `${item}: 5`,
  });
  expect((await toolTest(price, { args: { item: "cup" } })).text).toBe("cup: 5");
});
