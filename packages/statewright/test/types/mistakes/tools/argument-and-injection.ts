/** A name is both an argument and an injection. */
import { defineTool, inject } from "statewright";
import * as z from "zod";

export const read = defineTool({
  name: "read",
  description: "Reads a file of the shop.",
  input: z.object({ path: z.string() }),
  // @ts-expect-error Type 'Injection<SecretValue, unknown, unknown>' is not assignable to type 'Injection<SecretValue, unknown, unknown> & "the input has an argument path: rename one of them"' with 'exactOptionalPropertyTypes: true'. Consider adding 'undefined' to the types of the target's properties.
  inject: { path: inject.secret("PATH") },
  run: ({ path }) => path,
});
