import { dryRun } from "@statewright/agent/middleware";
import { call, say } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

test("dryRun executes reads and pure tools, and answers in place of every tool with side effects", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [
      createRecordingTool(log, "read", { safety: { access: "read" } }),
      createRecordingTool(log, "sum", { effect: "pure" }),
      createRecordingTool(log, "write", { safety: { access: "write" } }),
      createRecordingTool(log, "wipe", { safety: { access: "destructive" }, effect: "once" }),
      createRecordingTool(log, "mystery"),
    ],
    middleware: [dryRun()],
    script: [["read", "sum", "write", "wipe", "mystery"].map((name) => call(name, {})), say("ok")],
  });
  const end = await agent.run().result;
  expect([end.status, log]).toEqual(["done", ["read", "sum"]]);
  expect(listAnswers(end).map((text) => text.startsWith("This is a dry run"))).toEqual([
    false,
    false,
    true,
    true,
    true,
  ]);
});

test("dryRun with mayRun executes only the tools that the function selects", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "read", { safety: { access: "read" } }), createRecordingTool(log, "note")],
    middleware: [dryRun({ mayRun: ({ name }) => name === "note" })],
    script: [[call("read", {}), call("note", {})], say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["note"]);
});
