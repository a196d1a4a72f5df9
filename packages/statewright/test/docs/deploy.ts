import { checkGraph, defineGraph, defineState, END, join, route, START } from "statewright";
import * as z from "zod";

const Deploy = defineState({ risky: z.boolean().default(false), note: z.string().optional() });

const nodes = defineGraph({ name: "deploy", state: Deploy }).nodes({
  test: () => ({ note: "all green" }),
  approve: () => ({ note: "looks good" }),
  sign: () => undefined,
  ship: () => undefined,
});

// a branch may end
const hasty = nodes.edges({
  [START]: ["test", "approve"],
  test: join("ship"),
  approve: route(["sign", END], (state) => (state.risky ? END : "sign")),
  sign: join("ship"),
  ship: END,
});
for (const { rule, path } of checkGraph(hasty).violations) console.log(rule, path.join(" → "));

// two nodes write one channel
const writes = { test: ["note"], approve: ["note"] } as const;
for (const { rule, path } of checkGraph(hasty, { writes }).violations) console.log(rule, path.join(" → "));

// mended
const sound = nodes.edges({
  [START]: "approve",
  approve: route(["sign", END], (state) => (state.risky ? END : "sign")),
  sign: "test",
  test: "ship",
  ship: END,
});
console.log(checkGraph(sound, { writes }).violations.length, "violations");
