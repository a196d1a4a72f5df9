import { call } from "@statewright/testing";
import { expect, test } from "vitest";
import { analyse } from "../src/analysis.ts";
import { processItems, saveRecord } from "../src/items.ts";
import { begin, talk, textOfResult } from "./support/talk.ts";

test("S4.35 an update before each item", async () => {
  const { updates, results } = await talk([processItems], [call("process_items", { items: ["a", "bb", "ccc"] })]);
  expect(updates()).toEqual(
    [1, 2, 3].map((n) => ({ content: `Processing ${n}/3...`, details: { progress: n, total: 3 } })),
  );
  expect(textOfResult(results()[0])).toBe("Processed 3 items");
});

test("S4.35 a stop: the tool's own words, and no later item", async () => {
  const live = begin([processItems], [call("process_items", { items: ["a", "bb", "ccc"] })]);
  await live.world.advance(2);
  live.handle.cancel("enough");
  expect(await live.end()).toBe("cancelled");
  expect(live.updates()).toHaveLength(2);
  expect(live.results()[0]).toMatchObject({ isError: true, error: { kind: "cancelled" } });
});

test("S4.36 a required field that is missing, an operation that fails, and a success that is text and details alike", async () => {
  const saved = { id: 7, note: "kept" };
  const works = await talk([saveRecord(async () => saved)], [call("save_record", { requiredField: "x" })]);
  expect(textOfResult(works.results()[0])).toBe(JSON.stringify(saved));
  expect(works.results()[0]?.details).toEqual(saved);
  const fails = await talk(
    [saveRecord(() => Promise.reject(new Error("disk full")))],
    [call("save_record", {}), call("save_record", { requiredField: "x" })],
  );
  expect(fails.results().map(textOfResult)).toEqual(["requiredField is missing", "Operation failed: disk full"]);
  expect(fails.results().every(({ isError }) => isError)).toBe(true);
});

test("S0.64 S2.70 progress before and after the work, between the start of the call and its end; without a listener it runs too", async () => {
  const { events } = await talk([analyse], [call("analyse", {})]);
  const told = events.flatMap((event) =>
    event.type === "tool.progress" ? [event.text] : event.type.startsWith("tool.") ? [event.type] : [],
  );
  expect(told.filter((type) => type !== "tool.update")).toEqual([
    ...["tool.started", "Starting analysis...", "Almost done...", "tool.completed"],
  ]);
});
