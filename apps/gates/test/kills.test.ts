import { expect, test } from "vitest";
import { runKills } from "../src/kills/run-kills.ts";

test("programs killed at random moments end like programs without kills [F1, I2, I3, I6]", async () => {
  expect(await runKills({ kills: 8, minutes: undefined, seed: 7 })).toBe(true);
});
