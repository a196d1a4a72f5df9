/** A once tool that pays and records its payments. */
import { defineTool } from "@statewright/core";
import * as z from "zod";

/** Creates the tool `pay`; `paid` receives the cents of each call. */
export function createPayTool(paid: number[], says: (cents: number) => string = () => "paid") {
  return defineTool({
    name: "pay",
    description: "Pay.",
    input: z.object({ cents: z.int() }),
    effect: "once",
    run: ({ cents }) => {
      paid.push(cents);
      return says(cents);
    },
  });
}
