/** The input of a tool is not an object. */
import { defineTool } from "statewright";
import * as z from "zod";

export const read = defineTool({
  name: "read",
  description: "Reads a file of the shop.",
  // @ts-expect-error Type 'ZodString' is not assignable to type 'ZodString & "the input of a tool is an object: use z.object({ … })"' with 'exactOptionalPropertyTypes: true'. Consider adding 'undefined' to the types of the target's properties.
  input: z.string(),
  run: (path) => path,
});
