import { describe, expect, expectTypeOf, test } from "vitest";
import { ToolError, type ToolErrorDisposition, type ToolErrorKind } from "../../src/index.ts";

/** Default disposition of each error kind. */
const kinds: Readonly<Record<ToolErrorKind, ToolErrorDisposition>> = {
  failed: "repair",
  not_found: "repair",
  invalid_args: "repair",
  cancelled: "control",
  timeout: "retry",
  denied: "repair",
  skipped: "repair",
  limit: "repair",
  crashed: "repair",
  invalid_output: "repair",
  unknown_outcome: "repair",
  unavailable: "retry",
};

describe("tool error kinds", () => {
  test("a tool error has one of twelve kinds with a default disposition, and may set another of the four dispositions [D7]", () => {
    expect(Object.keys(kinds)).toHaveLength(12);
    for (const [kind, disposition] of Object.entries(kinds) as [ToolErrorKind, ToolErrorDisposition][]) {
      expect([kind, new ToolError(kind, "x").disposition]).toEqual([kind, disposition]);
      for (const other of ["retry", "repair", "fail", "control"] as const)
        expect(new ToolError(kind, "x", { disposition: other })).toMatchObject({ kind, disposition: other });
    }
    for (const wrong of ["weird", "toString", "", undefined, 7]) {
      expect(() => new ToolError(wrong as never, "no bread")).toThrow(/invalid_option.*"?no bread"?.*kind.*not_found/);
      const options = { disposition: wrong as never };
      if (wrong !== undefined)
        expect(() => new ToolError("failed", "no bread", options)).toThrow(/invalid_option.*disposition.*repair/);
    }
    expectTypeOf<ToolErrorDisposition>().toEqualTypeOf<"retry" | "repair" | "fail" | "control">();
  });
});
