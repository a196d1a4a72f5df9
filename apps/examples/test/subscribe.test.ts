/** Events of an agent in the event format of pi, and the output of the example that subscribes to them. */
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, ToolError } from "statewright";
import { type PiEvent, piDialect } from "statewright/adapter";
import { expect, test } from "vitest";
import * as z from "zod";
import { createPiReader } from "../src/readers.ts";

const count = defineTool({
  name: "count_pages",
  description: "Counts the pages of a book, chapter by chapter.",
  input: z.object({ book: z.string().describe("Its title") }),
  effect: "pure",
  run: ({ book }, { update }) => {
    if (book !== "Emma") throw ToolError.notFound(`There is no book ${book}.`);
    update?.({ content: [{ type: "text", text: "12 pages so far" }], details: { pages: 12 } });
    return { content: [{ type: "text", text: "Emma has 30 pages." }], details: { pages: 30 } };
  },
});

test("a subscriber receives start, update and end of each call, and nothing after it unsubscribes [S4.26, S4.27, S4.28]", async () => {
  const model = scriptedModel([
    call(count, { book: "Emma" }, { id: "c1" }),
    call(count, { book: "Ulysses" }, { id: "c2" }),
    say("30 pages."),
    call(count, { book: "Emma" }, { id: "c3" }),
    say("30 pages."),
  ]);
  const agent = createAgent({ name: "librarian", model, tools: [count] });
  const observed: PiEvent[] = [];
  let printed = "";
  const translate = piDialect();
  const print = createPiReader((text) => {
    printed += text;
  });
  let calls = 0;
  const unsubscribe = agent.subscribe((event) => {
    calls += 1;
    observed.push(...translate(event));
    print(event);
  });
  await agent.run({ input: "How long are they?" }).result;
  const ofTools = observed.filter(({ type }) => type.startsWith("tool_execution"));
  const error = { isError: true, content: [{ type: "text", text: "There is no book Ulysses." }] };
  expect(ofTools).toMatchObject([
    { type: "tool_execution_start", toolCallId: "c1", toolName: "count_pages", args: { book: "Emma" } },
    {
      type: "tool_execution_update",
      toolCallId: "c1",
      toolName: "count_pages",
      partialResult: { content: [{ type: "text", text: "12 pages so far" }], details: { pages: 12 } },
    },
    {
      type: "tool_execution_end",
      toolCallId: "c1",
      toolName: "count_pages",
      isError: false,
      result: { content: [{ type: "text", text: "Emma has 30 pages." }], details: { pages: 30 } },
    },
    { type: "tool_execution_start", toolCallId: "c2", toolName: "count_pages", args: { book: "Ulysses" } },
    { type: "tool_execution_end", toolCallId: "c2", toolName: "count_pages", isError: true, result: error },
  ]);
  expect(ofTools).toHaveLength(5);
  expect(printed.split("\n").map((line) => line.replace(/:.*/, ":"))).toEqual([
    "Starting count_pages with args:",
    "Update from count_pages:",
    "Tool count_pages completed:",
    "Starting count_pages with args:",
    "Tool count_pages failed:",
    "",
  ]);
  expect(printed).toContain('Starting count_pages with args: {"book":"Emma"}\n');
  unsubscribe();
  calls = 0;
  await agent.run({ input: "And again?" }).result;
  expect(calls).toBe(0);
});
