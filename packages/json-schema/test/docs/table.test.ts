import { defineTool } from "@statewright/core";
import { jsonSchema } from "@statewright/json-schema";
import { expect, test } from "vitest";

const table = defineTool({
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

test("the schema on the README of json-schema requires an hour for the terrace", () => {
  const { input } = table.spec;
  if (!("validate" in input)) throw new Error("expected a validator of JSON Schema");
  expect(input.validate({ seats: 2 })).toEqual([]);
  expect(input.validate({ seats: 2, terrace: true })).toMatchObject([{ message: expect.stringContaining("hour") }]);
});
