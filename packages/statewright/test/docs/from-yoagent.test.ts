import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, ToolError, yoagentDialect } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../support/page.ts";
import { runProgram } from "../support/run-program.ts";
import { talk, textOfResult } from "../support/talk.ts";

const input = z.object({});
const description = "A tool of this test.";

test("the program for those who come from yoagent prints what its page says", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-yoagent-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const program = new URL("from-yoagent.ts", import.meta.url);
  const printed = await runProgram(program, { cwd: folder, env: { LIBRARY_KEY: "k-123" } });
  expect(printed).toBe(printedOn("coming-from-yoagent.md"));
});

test("the four errors of yoagent have a maker each, and a kind that programs read", async () => {
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

test("a call that is refused before it starts has no start event of ours, and one of yoagent's", async () => {
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

test("a skipped call says who has spoken", async () => {
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

test("a default is filled in, is not required, and is no cover for a wrong type", async () => {
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

test("two tools of one name, and a key on the agent, are refused where the agent is made", () => {
  const tool = defineTool({ name: "twice", description, input, run: () => "done" });
  const model = scriptedModel([say("Done.")]);
  expect(() => createAgent({ name: "talker", model, tools: [tool, tool] })).toThrow(/twice/);
  const withKey = { name: "talker", model, tools: [tool], apiKey: "k-123" };
  expect(() => createAgent(withKey)).toThrow(/apiKey/);
});

test("a tool that says nothing of itself is once and unclassified", () => {
  const { spec } = defineTool({ name: "plain", description, input, run: () => "done" });
  expect([spec.effect, spec.safety.access, spec.label]).toEqual(["once", "unclassified", "Plain"]);
});
