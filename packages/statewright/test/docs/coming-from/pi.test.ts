import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, toolRegistry } from "statewright";
import { fromPiTool, type PiTool } from "statewright/adapter";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";
import { talk, textOfResult } from "../../support/talk.ts";

const description = "A tool of this test.";

/** Creates a pi tool with this `execute`. */
function object(name: string, execute: PiTool["execute"], more: Partial<PiTool> = {}): PiTool {
  const parameters = { type: "object", properties: { count: { type: "number", description: "How many" } } };
  return { name, label: name, description, parameters, execute, ...more };
}

test("the pi migration program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-pi-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const printed = await runProgram(new URL("pi.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("coming-from-pi.md"));
});

test("a sequential pi tool runs alone, and the other calls of its message run in parallel", async () => {
  const atWork = new Set<string>();
  const seen: string[] = [];
  const execute: PiTool["execute"] = async (id) => {
    atWork.add(id);
    await new Promise((resolve) => setImmediate(resolve));
    seen.push([...atWork].toSorted().join("+"));
    atWork.delete(id);
    return { content: [{ type: "text", text: "done" }] };
  };
  const tools = [
    fromPiTool(object("waits", execute)),
    fromPiTool(object("alone", execute, { executionMode: "sequential" })),
  ];
  const calls = [call("waits", {}, { id: "a" }), call("waits", {}, { id: "b" }), call("alone", {}, { id: "c" })];
  await talk(tools, [calls]);
  expect(seen).toEqual(["a+b", "b", "c"]);
});

test("pi tool arguments are validated strictly, and a tool may repair them", async () => {
  const execute = async (_id: string, { count }: Readonly<Record<string, unknown>>) => ({
    content: [{ type: "text" as const, text: `${typeof count}` }],
  });
  const strict = await talk([fromPiTool(object("counts", execute))], [call("counts", { count: "5" })]);
  expect(strict.results[0]?.error?.kind).toBe("invalid_args");
  const prepareArguments = (args: unknown) => ({ count: Number(Object(args).count) });
  const repairingTool = fromPiTool(object("counts", execute, { prepareArguments }));
  const { results, events } = await talk([repairingTool], [call("counts", { count: "5" })]);
  expect(results.map(textOfResult)).toEqual(["number"]);
  expect(events.find(({ type }) => type === "tool.args_rewritten")).toMatchObject({
    raw: { count: "5" },
    args: { count: 5 },
  });
});

test("pi tools default to once and unclassified, are renamed to snake_case, and colliding names are refused", async () => {
  const execute = async () => ({ content: [{ type: "text" as const, text: "done" }] });
  const { spec } = fromPiTool(object("listTracks", execute));
  expect([spec.name, spec.originalName, spec.effect, spec.safety.access]).toEqual([
    "list_tracks",
    "listTracks",
    "once",
    "unclassified",
  ]);
  const twins = [fromPiTool(object("listTracks", execute)), fromPiTool(object("list_tracks", execute))];
  expect(() => toolRegistry(twins)).toThrow(/list_tracks/);
  const { wires } = await talk(twins.slice(0, 1), [call("list_tracks", {})]);
  expect(wires[0]?.tools.map(({ name }) => name)).toEqual(["list_tracks"]);
});

test("replaced tools of a registry apply from the next request", async () => {
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

test("a cancelled run answers every call in call order", async () => {
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
