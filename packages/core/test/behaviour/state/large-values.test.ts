import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { createCodec, plainCodec } from "../../../src/store.ts";

interface Refusal {
  readonly shape: string;
  readonly stored: boolean;
  readonly way: string;
  readonly refused: string;
}

test("a value of 256 MB in any shape is refused by name without a copy [F9]", async () => {
  // The worker has 128 MB: a copy of the value or of its text would end it.
  const worker = new Worker(new URL("../../support/large-value-worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  });
  const refusals: Refusal[] = [];
  worker.on("message", (refusal: Refusal) => refusals.push(refusal));
  await new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => resolve());
  });
  expect(refusals).toHaveLength(16);
  for (const { shape, stored, way, refused } of refusals) {
    const where = `${shape}, ${way}, ${stored ? "with" : "without"} a store`;
    expect(refused, where).toContain("unencodable_value");
    expect(refused, where).toContain("more than 67108864 bytes");
    expect(refused, where).toContain('"offer"');
    if (way === "returned") expect(refused, where).toContain('"big"');
    expect(refused.length, where).toBeLessThan(2_000);
  }
});

test("maxValueBytes sets the size limit of a value, and a value of exactly that size is accepted", () => {
  const small = createCodec([], { maxValueBytes: 100 });
  expect(small.decode(small.encode(["x".repeat(50), "y".repeat(50)], "the value"))).toHaveLength(2);
  expect(() => small.encode(["x".repeat(50), "y".repeat(51)], "the value")).toThrow(
    /unencodable_value: the value contains more than 100 bytes at "1".*maxValueBytes/,
  );
  expect(() => small.encode(new Uint8Array(101), "the value")).toThrow(/more than 100 bytes/);
  expect(() => createCodec([], { maxValueBytes: 0 })).toThrow(/invalid_option/);
  const large = createCodec([], { maxValueBytes: 2 ** 27 });
  const text = "x".repeat(2 ** 26 + 1);
  expect(() => plainCodec.encode(text, "the value")).toThrow(/more than 67108864 bytes/);
  expect(large.encode(text, "the value")).toHaveLength(text.length + 2);
});
