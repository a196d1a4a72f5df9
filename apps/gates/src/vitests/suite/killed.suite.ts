import { crashMatrix } from "@statewright/testing";
import { expect, test } from "vitest";

test("a cheap order survives SIGKILL", { timeout: 60_000 }, async () => {
  const only = (point: string): boolean => point.includes("node pay");
  const killed = await crashMatrix(new URL("program.ts", import.meta.url), { only });
  expect(killed).toSurviveCrashes();
  expect(killed.points.every(({ reached }) => reached)).toBe(true);
});
