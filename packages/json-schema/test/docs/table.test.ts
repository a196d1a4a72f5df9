import { expect, test } from "vitest";
import { table } from "./table.ts";

test("the schema on the README of json-schema requires an hour for the terrace", () => {
  const { input } = table.spec;
  if (!("validate" in input)) throw new Error("expected a validator of JSON Schema");
  expect(input.validate({ seats: 2 })).toEqual([]);
  expect(input.validate({ seats: 2, terrace: true })).toMatchObject([{ message: expect.stringContaining("hour") }]);
});
