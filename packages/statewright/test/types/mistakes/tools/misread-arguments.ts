/** A tool reads an argument that its input does not declare. */
import { defineTool } from "statewright";
import * as z from "zod";

export const read = defineTool({
  name: "read",
  description: "Reads a file of the shop.",
  input: z.object({ path: z.string() }),
  // @ts-expect-error Property 'file' does not exist on type '{ path: string; }'.
  run: ({ file }) => file,
});
