import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, toolRegistry } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { printedOn } from "../../support/page.ts";
import { runProgram } from "../../support/run-program.ts";
import { talk, textOfResult } from "../../support/talk.ts";

const input = z.object({});
const description = "A tool of this test.";

test("the phi-core migration program prints the output on its page", async () => {
  const folder = await mkdtemp(join(tmpdir(), "from-phi-core-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "money.txt"), "3\n4\n5\n");
  const printed = await runProgram(new URL("phi-core.ts", import.meta.url), { cwd: folder });
  expect(printed).toBe(printedOn("reference/coming-from-phi-core.md"));
});

test.each([0, -1, 1.5, Number.NaN])("a batch size of %s is refused at agent creation", (batch) => {
  const tools = [defineTool({ name: "tool", description, input, run: () => "done" })];
  const model = scriptedModel([say("Done.")]);
  expect(() => createAgent({ name: "talker", model, tools, strategy: { batch } })).toThrow(/batch/);
});

test("calls of one message run in parallel by default", async () => {
  let atWork = 0;
  let most = 0;
  const waits = defineTool({
    name: "waits",
    description,
    input,
    run: async (_args, { wait }) => {
      most = Math.max(most, ++atWork);
      await wait(1);
      atWork -= 1;
      return "done";
    },
  });
  const calls = [call("waits", {}), call("waits", {}), call("waits", {})];
  await talk([waits], [calls]);
  expect(most).toBe(3);
  most = 0;
  await talk([waits], [calls], { strategy: "sequential" });
  expect(most).toBe(1);
});

test("a registry refuses an unknown tool name with the known names", () => {
  const registry = toolRegistry([defineTool({ name: "there", description, input, run: () => "done" })]);
  expect(() => registry.forModel(["missing"])).toThrow(/missing[\s\S]*there/);
});

test("a registry refuses a second tool of one name and replaces tools by a separate method", () => {
  const tool = defineTool({ name: "there", description, input, run: () => "done" });
  const registry = toolRegistry([tool]);
  expect(() => registry.register(tool)).toThrow(/there/);
  const other = defineTool({ name: "there", description: "Another tool.", input, run: () => "done" });
  expect(registry.replace(other).get("there")?.spec.description).toBe("Another tool.");
});

test("a tool runtime prints as ids", async () => {
  let printed = "";
  const prints = defineTool({
    name: "prints",
    description,
    input,
    run: (_args, runtime) => {
      printed = inspect({ ...runtime });
      return "done";
    },
  });
  await talk([prints], [call("prints", {}, { id: "c1" })]);
  expect(printed).toContain("c1");
  expect(printed).toContain("[function]");
});

test("a tool that throws answers its call with the error and leaves other calls of the message unaffected", async () => {
  const fails = defineTool({
    name: "fails",
    description,
    input: z.object({ nth: z.int() }),
    run: ({ nth }) => {
      if (nth === 1) throw new Error("it broke");
      return `number ${nth}`;
    },
  });
  const calls = [0, 1, 2].map((nth) => call("fails", { nth }));
  const { results, wires } = await talk([fails], [calls]);
  expect(results.map(textOfResult).toSorted()).toEqual(["it broke", "number 0", "number 2"]);
  expect(wires).toHaveLength(2);
});
