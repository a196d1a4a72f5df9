/** A graph that charges a card, raises an interrupt and ships, with optional planted defects. */
import { channel, defineGraph, defineState, END, type Graph, START, type StepOptions } from "@statewright/core";
import type { CrashExternalWorld } from "@statewright/testing";
import * as z from "zod";

/** Number of processes so far. */
let boots = 0;

/** Planted defect. */
export type Defect = "none" | "bare effect" | "no key" | "lost write" | "asks twice" | "chance";

/** Creates the graph for one process. */
export function createOrderGraph({ recordEffect, hasEffect }: CrashExternalWorld, defect: Defect): Graph {
  const seen: string[] = [];
  const boot = ++boots;
  return defineGraph({
    name: "orders",
    state: defineState({ order: z.string(), log: channel.list(z.string()), token: z.string().default("") }),
    interrupts: { ship: z.boolean() },
  })
    .nodes({
      charge: async ({ order }, { step }) => {
        seen.push("charged");
        if (defect === "bare effect") recordEffect(`charge order ${order}`);
        else
          await step(
            "charge",
            ({ idempotencyKey }) => {
              if (defect === "no key") recordEffect(`charge order ${order}`);
              else recordEffect(`charge order ${order}`, idempotencyKey);
            },
            { effect: "idempotent" } satisfies StepOptions,
          );
        return { log: ["charged"], token: defect === "chance" ? `${hasEffect("nothing")} ${Math.random()}` : "t" };
      },
      ask: async (_state, { interrupt }) => {
        const yes = await interrupt("ship", { payload: defect === "asks twice" ? `ship? (process ${boot})` : "ship?" });
        return { log: [yes ? "yes" : "no"] };
      },
      ship: () => ({ log: defect === "lost write" ? [...seen, "shipped"] : ["shipped"] }),
    })
    .edges({ [START]: "charge", charge: "ask", ask: "ship", ship: END });
}
