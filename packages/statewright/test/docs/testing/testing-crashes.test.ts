import { crashMatrix } from "@statewright/testing";
import "@statewright/testing/vitest";
import { expect, test } from "vitest";
import program from "./orders-program.ts";

test("the orders program survives a crash at every point", async () => {
  expect(await crashMatrix(program)).toSurviveCrashes();
});

test("the orders program survives SIGKILL", async () => {
  const killed = await crashMatrix(new URL("orders-program.ts", import.meta.url), {
    only: (point) => /after step charge|after the commit of the answer/.test(point),
  });
  expect(killed).toSurviveCrashes();
  expect(killed.points.filter(({ reached }) => !reached)).toEqual([]);
});
