/** SIGKILL of a process with two active sub-agents; another process continues. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { killAt } from "@statewright/testing";
import { afterAll, expect, test } from "vitest";

const script = new URL("../../support/processes/sub-agents-process.ts", import.meta.url);
const home = mkdtempSync(join(tmpdir(), "statewright-office-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("a kill with one sub-agent done and the other in its second request repeats only that request", async () => {
  const folder = join(home, "one");
  mkdirSync(folder);
  const { effects, stdout, processes } = await killAt({ script, folder, point: "one is done" });
  expect(processes.map(({ signal }) => signal)).toEqual(["SIGKILL", null]);
  expect(JSON.parse(stdout)).toEqual({
    answers: ["ants are read", "bees are read"],
    last: "ants are read; bees are read",
  });
  const countEffects = (text: string): number => effects.filter((effect) => JSON.stringify(effect) === text).length;
  // Over both processes the outer model was asked for the calls once, and each sub-agent for its first answer once.
  expect(countEffects('{"model":"large","said":["Find out."]}')).toBe(1);
  expect(countEffects('{"model":"small","said":["ants"]}')).toBe(1);
  expect(countEffects('{"model":"small","said":["bees"]}')).toBe(1);
  expect(countEffects('{"model":"small","said":["ants","assistant","about ants"]}')).toBe(1);
  // The outcome of this request is unknown.
  expect(countEffects('{"model":"small","said":["bees","assistant","about bees"]}')).toBe(2);
  expect(countEffects('{"read":"ants"}')).toBe(1);
  expect(countEffects('{"read":"bees"}')).toBe(1);
  expect(effects).toHaveLength(9);
});
