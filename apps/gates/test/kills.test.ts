import { expect, test } from "vitest";
import { runKills } from "../src/kills/run-kills.ts";

test("F1 I2 I3 I6 processes killed at random moments: whoever goes on ends every program as if there had been no death", async () => {
  expect(await runKills({ kills: 8, minutes: undefined, seed: 7 })).toBe(true);
});
