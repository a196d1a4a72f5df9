import { expect, test } from "vitest";
import { runLines } from "../src/lines/run-lines.ts";

test("each call of a plugin with random output gets its own answer or an error, and no process remains", async () => {
  expect(await runLines(400, 5)).toBe(true);
});
