import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  END,
  goto,
  gotos,
  join,
  list,
  route,
  START,
  sends,
  task,
  toMermaid,
} from "../../src/index.ts";

test("the picture in the tour is that of its graph", () => {
  const Pay = defineState({ amount: z.number(), paid: z.boolean().default(false) });
  const payment = defineGraph({ name: "payment", state: Pay })
    .nodes({
      approve: (state) => (state.amount < 100 ? goto("pay") : goto("decline")),
      pay: () => ({ paid: true }),
      decline: () => ({ paid: false }),
    })
    .edges({ [START]: "approve", approve: gotos("pay", "decline"), pay: END, decline: END });
  const page = readFileSync(new URL("../../../../docs/tour/1-a-graph-that-waits.md", import.meta.url), "utf8");
  expect(page).toContain(`\`\`\`mermaid\n${toMermaid(payment)}\`\`\``);
});

test("a picture has every edge that can be taken and none that cannot", () => {
  const state = defineState({ items: list(z.string()) });
  const graph = defineGraph({ name: "shapes", state })
    .nodes({
      split: () => undefined,
      each: task(z.string(), (_state, { input }) => ({ items: [input] })),
      left: () => undefined,
      right: () => undefined,
      both: () => undefined,
    })
    .edges({
      [START]: "split",
      split: sends("each", () => ["a"], { otherwise: "left" }),
      each: ["left", "right"],
      left: join("both"),
      right: join("both"),
      both: route(["split", END], () => END),
    });
  expect(toMermaid(graph).split("\n").slice(1)).toEqual([
    "  start((start))",
    "  split[split]",
    "  each[[each]]",
    "  left[left]",
    "  right[right]",
    "  both[both]",
    "  done((done))",
    "  start --> split",
    "  split ==> each",
    "  split -.-> left",
    "  each --> left",
    "  each --> right",
    "  left --o both",
    "  right --o both",
    "  both -.-> split",
    "  both -.-> done",
    "",
  ]);
});
