import { call } from "@statewright/testing";
import { expect, test } from "vitest";
import { analyse } from "../src/analysis.ts";
import { defineSaveRecord, processItems } from "../src/items.ts";
import { getResultText, runConversation, startConversation } from "./support/talk.ts";

test("process_items emits an update before each item [S4.35]", async () => {
  const { updates, results } = await runConversation(
    [processItems],
    [call(processItems, { items: ["a", "bb", "ccc"] })],
  );
  expect(updates()).toEqual(
    [1, 2, 3].map((n) => ({ content: `Processing ${n}/3...`, details: { progress: n, total: 3 } })),
  );
  expect(getResultText(results()[0])).toBe("Processed 3 items");
});

test("process_items stopped during an item returns its own text and processes no later item [S4.35]", async () => {
  const live = startConversation([processItems], [call(processItems, { items: ["a", "bb", "ccc"] })]);
  await live.world.advance(2);
  live.handle.cancel("enough");
  expect(await live.end()).toBe("cancelled");
  expect(live.updates()).toHaveLength(2);
  expect(live.results()[0]).toMatchObject({ isError: true, error: { kind: "cancelled" } });
});

test("save_record reports a missing required field and a failed operation, and returns text equal to its details [S4.36]", async () => {
  const saved = { id: 7, note: "kept" };
  const works = await runConversation(
    [defineSaveRecord(async () => saved)],
    [call("save_record", { requiredField: "x" })],
  );
  expect(getResultText(works.results()[0])).toBe(JSON.stringify(saved));
  expect(works.results()[0]?.details).toEqual(saved);
  const fails = await runConversation(
    [defineSaveRecord(() => Promise.reject(new Error("disk full")))],
    [call("save_record", {}), call("save_record", { requiredField: "x" })],
  );
  expect(fails.results().map(getResultText)).toEqual(["requiredField is missing", "Operation failed: disk full"]);
  expect(fails.results().every(({ isError }) => isError)).toBe(true);
});

test("analyse emits progress before and after its work, between call start and end, and runs without a listener [S0.64, S2.70]", async () => {
  const { events } = await runConversation([analyse], [call(analyse, {})]);
  const observed = events.flatMap((event) =>
    event.type === "tool.progress" ? [event.text] : event.type.startsWith("tool.") ? [event.type] : [],
  );
  expect(observed.filter((type) => type !== "tool.update")).toEqual([
    ...["tool.started", "tool.body_started", "Starting analysis...", "Almost done...", "tool.completed"],
  ]);
});
