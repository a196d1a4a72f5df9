import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import { type AgentTool, createAgent, defineTool, fromAgentTool, toolRegistry } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../support/page.ts";
import { runProgram } from "../support/run-program.ts";
import { talk, textOfResult } from "../support/talk.ts";

const description = "A tool of this test.";

/** An object of pi that does what `execute` does. */
function object(name: string, execute: AgentTool["execute"], more: Partial<AgentTool> = {}): AgentTool {
  const parameters = { type: "object", properties: { count: { type: "number", description: "How many" } } };
  return { name, label: name, description, parameters, execute, ...more };
}

test("the program for those who come from pi prints what its page says", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-pi-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("from-pi.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("coming-from-pi.md"));
});

test("an object of pi that is sequential runs alone, and the others of its message overlap", async () => {
  const atWork = new Set<string>();
  const seen: string[] = [];
  const execute: AgentTool["execute"] = async (id) => {
    atWork.add(id);
    await new Promise((resolve) => setImmediate(resolve));
    seen.push([...atWork].toSorted().join("+"));
    atWork.delete(id);
    return { content: [{ type: "text", text: "done" }] };
  };
  const tools = [
    fromAgentTool(object("waits", execute)),
    fromAgentTool(object("alone", execute, { executionMode: "sequential" })),
  ];
  const calls = [call("waits", {}, { id: "a" }), call("waits", {}, { id: "b" }), call("alone", {}, { id: "c" })];
  await talk(tools, [calls]);
  expect(seen).toEqual(["a+b", "b", "c"]);
});

test("arguments are taken strictly, and a tool may mend them", async () => {
  const execute = async (_id: string, { count }: Readonly<Record<string, unknown>>) => ({
    content: [{ type: "text" as const, text: `${typeof count}` }],
  });
  const strict = await talk([fromAgentTool(object("counts", execute))], [call("counts", { count: "5" })]);
  expect(strict.results[0]?.error?.kind).toBe("invalid_args");
  const prepareArguments = (args: unknown) => ({ count: Number(Object(args).count) });
  const mended = fromAgentTool(object("counts", execute, { prepareArguments }));
  const { results, events } = await talk([mended], [call("counts", { count: "5" })]);
  expect(results.map(textOfResult)).toEqual(["number"]);
  expect(events.find(({ type }) => type === "tool.args_rewritten")).toMatchObject({
    raw: { count: "5" },
    args: { count: 5 },
  });
});

test("what pi's objects do not say is once and unclassified, their names are snake_case, and two that become one are refused", async () => {
  const execute = async () => ({ content: [{ type: "text" as const, text: "done" }] });
  const { spec } = fromAgentTool(object("listTracks", execute));
  expect([spec.name, spec.originalName, spec.effect, spec.safety.access]).toEqual([
    "list_tracks",
    "listTracks",
    "once",
    "unclassified",
  ]);
  const twins = [fromAgentTool(object("listTracks", execute)), fromAgentTool(object("list_tracks", execute))];
  expect(() => toolRegistry(twins)).toThrow(/list_tracks/);
  const { wires } = await talk(twins.slice(0, 1), [call("list_tracks", {})]);
  expect(wires[0]?.tools.map(({ name }) => name)).toEqual(["list_tracks"]);
});

test("tools that are put in the place of others count from the next request on", async () => {
  const tools = toolRegistry();
  const input = z.object({});
  const second = defineTool({ name: "second", description, input, run: () => "ok" });
  const replace = () => {
    tools.replaceAll([second]);
    return "ok";
  };
  tools.register(defineTool({ name: "first", description, input, run: replace }));
  const model = scriptedModel([call("first", {}), call("second", {}), say("Done.")]);
  await createAgent({ name: "talker", model, tools }).run({ input: "Go." }).result;
  expect(model.requests.map((request) => request.tools.map(({ name }) => name))).toEqual([
    ["first"],
    ["second"],
    ["second"],
  ]);
});

test("a run that is cancelled answers every call, in call order", async () => {
  const waits = defineTool({
    name: "waits",
    description,
    input: z.object({}),
    run: async (_args, { progress, wait }) => {
      progress("waiting");
      await wait(60_000);
      return "done";
    },
  });
  const calls = [call("waits", {}, { id: "c1" }), call("waits", {}, { id: "c2" }), call("waits", {}, { id: "c3" })];
  const { results, status } = await talk([waits], [calls], { strategy: "sequential" }, (run, event) => {
    if (event.type === "tool.progress") void run.cancel("enough");
  });
  expect(status).toBe("cancelled");
  expect(results.map(({ callId, error }) => [callId, error?.kind])).toEqual([
    ["c1", "cancelled"],
    ["c2", "cancelled"],
    ["c3", "cancelled"],
  ]);
});
