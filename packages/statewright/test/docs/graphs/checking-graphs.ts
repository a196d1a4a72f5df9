import { checkGraph, defineGraph, defineState, END, join, route, START } from "statewright";
import * as z from "zod";

const Deploy = defineState({ risky: z.boolean().default(false), note: z.string().optional() });

const start = defineGraph({ name: "deploy", state: Deploy, interrupts: { allow: z.boolean() } });

const nodes = start.nodes({
  test: () => ({ note: "all green" }),
  approve: () => ({ note: "looks good" }),
  sign: () => undefined,
  ship: () => undefined,
});

// a branch may end before the join
const hasty = nodes.edges({
  [START]: ["test", "approve"],
  test: join("ship"),
  approve: route(["sign", END], (state) => (state.risky ? END : "sign")),
  sign: join("ship"),
  ship: END,
});
const { violations, unknownWrites } = checkGraph(hasty);
for (const { rule, path } of violations) console.log(rule, path.join(" → "));
console.log("may write anything:", unknownWrites.join(", "));

// two nodes write one channel
const rivals = start
  .nodes({
    test: { writes: ["note"], interrupts: [], run: () => ({ note: "all green" }) },
    approve: {
      writes: ["note"],
      interrupts: ["allow"],
      run: async (_state, { interrupt }) => ({ note: (await interrupt("allow")) ? "looks good" : "not yet" }),
    },
    ship: { writes: [], interrupts: [], run: () => undefined },
  })
  .edges({ [START]: ["test", "approve"], test: join("ship"), approve: join("ship"), ship: END });
for (const { rule, path } of checkGraph(rivals).violations) console.log(rule, path.join(" → "));

// corrected
const sound = nodes.edges({
  [START]: "approve",
  approve: route(["sign", END], (state) => (state.risky ? END : "sign")),
  sign: "test",
  test: "ship",
  ship: END,
});
console.log(checkGraph(sound).violations.length, "violations");
