import { listPaths } from "@statewright/testing";
import "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { refunds } from "./refund-agent.ts";

test.each(listPaths(refunds))("the refund agent follows the path: $name", async (path) => {
  const t = await path.run({
    input: "I want my money back for order 7.",
    answers: { approve: true },
    tools: { refund: { args: { order: "7" }, real: true } },
  });
  expect(t.status).toBe(path.end);
});

test("listPaths lists the paths of an agent", () => {
  expect(listPaths(refunds).map(({ name }) => name)).toEqual([
    "model to the end",
    "model calls find_order → find_order ok → model to the end",
    "model calls refund → refund ok → model to the end",
    "model fails",
    "model calls find_order → find_order error → model to the end",
    "model calls find_order → find_order denied → model to the end",
    "model calls refund → refund error → model to the end",
    "model calls refund → refund denied → model to the end",
  ]);
});
