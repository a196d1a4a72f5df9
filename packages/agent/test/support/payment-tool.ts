/** A tool that pays, once, and notes what it has paid. */
import { defineTool } from "@statewright/core";
import * as z from "zod";

/** The tool `pay`; `paid` takes the cents of each call. */
export function payingInto(paid: number[], says: (cents: number) => string = () => "paid") {
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
