import { defineTool } from "@statewright/core";
import { jsonSchema } from "@statewright/json-schema";

export const table = defineTool({
  name: "table",
  description: "Find a free table.",
  input: jsonSchema<{ readonly seats: number }>({
    type: "object",
    properties: { seats: { type: "integer", minimum: 1 }, terrace: { type: "boolean" }, hour: { type: "integer" } },
    required: ["seats"],
    dependentRequired: { terrace: ["hour"] },
  }),
  effect: "pure",
  run: ({ seats }) => `Table ${seats} is free.`,
});
