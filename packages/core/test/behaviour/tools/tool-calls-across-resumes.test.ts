import { expect, test } from "vitest";
import * as z from "zod";
import { decide, defineMiddleware, defineTool, memoryStore } from "../../../src/index.ts";
import { call, createToolLoop, getAnswerText, listToolAnswers } from "../../support/tool-loop.ts";

const ask = defineMiddleware({
  name: "ask",
  beforeTool: ({ call }) => (call.name === "pay" ? decide.interrupt(call, "sure?") : undefined),
});

test("tool calls completed before the run waited are read from the journal after it: their bodies and hooks run once [T57]", async () => {
  const ran: string[] = [];
  const tool = (name: string) =>
    defineTool({
      name,
      description: "Notes that it ran.",
      input: z.object({}),
      effect: "pure",
      run: () => void ran.push(name),
    });
  const store = memoryStore();
  const turns = [[call("look"), call("pay"), call("write")], ["done"]];
  const loop = createToolLoop({ tools: [tool("look"), tool("pay"), tool("write")], middleware: [ask], store, turns });
  expect((await loop.start().result).status).toBe("waiting");
  expect(ran).toEqual(["look", "write"]);
  const end = await loop.again({ approve: true }).result;
  expect([end.status, ran, listToolAnswers(end).length]).toEqual(["done", ["look", "write", "pay"], 3]);
});

test("event numbers continue after a resume, so a client keeps its position [T58]", async () => {
  const store = memoryStore();
  const tool = defineTool({ name: "pay", description: "Pays.", input: z.object({}), run: () => "paid" });
  const first = createToolLoop({ tools: [tool], middleware: [ask], store, turns: [[call("pay")], ["done"]] });
  await first.start().result;
  const before = first.events.map(({ seq }) => seq);
  const second = createToolLoop({ tools: [tool], middleware: [ask], store, turns: [[], ["done"]] });
  const end = await second.again({ approve: true }).result;
  expect(listToolAnswers(end).map(getAnswerText)).toEqual(["paid"]);
  const after = second.events.map(({ seq }) => seq);
  const highest = Math.max(...before);
  expect(highest).toBeGreaterThan(1);
  expect(Math.min(...after)).toBeGreaterThan(highest);
  expect(after).toEqual([...after].sort((one, other) => one - other));
});

test("hidden arguments are passed in a separate object and appear in no model message and no identity of the tool call [R14]", async () => {
  const seen: unknown[] = [];
  const identities: string[] = [];
  const tool = defineTool({
    name: "pay",
    description: "Pays.",
    input: z.object({ cents: z.int() }),
    inject: { customer: { kind: "custom", resolve: () => "SENTINEL" } },
    run: (args, { injected, ...rest }) => {
      seen.push(args, { ...injected });
      identities.push(JSON.stringify(rest));
      return "paid";
    },
  });
  const loop = createToolLoop({ tools: [tool], turns: [[call("pay", { cents: 5 })], ["ok"]] });
  expect((await loop.start().result).status).toBe("done");
  expect(seen).toEqual([{ cents: 5 }, { customer: "SENTINEL" }]);
  expect(identities).toEqual([expect.not.stringContaining("SENTINEL")]);
  expect(loop.wires.join() + loop.saved() + JSON.stringify(loop.events)).not.toContain("SENTINEL");
});
