import process from "node:process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bitFlips } from "./gates/bit-flips.ts";
import { fuzz } from "./gates/fuzz.ts";
import { tornLogs } from "./gates/torn-logs.ts";
import { memoryFolder } from "./support/stores.ts";

/** A part of the size that the gates have; with STATEWRIGHT_WHOLE=1 all of it. */
const share = process.env["STATEWRIGHT_WHOLE"] === "1" ? 1 : 0.25;

let home: ReturnType<typeof memoryFolder>;

beforeEach(() => {
  home = memoryFolder();
});

afterEach(() => home.remove());

test("C4, C22 a torn log, and a log whose copy into the file was cut short, hold a prefix of the commits, each whole", async () => {
  const { failures, cases } = await tornLogs(home.path, { first: 1, count: 300 * share });
  expect([failures, cases]).toEqual([[], 300 * share]);
});

test("F6 a flipped bit is harmless or told: no value is wrong without a word", async () => {
  const { failures, counts } = await bitFlips(home.path, { first: 1, count: 100 * share });
  expect(failures).toEqual([]);
  expect((counts["refused"] ?? 0) + (counts["not opened"] ?? 0)).toBeGreaterThan(15 * share);
});

test("no filter, option or id that is not meant is taken, and nothing but an error of ours is thrown", async () => {
  const { failures, cases } = await fuzz(home.path, { first: 1, count: 5_000 * share });
  expect([failures, cases]).toEqual([[], 5_000 * share]);
});
