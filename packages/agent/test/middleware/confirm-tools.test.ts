import { createAgent } from "@statewright/agent";
import { confirmTools, guardUntrusted } from "@statewright/agent/middleware";
import { approval, defineGraph, defineState, END, memoryStore, resume, run, START, subgraph } from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDesk, createRecordingTool, listAnswers, listQuestions } from "../support/desk.ts";

test("a tool with confirm always pauses for approval and resumes, and one with confirm never does not pause [S1.84, S1.87]", async () => {
  const log: string[] = [];
  const tools = [
    createRecordingTool(log, "deploy", { safety: { access: "write", confirm: "always" } }),
    createRecordingTool(log, "wipe", { safety: { access: "destructive", confirm: "never" } }),
    createRecordingTool(log, "drop", { safety: { access: "destructive" } }),
    createRecordingTool(log, "pay", { safety: { access: "write", spend: true, confirm: "policy" } }),
    createRecordingTool(log, "read", { safety: { access: "read" } }),
    createRecordingTool(log, "plain"),
  ];
  const agent = createDesk({
    tools,
    middleware: [confirmTools()],
    script: [["deploy", "wipe", "drop", "pay", "read", "plain"].map((name) => call(name, {})), say("ok")],
  });
  const open = listQuestions(await agent.run().result);
  expect(open.map(({ key, payload }) => [key, (payload as { tool: string }).tool])).toEqual([
    ["approve", "deploy"],
    ["approve", "drop"],
    ["approve", "pay"],
  ]);
  expect(log).toEqual(["wipe", "read", "plain"]);
  const [deploy, drop, pay] = open.map(({ id }) => id);
  const end = await agent.resume({
    [deploy ?? ""]: true,
    [drop ?? ""]: { approved: false, reason: "keep it" },
    [pay ?? ""]: { respond: "paid in cash" },
  }).result;
  expect([end.status, log.slice(3)]).toEqual(["done", ["deploy"]]);
  expect(listAnswers(end)).toEqual([
    "deploy done",
    "wipe done",
    "!A person denied this call: keep it",
    "paid in cash",
    "read done",
    "plain done",
  ]);
});

test("a confirmTools policy decides with its reason, but does not override confirm always and never", async () => {
  const log: string[] = [];
  const tools = [
    createRecordingTool(log, "a", { safety: { access: "write", confirm: "policy" } }),
    createRecordingTool(log, "b", { safety: { access: "write", confirm: "always" } }),
    createRecordingTool(log, "c", { safety: { access: "write", confirm: "never" } }),
  ];
  const policy = confirmTools({
    policy: ({ args }) => ((args as { text: string }).text === "much" ? "it is much" : false),
  });
  const agent = createDesk({
    tools,
    middleware: [policy],
    script: [[call("a", { text: "much" }), call("a", {}), call("b", {}), call("c", { text: "much" })], say("ok")],
  });
  const open = listQuestions(await agent.run().result);
  expect(open.map(({ payload }) => (payload as { reason: string }).reason)).toEqual(["it is much", "B needs approval"]);
  expect(log).toEqual(["a", "c much"]);
});

test("the reason of a policy is shown for a tool with confirm always, which is asked about in any case [FX42]", async () => {
  const tools = [createRecordingTool([], "pay", { safety: { access: "write", confirm: "always" } })];
  const policy = confirmTools({
    policy: ({ args }) => ((args as { text?: string }).text === "much" ? "more than 100 EUR" : false),
  });
  const script = [[call("pay", { text: "much" }), call("pay", {})], say("ok")];
  const open = listQuestions(await createDesk({ tools, middleware: [policy], script }).run().result);
  expect(open.map(({ payload }) => (payload as { reason: string }).reason)).toEqual([
    "more than 100 EUR",
    "Pay needs approval",
  ]);
});

test("an approval that expires counts as a refusal", async () => {
  const log: string[] = [];
  const agent = createDesk({
    tools: [createRecordingTool(log, "drop", { safety: { access: "destructive" } })],
    middleware: [confirmTools({ expiresMs: 1_000 })],
    script: [call("drop", {}), say("ok")],
  });
  await agent.run().result;
  await agent.world.advance(1_001);
  const end = await agent.resume().result;
  expect([listAnswers(end), log]).toEqual([["!This call was denied: no answer in time"], []]);
});

test("confirmTools and guardUntrusted refuse an invalid expiresMs and an unknown onExpire", () => {
  for (const options of [{ expiresMs: -1 }, { expiresMs: Number.NaN }, { expiresMs: 1_000, onExpire: "yes" }]) {
    expect(() => confirmTools(options as never)).toThrow(
      /invalid_option: confirmTools: `(expiresMs|onExpire)` must be/,
    );
    expect(() => guardUntrusted(options as never)).toThrow(/invalid_option/);
  }
});

test("a tool call confirmed by both an agent and its outer graph interrupts once", async () => {
  const log: string[] = [];
  const clerk = createAgent({
    name: "clerk",
    model: scriptedModel([call("pay", {}), say("Paid.")]),
    tools: [createRecordingTool(log, "pay", { safety: { access: "write", confirm: "always" } })],
    middleware: [confirmTools()],
  });
  const office = defineGraph({
    name: "office",
    state: defineState({}),
    interrupts: { approve: approval },
    middleware: [confirmTools()],
  })
    .nodes({ clerk: subgraph(clerk, { input: () => clerk.toInput("Pay."), output: () => ({}) }) })
    .edges({ [START]: "clerk", clerk: END });
  const at = { store: memoryStore(), thread: "t" };
  const waits = await run(office, { ...at, input: {} }).result;
  const open = waits.status === "waiting" ? waits.interrupts : [];
  expect([open.map(({ key }) => key), log]).toEqual([["clerk.approve"], []]);
  const [asked] = open;
  const end = await resume(office, { ...at, answers: { [asked?.id as `${string}:${string}`]: true } }).result;
  expect([end.status, log]).toEqual(["done", ["pay"]]);
});
