import { allowTools } from "@statewright/agent/middleware";
import { isStatewrightError, memoryStore } from "@statewright/core";
import { call, say } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

test("allowTools refuses and reports a tool outside its list; the model reads the refusal, or the run fails with the call answered [S1.63, S1.64, S1.87]", async () => {
  const log: string[] = [];
  const tools = [createRecordingTool(log, "read"), createRecordingTool(log, "write")];
  const script = [[call("read", {}), call("write", {})], say("ok")];
  const kind = createDesk({ tools, middleware: [allowTools(["read"])], script });
  const end = await kind.run().result;
  expect([end.status, listAnswers(end)]).toEqual(["done", ["read done", '!The tool "write" is not allowed here.']]);
  const denied = kind.events.flatMap((event) => (event.type === "tool.denied" ? [[event.by, event.tool]] : []));
  expect(denied).toEqual([["allowTools", "write"]]);

  const store = memoryStore();
  const strict = createDesk({ tools, middleware: [allowTools(["read"], { onViolation: "fail" })], script, store });
  const error = await strict.run().result.catch((thrown: unknown) => thrown);
  expect([isStatewrightError(error, "tool_failed"), String(error)]).toEqual([true, expect.stringContaining("write")]);
  expect(strict.events.some(({ type }) => type === "tool.denied")).toBe(true);
  expect(log).toEqual(["read", "read"]);
  const after = await strict.resume().result;
  expect([after.status, listAnswers(after)]).toEqual(["done", ["read done", '!The tool "write" is not allowed here.']]);
});

test("an allowTools function decides by the safety declaration of the tool", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [
      createRecordingTool(log, "read", { safety: { access: "read" } }),
      createRecordingTool(log, "write", { safety: { access: "write" } }),
    ],
    middleware: [allowTools((_call, { safety }) => safety.access === "read")],
    script: [[call("read", {}), call("write", {})], say("ok")],
  });
  await agent.run().result;
  expect(log).toEqual(["read"]);
});

test("allowTools refuses a value that is not a list and an unknown onViolation", () => {
  expect(() => allowTools("read" as never)).toThrow(/invalid_option/);
  expect(() => allowTools([], { onViolation: "warn" as never })).toThrow(/invalid_option/);
});
