/** An agent whose model never stops ends by its turn limit, and its thread continues with the next input. */
import {
  defineMiddleware,
  defineTool,
  getMessageText,
  isStatewrightError,
  type Message,
  type Middleware,
  memoryStore,
} from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { agentTool, createAgent, modelNode, turnCountIs } from "../../src/index.ts";
import { budget } from "../../src/middleware.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  input: z.object({}),
  effect: "pure",
  run: () => "nothing",
});
const listTurns = (messages: readonly Message[]): number =>
  messages.filter((message) => message.role === "assistant" && message.ended === undefined).length;
const createEndlessAgent = (more: object = {}) =>
  createAgent({ name: "a", model: scriptedModel(() => call("look", {})), tools: [look], ...more });

/** Calls a tool `calls` times after each user message, then answers. */
const callThenAnswer = (calls: number) => (request: { readonly messages: readonly Message[] }) => {
  const spoken = request.messages.findLastIndex(({ role }) => role === "user");
  return (request.messages.length - spoken - 1) / 2 < calls ? call("look", {}) : say("found");
};

describe("default turn limit", () => {
  test("an agent without a turn limit ends by maxTurns after 50 turns, with a text about the next step and all messages kept", async () => {
    const end = await createEndlessAgent().run({ input: "Go" }).result;
    expect(end).toMatchObject({
      status: "done",
      text: "I stop here: the limit of 50 turns is reached. Tell me how to continue.",
      ended: {
        by: "maxTurns",
        reason: "the default limit of 50 turns is reached; set maxTurns of the agent to change it",
      },
    });
    expect(listTurns(end.state.messages)).toBe(50);
    expect(end.state.messages).toHaveLength(102);
  });

  test("the default limit of 50 turns restarts with each input of a thread", async () => {
    const store = memoryStore();
    const agent = createAgent({ name: "a", model: scriptedModel(callThenAnswer(20)), tools: [look], store });
    for (const input of ["one", "two", "three"])
      expect(await agent.run({ thread: "t", input }).result).toMatchObject({ text: "found", ended: { by: "answer" } });
  });

  test.each([
    ["an own limit", { maxTurns: 60 }],
    ["none", { maxTurns: Number.POSITIVE_INFINITY }],
    ["a turn budget", { middleware: [budget({ turns: 60 })] }],
    ["a stopWhen condition that counts turns", { stopWhen: [turnCountIs(60)] }],
  ])("an agent with %s is not stopped by the default turn limit", async (_, more) => {
    const agent = createAgent({ name: "a", model: scriptedModel(callThenAnswer(51)), tools: [look], ...more });
    const end = await agent.run({ input: "Go" }).result;
    expect([end.text, listTurns(end.state.messages)]).toEqual(["found", 52]);
  });
});

describe("the turn limit", () => {
  test("the turn limit restarts with the next input of a thread, and the model sees the full conversation", async () => {
    const store = memoryStore();
    const agent = createAgent({
      name: "a",
      model: scriptedModel(({ messages }) => (messages.length > 8 ? say("found") : call("look", {}))),
      tools: [look],
      maxTurns: 3,
      store,
    });
    const first = await agent.run({ thread: "t", input: "Go" }).result;
    expect(first.ended).toEqual({ by: "maxTurns", reason: "the limit of 3 turns is reached" });
    expect((await agent.resume({ thread: "t" }).result).ended).toEqual(first.ended);
    const second = await agent.run({ thread: "t", input: "Go on." }).result;
    expect([second.text, second.state.messages.slice(0, 8)]).toEqual(["found", first.state.messages]);
  });

  test("the turn limit counts from the latest user message, and a message that arrives at the limit is answered", async () => {
    const store = memoryStore();
    const model = scriptedModel(({ messages }) => {
      const last = messages.findLast(({ role }) => role === "user");
      return last !== undefined && getMessageText(last) === "Enough?" ? say("Enough.") : call("look", {});
    });
    const agent = createAgent({ name: "a", model, tools: [look], maxTurns: 2, store });
    const handle = agent.run({ thread: "t", input: "Go" });
    await handle.followUp("Enough?");
    expect(await handle.result).toMatchObject({ text: "Enough.", ended: { by: "answer" } });
    expect(model.requests).toHaveLength(3);
  });

  test("the turn limit keeps its count across a failed run, and its end is reported once", async () => {
    const store = memoryStore();
    let fails = true;
    const model = scriptedModel(({ messages }) => {
      if (messages.length === 5 && fails) throw new Error("the line is dead");
      return call("look", {});
    });
    const agent = createAgent({ name: "a", model, tools: [look], maxTurns: 4, retry: { attempts: 1 }, store });
    await expect(agent.run({ thread: "t", input: "Go" }).result).rejects.toThrow("the line is dead");
    fails = false;
    const resumed = agent.resume({ thread: "t" });
    const observed: unknown[] = [];
    resumed.on((event) => {
      if (event.type === "message.completed" && event.message.ended !== undefined)
        observed.push(event.message.ended.by);
    });
    const { state, ended } = await resumed.result;
    expect([ended?.by, listTurns(state.messages), observed]).toEqual(["maxTurns", 4, ["maxTurns"]]);
  });

  test("a sub-agent that reaches its turn limit returns an error", async () => {
    const inner = createEndlessAgent({ name: "inner", maxTurns: 2 });
    const outer = createAgent({
      name: "outer",
      model: scriptedModel([call("inner", { task: "x" }), say("It came to nothing.")]),
      tools: [agentTool(inner, { description: "Looks." })],
    });
    const { state } = await outer.run({ input: "Go" }).result;
    const answer = state.messages.find(({ role }) => role === "tool");
    expect(answer).toMatchObject({ isError: true });
    expect(answer && getMessageText(answer)).toContain(
      "stopped before it had an answer: the limit of 2 turns is reached.",
    );
  });

  test("modelNode accepts maxTurns, and invalid values of maxTurns are refused", () => {
    expect(() => modelNode({ model: scriptedModel([]), maxTurns: 0 })).toThrow(
      "modelNode: `maxTurns` must be an integer ≥ 1 or Infinity, got 0",
    );
    expect(() => createEndlessAgent({ maxTurns: 1.5 })).toThrow(
      'agent "a": `maxTurns` must be an integer ≥ 1 or Infinity, got 1.5. Use an integer ≥ 1, or Infinity for no limit',
    );
  });
});

