import { expect, test } from "vitest";
import * as z from "zod";
import { defineTool, memoryStore } from "../../../src/index.ts";
import { call, createToolLoop, getAnswerText, listEvents, listToolAnswers } from "../../support/tool-loop.ts";

const hangs = defineTool({
  name: "hangs",
  description: "Never comes back by itself.",
  input: z.object({}),
  effect: "idempotent",
  run: (_args, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
});
const quick = defineTool({
  name: "quick",
  description: "Comes back.",
  input: z.object({}),
  effect: "pure",
  run: () => "done",
});

test("a cancelled run answers every tool call: completed calls with their results, the others as cancelled", async () => {
  const store = memoryStore();
  const turns = [[call("quick", {}, "c1"), call("hangs", {}, "c2"), call("hangs", {}, "c3")], ["ok"]];
  const loop = createToolLoop({ tools: [quick, hangs], turns, store });
  const handle = loop.start();
  await loop.world.waitUntilIdle();
  handle.cancel("the person left");
  const end = await handle.result;
  expect(end.status).toBe("cancelled");
  expect(listToolAnswers(end).map(getAnswerText)).toEqual(["done", "Cancelled", "Cancelled"]);
  expect(listEvents(loop, "tool.failed").map(({ callId, result }) => [callId, result.error?.kind])).toEqual([
    ["c2", "cancelled"],
    ["c3", "cancelled"],
  ]);
  expect(loop.requests).toHaveLength(1);
  expect((await store.thread("t"))?.status).toBe("cancelled");
});

test("a cancel before any tool call started answers every call and runs none", async () => {
  const loop = createToolLoop({ tools: [quick], turns: [[call("quick", {}, "c1")], ["ok"]], store: memoryStore() });
  const handle = loop.start();
  handle.on((event) => {
    if (event.type === "step.committed" && event.next.includes("tools")) handle.cancel("no");
  });
  const end = await handle.result;
  expect(end.status).toBe("cancelled");
  expect(listToolAnswers(end).map(getAnswerText)).toEqual(["Cancelled"]);
  expect(listEvents(loop, "tool.started")).toEqual([]);
});
