import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, ToolError } from "statewright";
import { yoagentDialect } from "statewright/adapter";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";
import { talk, textOfResult } from "../../support/talk.ts";

const input = z.object({});
const description = "A tool of this test.";

test("the yoagent migration program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-yoagent-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const program = new URL("yoagent.ts", import.meta.url);
  const printed = await runProgram(program, { cwd: folder, env: { LIBRARY_KEY: "k-123" } });
  expect(printed).toBe(printedOn("reference/coming-from-yoagent.md"));
});

test("the four yoagent errors each have a factory and an error kind", async () => {
  const errors = [
    ToolError.failed("it broke"),
    ToolError.notFound("nothing there"),
    ToolError.invalidArgs("too long"),
    ToolError.cancelled(),
  ];
  const fails = defineTool({
    name: "fails",
    description,
    input: z.object({ nth: z.int() }),
    run: ({ nth }) => {
      throw errors[nth];
    },
  });
  const calls = errors.map((_error, nth) => call("fails", { nth }));
  const { results, wires, status } = await talk([fails], [calls]);
  expect(results.map(({ error }) => error?.kind)).toEqual(["failed", "not_found", "invalid_args", "cancelled"]);
  expect(results.map(textOfResult)).toEqual(["it broke", "nothing there", "too long", "Cancelled"]);
  expect(wires).toHaveLength(2);
  expect(status).toBe("done");
});

test("a call refused before its start has no tool.started event, and has the start event of yoagent's dialect", async () => {
  const tool = defineTool({ name: "there", description, input, run: () => "done" });
  const { events } = await talk([tool], [call("missing", {})]);
  const ofCall = events.filter(({ type }) => type.startsWith("tool."));
  expect(ofCall.map(({ type }) => type)).toEqual(["tool.rejected", "tool.failed"]);
  const moments = events.flatMap(yoagentDialect());
  expect(moments.map(({ type }) => type).filter((type) => type.startsWith("ToolExecution"))).toEqual([
    "ToolExecutionStart",
    "ToolExecutionEnd",
  ]);
});

test("a skipped call states that a queued user message comes first", async () => {
  const waits = defineTool({
    name: "waits",
    description,
    input,
    run: async (_args, { progress, steered, wait }) => {
      progress("waiting");
      while (!steered.aborted) await wait(1);
      return "done";
    },
  });
  const { results } = await talk(
    [waits],
    [[call("waits", {}), call("waits", {})]],
    { strategy: "sequential" },
    (run, event) => {
      if (event.type === "tool.progress") void run.steer([{ role: "system", id: "s1", content: "Closing time" }]);
    },
  );
  expect(results.map(({ isError }) => isError)).toEqual([false, true]);
  expect(results[1]?.error?.kind).toBe("skipped");
  expect(textOfResult(results[1])).toMatch(/^Skipped: a note of the system /);
});

test("a schema default is applied, is not required, and does not accept a wrong type", async () => {
  const deploy = defineTool({
    name: "deploy",
    description,
    input: z.object({ env: z.string().default("staging") }),
    run: ({ env }) => env,
  });
  const { results, wires } = await talk([deploy], [[call("deploy", {}), call("deploy", { env: 7 })]]);
  expect(wires[0]?.tools[0]?.inputSchema["required"] ?? []).toEqual([]);
  expect(results.map(textOfResult).toSorted()[1]).toBe("staging");
  expect(results.find(({ isError }) => isError)?.error?.kind).toBe("invalid_args");
});

test("duplicate tool names and a key option are refused at agent creation", () => {
  const tool = defineTool({ name: "twice", description, input, run: () => "done" });
  const model = scriptedModel([say("Done.")]);
  expect(() => createAgent({ name: "talker", model, tools: [tool, tool] })).toThrow(/twice/);
  const withKey = { name: "talker", model, tools: [tool], apiKey: "k-123" };
  expect(() => createAgent(withKey)).toThrow(/apiKey/);
});

test("a tool without declarations is once and unclassified", () => {
  const { spec } = defineTool({ name: "plain", description, input, run: () => "done" });
  expect([spec.effect, spec.safety.access, spec.label]).toEqual(["once", "unclassified", "Plain"]);
});
