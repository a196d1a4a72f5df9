/** Statistics of a list of numbers. The schema reports invalid lists with messages of the tool. */
import { defineTool } from "statewright";
import * as z from "zod";

const element = z.number({ error: ({ path }) => `element ${String(path?.at(-1))} is not a number` });
const notAListMessage = "numbers must be a non-empty array";

export const stats = defineTool({
  name: "stats",
  label: "Statistics",
  description: "Describe a list of numbers: count, minimum, maximum, mean and standard deviation.",
  input: z.object({
    numbers: z.array(element, { error: notAListMessage }).min(1, { error: notAListMessage }).describe("The numbers"),
    precision: z.int().min(0).max(10).default(2).describe("Number of decimals in the text"),
  }),
  effect: "pure",
  run: ({ numbers, precision }) => {
    const n = numbers.length;
    const mean = numbers.reduce((sum, number) => sum + number, 0) / n;
    const variance = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0) / n;
    const details = {
      n,
      min: numbers.reduce((minimum, number) => Math.min(minimum, number)),
      max: numbers.reduce((maximum, number) => Math.max(maximum, number)),
      mean,
      stddev: Math.sqrt(variance),
    };
    const { n: _, ...shown } = details;
    const parts = Object.entries(shown).map(([name, value]) => `${name}=${value.toFixed(precision)}`);
    return { content: [`n=${n}`, ...parts].join("  "), details };
  },
});
