import process from "node:process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runBitFlips } from "./gates/bit-flips.ts";
import { fuzz } from "./gates/fuzz.ts";
import { runTornLogs } from "./gates/torn-logs.ts";
import { createMemoryFolder } from "./support/stores.ts";

/** A share of the gates' size; the full size with STATEWRIGHT_WHOLE=1. */
const share = process.env["STATEWRIGHT_WHOLE"] === "1" ? 1 : 0.25;

let home: ReturnType<typeof createMemoryFolder>;

beforeEach(() => {
  home = createMemoryFolder();
});

afterEach(() => home.remove());

test("a torn log and an interrupted checkpoint of the log hold a prefix of complete commits [C4, C22]", async () => {
  const { failures, cases } = await runTornLogs(home.path, { first: 1, count: 300 * share });
  expect([failures, cases]).toEqual([[], 300 * share]);
});

test("a flipped bit is harmless or reported, and no value is silently wrong [F6]", async () => {
  const { failures, counts } = await runBitFlips(home.path, { first: 1, count: 100 * share });
  expect(failures).toEqual([]);
  expect((counts["refused"] ?? 0) + (counts["not opened"] ?? 0)).toBeGreaterThan(15 * share);
});

test("invalid filters, options and ids are refused, and only StatewrightErrors are thrown", async () => {
  const { failures, cases } = await fuzz(home.path, { first: 1, count: 5_000 * share });
  expect([failures, cases]).toEqual([[], 5_000 * share]);
});
