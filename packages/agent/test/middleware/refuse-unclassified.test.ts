import { refuseUnclassified } from "@statewright/agent/middleware";
import { call, say } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

test("refuseUnclassified answers a call of an unclassified tool with a repairable error and runs others [S1.87, S1.93]", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "mystery"), createRecordingTool(log, "read", { safety: { access: "read" } })],
    middleware: [refuseUnclassified()],
    script: [[call("mystery", {}), call("read", {})], say("ok")],
  });
  const end = await agent.run().result;
  expect([end.status, log]).toEqual(["done", ["read"]]);
  expect(listAnswers(end)).toEqual([
    '!The tool "mystery" declares no safety metadata, and such tools are disabled here. Use another tool.',
    "read done",
  ]);
  const failed = agent.events.flatMap((event) => (event.type === "tool.failed" ? [event.result.error] : []));
  expect(failed).toMatchObject([{ kind: "denied", disposition: "repair" }]);
});
