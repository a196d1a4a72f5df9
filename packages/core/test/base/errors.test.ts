import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { errorCodes } from "../../src/adapter.ts";
import { fromErrorRecord, toErrorRecord } from "../../src/base/errors.ts";
import { isStatewrightError, StatewrightError } from "../../src/index.ts";

const page = readFileSync(new URL("../../../../docs/errors.md", import.meta.url), "utf8");

test.each(errorCodes)("the error code %s has its entry in the docs", (code) => {
  expect(page).toContain(`\n### ${code}\n`);
});

test("the docs explain no error code that does not exist", () => {
  const explained = [...page.matchAll(/^### (\S+)$/gm)].map((match) => match[1]);
  expect(explained.toSorted()).toEqual([...errorCodes].toSorted());
});

test("an error message states the fact, the place and the fix, and names its page in the installed package [FX44]", () => {
  const error = new StatewrightError("dead_route", {
    what: 'the route after "review" in graph "orders" returned "archive", which it does not declare',
    next: "Add it to the route's targets",
    place: { graph: "orders", node: "review", thread: "t1", step: 3 },
  });
  expect(error.message).toBe(
    'dead_route: the route after "review" in graph "orders" returned "archive", which it does not declare (node "review", step 3, thread "t1"). Add it to the route\'s targets. See node_modules/statewright/docs/errors.md#dead_route.',
  );
});

test("an error restored from its record has its code, place, stack and chain of causes", () => {
  const cause = Object.assign(new RangeError("too far"), { code: "EFAR" });
  const error = new StatewrightError("node_failed", {
    what: "it failed",
    next: "Fix it",
    place: { node: "a" },
    cause,
  });
  const back = fromErrorRecord(JSON.parse(JSON.stringify(toErrorRecord(error))));
  expect(isStatewrightError(back, "node_failed")).toBe(true);
  expect(back).toMatchObject({ message: error.message, stack: error.stack, place: { node: "a" } });
  expect(back.cause).toMatchObject({ name: "RangeError", message: "too far", code: "EFAR" });
});

test("any thrown value has a record: null, a string, or an error whose cause is itself", () => {
  const circular = new Error("round");
  circular.cause = circular;
  expect(toErrorRecord(null)).toMatchObject({ name: "NotAnError", thrown: "null" });
  expect(toErrorRecord("no")).toMatchObject({ thrown: '"no"' });
  expect(toErrorRecord(circular)).toMatchObject({ name: "Error", message: "round" });
  expect(toErrorRecord(circular).cause).toBeUndefined();
});
