import { afterEach, beforeEach, expect, test } from "vitest";
import { bitFlips } from "./gates/bit-flips.ts";
import { fuzz } from "./gates/fuzz.ts";
import { tornLogs } from "./gates/torn-logs.ts";
import { memoryFolder } from "./support/stores.ts";

let home: ReturnType<typeof memoryFolder>;

beforeEach(() => {
  home = memoryFolder();
});

afterEach(() => home.remove());

test("C4, C22 a torn log, and a log whose copy into the file was cut short, hold a prefix of the commits, each whole", async () => {
  const { failures, cases } = await tornLogs(home.path, { first: 1, count: 300 });
  expect([failures, cases]).toEqual([[], 300]);
});

test("F6 a flipped bit is harmless or told: no value is wrong without a word", async () => {
  const { failures, counts } = await bitFlips(home.path, { first: 1, count: 100 });
  expect(failures).toEqual([]);
  expect((counts["refused"] ?? 0) + (counts["not opened"] ?? 0)).toBeGreaterThan(15);
});

test("no filter, option or id that is not meant is taken, and nothing but an error of ours is thrown", async () => {
  const { failures, cases } = await fuzz(home.path, { first: 1, count: 5_000 });
  expect([failures, cases]).toEqual([[], 5_000]);
});
