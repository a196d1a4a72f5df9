import { createAgent } from "@statewright/agent";
import { selectToolsByModel } from "@statewright/agent/middleware";
import { memoryStore, StatewrightError } from "@statewright/core";
import { call, failWith, type ScriptedEntry, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import { createRecordingTool } from "../support/desk.ts";

const names = ["ask", "buy", "call", "dig"];

function createOffice(
  picks: readonly ScriptedEntry[],
  script: readonly ScriptedEntry[],
  more: { readonly max?: number; readonly always?: readonly string[] } = {},
) {
  const picker = scriptedModel(picks, { id: "small" });
  const model = scriptedModel(script);
  const log: string[] = [];
  const middleware = [selectToolsByModel({ model: picker, max: 2, ...more })];
  const agent = createAgent({
    name: "a",
    model,
    tools: names.map((name) => createRecordingTool(log, name)),
    middleware,
    store: memoryStore(),
  });
  const listAdvertisedTools = () => model.requests.map(({ tools }) => tools.map(({ name }) => name).join(" "));
  return {
    agent,
    picker,
    model,
    log,
    shown: listAdvertisedTools,
    ask: (input: string) => agent.run({ thread: "t", input }).result,
  };
}

test("selectToolsByModel advertises the selected tools until the next user message, in registry order", async () => {
  const picks = [call("pick_tools", { names: ["dig", "buy"] }), call("pick_tools", { names: ["ask"] })];
  const { ask, shown, picker, log } = createOffice(picks, [call("dig", {}), say("ok"), say("well")]);
  await ask("Dig a hole");
  await ask("Now ask");
  expect(shown()).toEqual(["buy dig", "buy dig", "ask"]);
  expect([picker.requests.length, log]).toEqual([2, ["dig"]]);
  expect(JSON.stringify(picker.requests[0])).toContain("- buy: Does buy.");
});

test("selectToolsByModel advertises at most max tools, ignores unknown names, and keeps those in always", async () => {
  const picks = [call("pick_tools", { names: ["rob", "dig", "dig", "buy", "ask"] })];
  const { ask, shown } = createOffice(picks, [say("ok")], { always: ["call"] });
  await ask("go");
  expect(shown()).toEqual(["buy call dig"]);
});

test("selectToolsByModel understands tool names written as text", async () => {
  const { ask, shown } = createOffice([say("You need buy, and ask.")], [say("ok")]);
  await ask("go");
  expect(shown()).toEqual(["ask buy"]);
});

test("selectToolsByModel hides no tool when the selecting model fails or names no known tool", async () => {
  const away = new StatewrightError("model_failed", { what: "away", next: "Wait", details: { retryable: false } });
  const { ask, shown } = createOffice([failWith(away), say("none of them")], [say("ok"), say("ok")]);
  await ask("go");
  await ask("on");
  expect(shown()).toEqual(["ask buy call dig", "ask buy call dig"]);
});

test("a selecting model that rejects with a plain error hides no tool, and a programming error fails the run [FX97]", async () => {
  const plain = new Error("socket hang up");
  const { ask, shown } = createOffice([failWith(plain), failWith(plain), failWith(plain)], [say("ok")]);
  await ask("go");
  expect(shown()).toEqual(["ask buy call dig"]);
  const mistaken = createOffice([failWith(new TypeError("x is undefined"))], [say("ok")]);
  await expect(mistaken.ask("go")).rejects.toThrow("x is undefined");
});

test("a call of a tool that selectToolsByModel did not select is not run", async () => {
  const { ask, log } = createOffice([call("pick_tools", { names: ["ask"] })], [call("buy", {}), say("ok")]);
  const { state } = await ask("go");
  expect(log).toEqual([]);
  expect(state.messages[2]).toMatchObject({ role: "tool", isError: true });
});

test("selectToolsByModel makes no model call when the number of tools is within max", async () => {
  const { ask, shown, picker } = createOffice([], [say("ok")], { max: 4 });
  await ask("go");
  expect([shown(), picker.requests.length]).toEqual([["ask buy call dig"], 0]);
});

test("selectToolsByModel refuses invalid options", () => {
  const model = scriptedModel([]);
  for (const options of [
    {},
    { model: 7 },
    { model, max: 0 },
    { model, always: "x" },
    { model, instructions: 1 },
    { model, min: 1 },
  ])
    expect(() => selectToolsByModel(options as never), JSON.stringify(Object.keys(options))).toThrow(/invalid_option/);
});
