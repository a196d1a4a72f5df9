/** Stats: numbers in, one line out; what is wrong with a list is said by its schema, in the tool's own words. */
import { defineTool } from "statewright";
import * as z from "zod";

const element = z.number({ error: ({ path }) => `element ${String(path?.at(-1))} is not a number` });
const notAList = "numbers must be a non-empty array";

export const stats = defineTool({
  name: "stats",
  label: "Statistics",
  description: "Describe a list of numbers: count, least, greatest, mean and standard deviation.",
  input: z.object({
    numbers: z.array(element, { error: notAList }).min(1, { error: notAList }).describe("The numbers"),
    precision: z.int().min(0).max(10).default(2).describe("Decimals in the text"),
  }),
  effect: "pure",
  run: ({ numbers, precision }) => {
    const n = numbers.length;
    const mean = numbers.reduce((sum, number) => sum + number, 0) / n;
    const variance = numbers.reduce((sum, number) => sum + (number - mean) ** 2, 0) / n;
    const details = {
      n,
      min: numbers.reduce((least, number) => Math.min(least, number)),
      max: numbers.reduce((greatest, number) => Math.max(greatest, number)),
      mean,
      stddev: Math.sqrt(variance),
    };
    const { n: _, ...shown } = details;
    const parts = Object.entries(shown).map(([name, value]) => `${name}=${value.toFixed(precision)}`);
    return { content: [`n=${n}`, ...parts].join("  "), details };
  },
});
