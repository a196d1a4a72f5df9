/** Analysis: progress text and a progress value for people, not sent to the model. */
import { defineTool } from "statewright";
import * as z from "zod";

export const analyse = defineTool({
  name: "analyse",
  label: "Analyse Data",
  description: "Analyse the collected data.",
  input: z.object({}),
  effect: "pure",
  run: async (_args, { progress, update, wait }) => {
    progress("Starting analysis...");
    await wait(1_000);
    update?.({ content: [], details: { done: 0.5 } });
    progress("Almost done...");
    await wait(1_000);
    return "The analysis found nothing unusual.";
  },
});