describe("afterAgent loops", () => {
  const createContinuingMiddleware = (log: string[] = []): Middleware =>
    defineMiddleware({
      name: "insists",
      afterAgent: ({ ended }, { run }) => {
        log.push(ended.by);
        return { messages: [{ role: "user", id: `more:${run.task}`, content: [{ type: "text", text: "More." }] }] };
      },
    });

  test("an afterAgent hook that always continues is stopped by the turn limit, and that end is final", async () => {
    const log: string[] = [];
    const model = scriptedModel(() => say("done"));
    const { ended } = await createAgent({
      name: "a",
      model,
      middleware: [createContinuingMiddleware(log)],
      maxTurns: 3,
    }).run({
      input: "Go",
    }).result;
    expect([ended?.by, model.requests.length, log]).toEqual([
      "maxTurns",
      3,
      ["answer", "answer", "answer", "maxTurns"],
    ]);
  });

  test.each([
    ["a hook", defineMiddleware({ name: "guard", beforeModel: (_, { end }) => end("No.", { by: "guardrail" }) })],
    ["a budget", budget({ turns: 1 })],
  ])(
    "an afterAgent hook cannot undo the end by %s: its messages are ignored, and the log names the hook",
    async (_, ending) => {
      const warnings: unknown[] = [];
      const log: string[] = [];
      const agent = createAgent({
        name: "a",
        model: scriptedModel(() => say("done")),
        middleware: [createContinuingMiddleware(log), ending],
      });
      const { state, ended } = await agent.run({
        input: "Go",
        world: systemWorld({ log: (_level, message) => void warnings.push(message) }),
      }).result;
      expect(ended?.by).toBe(ending.name === "guard" ? "guardrail" : "budget");
      expect(state.messages.at(-1)).toMatchObject({ role: "assistant", ended });
      expect(log.at(-1)).toBe(ended?.by);
      expect(warnings).toEqual([
        `afterAgent of middleware "insists" returned messages, but the end by "${ended?.by}" is final: the messages were ignored`,
      ]);
    },
  );

  test("afterAgent may write channels and the last message at a final end, and fails by name when it appends messages", async () => {
    const at = (write: Middleware["afterAgent"]): Promise<unknown> =>
      createAgent({
        name: "a",
        model: scriptedModel([]),
        middleware: [
          defineMiddleware({ name: "writes", ...(write && { afterAgent: write }) }),
          defineMiddleware({ name: "guard", beforeAgent: ({ end }) => end("No.", { by: "guard" }) }),
        ],
      })
        .run({ input: "Go" })
        .result.then(
          ({ text }) => text,
          (error: unknown) => isStatewrightError(error, "invalid_update") && error.message,
        );
    const changed: Middleware["afterAgent"] = ({ messages }, { write }) =>
      write({ messages: messages.slice(-1).map((last) => ({ ...last, content: [{ type: "text", text: "Never." }] })) });
    expect(await at(changed)).toBe("Never.");
    const writeWithoutAwait: Middleware["afterAgent"] = (_, { write }) =>
      write({ messages: [{ role: "user", id: "x", content: [{ type: "text", text: "But" }] }] });
    expect(await at(writeWithoutAwait)).toContain(
      'the middleware "writes" wrote messages after the agent was ended by "guard", which is final',
    );
    // The refused messages are not written, even when the hook catches the error.
    const ignoreRefusedWrite: Middleware["afterAgent"] = (at_, runtime) => {
      try {
        void writeWithoutAwait(at_, runtime);
      } catch {
        return undefined;
      }
    };
    expect(await at(ignoreRefusedWrite)).toBe("No.");
  });
});
