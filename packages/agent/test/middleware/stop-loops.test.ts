import { stopLoops } from "@statewright/agent/middleware";
import { memoryStore } from "@statewright/core";
import { call, say } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers } from "../support/desk.ts";

const same = () => call("look", { text: "there" });

test("stopLoops refuses a repeated equal call with a warning, then ends the run as cancelled", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "look")],
    middleware: [stopLoops({ same: 2, warnings: 1 })],
    script: [same(), same(), same(), same(), same()],
  });
  const end = await agent.run().result;
  expect(log).toEqual(["look there", "look there"]);
  expect(end).toMatchObject({ status: "cancelled", reason: 'the model repeated the same call of "look" 4 times' });
  expect(listAnswers(end).map((text) => text.slice(0, 23))).toEqual([
    "look done",
    "look done",
    "!You have made this cal",
    "!The run was ended: the",
  ]);
});

test("stopLoops restarts its count for other arguments, other tools and user messages, and counts each call of a message", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "look"), createRecordingTool(log, "hear")],
    middleware: [stopLoops({ same: 2 })],
    script: [
      [same(), call("look", { text: "here" }), call("hear", { text: "there" }), same(), same()],
      say("ok"),
      [same(), same()],
      say("ok"),
    ],
  });
  const first = await agent.run().result;
  expect(listAnswers(first).map((text) => text.startsWith("!"))).toEqual([false, false, false, false, true]);
  const second = await agent.run("once more").result;
  expect(listAnswers(second).slice(5)).toEqual(["look done", "look done"]);
});

test("stopLoops counts from the transcript, also in a new process", async () => {
  const log: string[] = [];
  const store = memoryStore();
  const options = { tools: [createRecordingTool(log, "look")], middleware: [stopLoops({ same: 2 })] };
  const dying = createDesk({
    ...options,
    store,
    script: [same(), same(), () => new Promise(() => undefined) as never],
  });
  void dying.run().result.catch(() => "died");
  await dying.world.waitUntilIdle();
  store.crash();
  const next = createDesk({ ...options, store: store.peer(), script: [same(), same(), same(), say("ok")] });
  const end = await next.resume().result;
  expect([end.status, log]).toEqual(["done", ["look there", "look there"]]);
});

test("stopLoops refuses invalid numbers", () => {
  expect(() => stopLoops({ same: 0 })).toThrow(/invalid_option/);
  expect(() => stopLoops({ warnings: -1 })).toThrow(/invalid_option/);
});
