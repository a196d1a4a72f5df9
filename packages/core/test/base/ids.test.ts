import fc from "fast-check";
import { expect, test } from "vitest";
import { checkId, createId, fingerprint } from "../../src/adapter.ts";
import { getFailure } from "../support/failure.ts";

test("an id of 1 to 128 allowed characters is accepted and returned unchanged", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[A-Za-z0-9_.:-]{1,128}$/), (id) => {
      fc.pre(!["__proto__", "constructor", "prototype"].includes(id));
      expect(checkId("thread", id)).toBe(id);
    }),
  );
});

test.each(["", "a b", "a/b", "é", "a".repeat(129), "a\n", "\ud800", "__proto__", "constructor", "prototype"])(
  "the id %j is refused",
  async (id) => {
    const error = await getFailure(() => checkId("thread", id), "invalid_id");
    expect(error.message).toContain(JSON.stringify(id));
  },
);

test("an id that names a built-in object property is refused with that reason", async () => {
  const { message } = await getFailure(() => checkId("thread", "__proto__"), "invalid_id");
  expect(message).toContain("every object has a property of this name");
  expect(message).not.toContain("A-Z");
});

test("an id that is not a string is refused", async () => {
  await getFailure(() => checkId("thread", 7 as never), "invalid_id");
});

test("a fresh id keeps its prefix, matches the id grammar and depends only on the random source", () => {
  const chance = () => {
    let seed = 1;
    return {
      next: () => {
        seed = (seed * 48_271) % 2_147_483_647;
        return seed / 2_147_483_647;
      },
    };
  };
  const random = chance();
  const [first, second] = [createId("run_", random), createId("run_", random)];
  expect(first).toMatch(/^run_[0-9a-z]{20}$/);
  expect(second).not.toBe(first);
  expect(createId("run_", chance())).toBe(first);
  expect(createId("", { next: () => 1 - Number.EPSILON })).toHaveLength(20);
});

test("a fingerprint is a 64-bit FNV-1a hash", () => {
  expect(["", "a", "foobar"].map(fingerprint)).toEqual(["cbf29ce484222325", "af63dc4c8601ec8c", "85944171f73967e8"]);
});
