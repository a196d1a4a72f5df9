/** The schemas of the engine's own accept and refuse what those of zod with the same parts do, and say the same of themselves. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { booleanOr, plainObject } from "../../src/base/plain-object-schema.ts";
import { parseWith, type Schema } from "../../src/base/schema.ts";
import { jsonSchemaOf } from "../../src/index.ts";

const own: Schema = booleanOr(
  plainObject({ approved: "boolean" }, { reason: "string", args: "object", extra: "anything" }),
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

describe("an object of plain parts", () => {
  test("takes and refuses what zod takes and refuses", () => {
    fc.assert(
      fc.property(answer, (value) => {
        expect(parseWith(own, value).ok).toBe(like.safeParse(value).success);
      }),
    );
  });

  test("says of itself what zod says", () => {
    expect(jsonSchemaOf(own)).toEqual(jsonSchemaOf(like));
  });

  test("names each part that does not fit, and each that it does not know", () => {
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
