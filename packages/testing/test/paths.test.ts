import { channel, commandTargets, defineGraph, defineState, END, goto, join, route, START } from "@statewright/core";
import { listPaths } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { createDeskGraph, createInput } from "./support/desk-graph.ts";
import "@statewright/testing/vitest";

describe("paths of a desk agent", () => {
  test("listPaths lists a path for each kind of reply of the model and its tools", () => {
    expect(listPaths(createDeskGraph()).map(({ name, end }) => `${name} (${end})`)).toMatchInlineSnapshot(`
      [
        "model to the end (done)",
        "model calls lookup → lookup ok → model to the end (done)",
        "model calls mail → mail ok → model to the end (done)",
        "model fails (failed)",
        "model calls lookup → lookup error → model to the end (done)",
        "model calls lookup → lookup denied → model to the end (done)",
        "model calls mail → mail error → model to the end (done)",
        "model calls mail → mail denied → model to the end (done)",
      ]
    `);
  });
  test.each(listPaths(createDeskGraph()))("the desk agent follows the path: $name", async (path) => {
    const t = await path.run({ input: createInput("Hello"), tools: { mail: { args: { to: "Ada" }, result: "sent" } } });
    expect(t.status).toBe(path.end);
  });
});

const start = defineGraph({
  name: "review",
  state: defineState({ text: z.string().default(""), log: channel.list(z.string()) }),
  interrupts: { allow: { answer: z.boolean(), expiresMs: 60_000, onExpire: false } },
});
const review = start
  .nodes({
    write: () => ({ log: ["written"] }),
    spell: () => ({ log: ["spelled"] }),
    legal: {
      interrupts: ["allow"],
      run: async (_state, { interrupt }) => ({ log: [String(await interrupt("allow"))] }),
    },
    decide: () => ({ log: ["decided"] }),
    publish: (state) => (state.log.length > 100 ? goto("write") : goto(END)),
  })
  .edges({
    [START]: "write",
    write: ["spell", "legal"],
    spell: join("decide"),
    legal: join("decide"),
    decide: route(["write", "publish"], () => "publish"),
    publish: commandTargets("write", END),
  });

describe("paths of a review graph", () => {
  test("listPaths lists a path for every choice, failure and answer of a graph", () => {
    expect(listPaths(review).map(({ name, end }) => `${name} (${end})`)).toMatchInlineSnapshot(`
      [
        "write → spell + legal (allow answered) → decide to publish → publish to the end (done)",
        "write fails (failed)",
        "write → spell fails + legal (allow answered) (failed)",
        "write → spell + legal (allow expired) → decide to publish → publish to the end (done)",
        "write → spell + legal fails (failed)",
        "write → spell + legal (allow answered) → decide to write → write → spell + legal (allow answered) → decide to publish → publish to the end (done)",
        "write → spell + legal (allow answered) → decide fails (failed)",
        "write → spell + legal (allow answered) → decide to publish → publish to write → write → spell + legal (allow answered) → decide to publish → publish to the end (done)",
        "write → spell + legal (allow answered) → decide to publish → publish fails (failed)",
      ]
    `);
  });
  test("the review graph follows each of its paths, and commands go where the path says", async () => {
    const returns = {
      publish: ([to]: readonly string[]) => (to === "write" ? goto("write") : goto(END)),
    };
    for (const path of listPaths(review)) expect((await path.run({ returns })).status).toBe(path.end);
  });

  test("a run that leaves its path fails with the place", async () => {
    const again = listPaths(review).find(({ name }) => name.includes("publish to write"));
    await expect(again?.run()).rejects.toThrowErrorMatchingInlineSnapshot(
      `[Error: the graph "review" does not follow the path write → spell + legal (allow answered) → decide to publish → publish to write → write → spell + legal (allow answered) → decide to publish → publish to the end: after "publish to write" the path runs write, and the run is done. The node "publish" returns commands. Add its return: returns: { publish: (to) => goto(…) }.]`,
    );
    const route = listPaths(review).find(({ name }) => name.includes("decide to write"));
    await expect(route?.run({ routes: "real" })).rejects.toThrowErrorMatchingInlineSnapshot(
      `[Error: the graph "review" does not follow the path write → spell + legal (allow answered) → decide to write → write → spell + legal (allow answered) → decide to publish → publish to the end: after "decide to write" the path runs write, and the run runs publish.]`,
    );
  });
});
