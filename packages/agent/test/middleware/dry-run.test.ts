import { dryRun } from "@statewright/agent/middleware";
import { call, say } from "@statewright/testing";
import { expect, test } from "vitest";
import { answers, desk, noting } from "../support/desk.ts";

test("dryRun executes reads and pure tools, and answers in place of every tool with side effects", async () => {
  const log: string[] = [];
  const agent = desk({
    tools: [
      noting(log, "read", { safety: { access: "read" } }),
      noting(log, "sum", { effect: "pure" }),
      noting(log, "write", { safety: { access: "write" } }),
      noting(log, "wipe", { safety: { access: "destructive" }, effect: "once" }),
      noting(log, "mystery"),
    ],
    middleware: [dryRun()],
    script: [["read", "sum", "write", "wipe", "mystery"].map((name) => call(name, {})), say("ok")],
  });
  const end = await agent.run().result;
  expect([end.status, log]).toEqual(["done", ["read", "sum"]]);
  expect(answers(end).map((text) => text.startsWith("This is a dry run"))).toEqual([false, false, true, true, true]);
});

test("dryRun with mayRun executes only the tools that the function selects", async () => {
  const log: string[] = [];
  const agent = desk({
    tools: [noting(log, "read", { safety: { access: "read" } }), noting(log, "note")],
    middleware: [dryRun({ mayRun: ({ name }) => name === "note" })],
    script: [[call("read", {}), call("note", {})], say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["note"]);
});
