/**
 * The built-in schemas accept and refuse the same values as the equal zod schemas and describe the same JSON Schema.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { toJsonSchema } from "../../src/adapter.ts";
import { createBooleanOrSchema, createPlainObjectSchema } from "../../src/base/plain-object-schema.ts";
import { parseWith, type Schema } from "../../src/base/schema.ts";

const own: Schema = createBooleanOrSchema(
  createPlainObjectSchema({ approved: "boolean" }, { reason: "string", args: "object", extra: "anything" }),
);
const like = z.union([
  z.boolean(),
  z.strictObject({
    approved: z.boolean(),
    reason: z.string().optional(),
    args: z.record(z.string(), z.unknown()).optional(),
    extra: z.unknown().optional(),
  }),
]);

const leaf = fc.constantFrom(true, false, "text", "", 0, null, undefined, [], {}, { a: 1 });
const answer = fc.oneof(
  leaf,
  fc.record(
    { approved: fc.oneof(fc.boolean(), leaf), reason: leaf, args: leaf, extra: leaf, other: leaf },
    { requiredKeys: [] },
  ),
);

describe("plain object schema", () => {
  test("a plain object schema accepts and refuses the same values as zod", () => {
    fc.assert(
      fc.property(answer, (value) => {
        expect(parseWith(own, value).ok).toBe(like.safeParse(value).success);
      }),
    );
  });

  test("a plain object schema has the same JSON Schema as zod", () => {
    expect(toJsonSchema(own)).toEqual(toJsonSchema(like));
  });

  test("a plain object schema names each invalid field and each unknown key", () => {
    expect(parseWith(own, { reason: 1, other: 2 })).toMatchObject({
      issues: [
        { path: "approved", message: "expected true or false" },
        { path: "reason", message: "expected a text" },
        { path: "other", message: "unknown key" },
      ],
    });
    expect(parseWith(own, 7)).toMatchObject({
      issues: [{ path: "", message: "expected true, false or { approved, reason?, args?, extra? }" }],
    });
  });
});
