/** Analysis: lines of progress for people and a number for their progress bar, and nothing of them for the model. */
import { defineTool } from "statewright";
import * as z from "zod";

export const analyse = defineTool({
  name: "analyse",
  label: "Analyse Data",
  description: "Analyse the data that was collected so far.",
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
