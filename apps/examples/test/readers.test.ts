import { call, failWith } from "@statewright/testing";
import { decide, defineMiddleware, defineTool } from "statewright";
import { bitopDialect, piDialect, yoagentDialect } from "statewright/adapter";
import { expect, test } from "vitest";
import * as z from "zod";
import { analyse } from "../src/analysis.ts";
import { calculator } from "../src/calculator.ts";
import { createPiReader, createYoagentReader } from "../src/readers.ts";
import { processRows } from "../src/rows.ts";
import { runConversation } from "./support/talk.ts";

const shows = defineTool({
  name: "show",
  description: "Shows a picture as its partial result.",
  input: z.object({}),
  run: (_args, { update }) => {
    update?.({ content: [{ type: "image", mimeType: "image/png", data: "AA==" }] });
    return "shown";
  },
});

test("the event reader prints started, partial text, progress and the end of a call [S0.63, S2.69]", async () => {
  const { events } = await runConversation(
    [analyse, calculator, processRows, shows],
    [
      [call(processRows, { total: 101 })],
      [call(analyse, {})],
      [call(calculator, { expression: "1+" })],
      [call(shows, {})],
    ],
  );
  let printed = "";
  const read = createYoagentReader((text) => {
    printed += text;
  });
  for (const event of events) read(event);
  expect(printed.split("\n")).toEqual([
    "⏳ process_rows started",
    "  📊 process_rows: Processed 0/101 rows",
    "  📊 process_rows: Processed 100/101 rows",
    "✅ process_rows",
    "⏳ analyse started",
    "  💬 analyse: Starting analysis...",
    "  💬 analyse: Almost done...",
    "✅ analyse",
    "⏳ calculator started",
    "❌ calculator",
    "⏳ show started",
    "✅ show",
    "",
  ]);
});

test("every dialect starts and ends each call once, also a refused one, and the agent end is last [D15, D16, D23]", async () => {
  const { events } = await runConversation(
    [calculator],
    [
      [
        call(calculator, { expression: "1+2" }, { id: "good" }),
        call("unknown_tool", {}, { id: "unknown" }),
        call("calculator", { expression: 7 }, { id: "invalid" }),
      ],
    ],
  );
  const dialects = {
    yoagent: {
      translate: yoagentDialect(),
      names: ["AgentStart", "TurnStart", "ToolExecutionStart", "ToolExecutionEnd", "TurnEnd", "AgentEnd"],
    },
    pi: {
      translate: piDialect(),
      names: ["agent_start", "turn_start", "tool_execution_start", "tool_execution_end", "turn_end", "agent_end"],
    },
    bitop: {
      translate: bitopDialect(),
      names: ["agent_start", "turn_start", "tool_start", "tool_end", "turn_end", "agent_end"],
    },
  } as const;
  for (const { translate, names } of Object.values(dialects)) {
    const observed = events.flatMap((event) => [...translate(event)] as readonly { readonly type: string }[]);
    const count = (name: string) => observed.filter(({ type }) => type === name).length;
    expect(names.map(count)).toEqual([1, 2, 3, 3, 2, 1]);
    expect(observed[0]?.type).toBe(names[0]);
    expect(observed.at(-1)?.type).toBe(names[5]);
  }
});

test("a denied call has a separate end event in a dialect that supports denials [D15]", async () => {
  const no = defineMiddleware({ name: "no", beforeTool: () => decide.deny("not today") });
  const { createAgent } = await import("statewright");
  const { startConversationWith } = await import("./support/talk.ts");
  const live = startConversationWith([call(calculator, { expression: "1+2" })], (model, world) =>
    createAgent({ name: "denier", model, tools: [calculator], middleware: [no] }).run({ input: "Go.", world }),
  );
  await live.end();
  const translate = bitopDialect();
  const observed = live.events.flatMap((event) => translate(event).map(({ type }) => type));
  expect(observed).toContain("tool_denied");
  expect(observed).not.toContain("tool_end");
});

test("a failed run ends its agent in a dialect with the reason [D16]", async () => {
  const fails = failWith(new Error("no such model"));
  const { events } = await runConversation([calculator], [fails, fails, fails]);
  const translate = piDialect();
  const observed = events.flatMap((event) => [...translate(event)]);
  expect(observed.at(-1)).toMatchObject({
    type: "agent_end",
    status: "failed",
    error: expect.stringContaining("no such model"),
  });
});

test("the pi reader prints arguments, partial results and results", async () => {
  const { events } = await runConversation(
    [calculator, processRows],
    [[call(processRows, { total: 1 })], [call(calculator, { expression: "x" })]],
  );
  let printed = "";
  const read = createPiReader((text) => {
    printed += text;
  });
  for (const event of events) read(event);
  expect(printed.split("\n")).toEqual([
    'Starting process_rows with args: {"total":1}',
    'Update from process_rows: [{"type":"text","text":"Processed 0/1 rows"}]',
    'Tool process_rows completed: [{"type":"text","text":"Processed all 1 rows"}]',
    'Starting calculator with args: {"expression":"x"}',
    'Tool calculator failed: [{"type":"text","text":"Invalid expression: x"}]',
    "",
  ]);
});
