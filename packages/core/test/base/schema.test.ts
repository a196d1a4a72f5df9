import { expect, test } from "vitest";
import * as z from "zod";
import { describeIssues, parseWith, type Schema } from "../../src/base/schema.ts";

test("a value is parsed by any Standard Schema and replaced by its output", () => {
  expect(parseWith(z.string().default("x"), undefined)).toEqual({ ok: true, value: "x" });
  const even: Schema<number> = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) =>
        typeof value === "number" && value % 2 === 0 ? { value } : { issues: [{ message: "expected an even number" }] },
    },
  };
  expect(parseWith(even, 2)).toEqual({ ok: true, value: 2 });
  expect(parseWith(even, 3)).toEqual({ ok: false, issues: [{ path: "", message: "expected an even number" }] });
});

test("schema issues name their paths and never quote the value", () => {
  const parsed = parseWith(z.object({ cart: z.array(z.string()), total: z.number() }), { cart: [7], total: "SECRET" });
  if (parsed.ok) throw new Error("it was accepted");
  expect(parsed.issues.map((issue) => issue.path)).toEqual(["cart.0", "total"]);
  const text = describeIssues(parsed.issues);
  expect(text).toContain("cart.0: ");
  expect(text).not.toContain("SECRET");
});

test("an async schema is refused, and its late rejection is handled", async () => {
  const late: Schema = {
    "~standard": { version: 1, vendor: "test", validate: () => Promise.reject(new Error("late")) },
  };
  const parsed = parseWith(late, "x");
  expect(parsed).toMatchObject({ ok: false, issues: [{ message: expect.stringContaining("asynchronously") }] });
  await new Promise<void>((resolve) => setImmediate(resolve));
});
