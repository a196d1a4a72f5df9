import { expect, test } from "vitest";
import { runLines } from "../src/lines/run-lines.ts";

test("whatever a plugin writes around its answers, each call gets its own or an error, and no process is left", async () => {
  expect(await runLines(400, 5)).toBe(true);
});
