/** Messages steered into an active agent, and its tool call strategies. */
import { defineTool, getMessageText, memoryStore, type RunHandle, type Store, steer } from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type AgentOptions, createAgent } from "../../src/index.ts";
import { confirmTools } from "../../src/middleware.ts";

type Settings = Partial<
  Pick<AgentOptions<never, unknown, unknown>, "strategy" | "steering" | "inbox" | "maxToolCalls">
>;

/** Creates an agent with three tool calls; `speak` runs during the first one. */
async function runConversation(
  settings: Settings,
  speak: (handle: RunHandle<unknown>, store: Store, ran: readonly string[]) => Promise<void>,
) {
  const store = memoryStore();
  const ran: string[] = [];
  const work = defineTool({
    name: "work",
    description: "Do one piece of work.",
    input: z.object({ name: z.string() }),
    effect: "pure",
    run: async ({ name }) => {
      ran.push(name);
      if (name === "a") await speak(handle, store, ran);
      return name;
    },
  });
  const model = scriptedModel([
    ["a", "b", "c"].map((name) => call("work", { name })),
    say("one"),
    say("two"),
    say("three"),
  ]);
  const agent = createAgent({ name: "talker", model, instructions: "Be brief.", tools: [work], store, ...settings });
  const handle = agent.run({ thread: "t", input: "go" });
  const { state } = await handle.result;
  const said = state.messages.map((message) => `${message.role}: ${getMessageText(message)}`);
  return { said, ran, model, agent };
}

describe("steered agents", () => {
  test("an agent sends its instructions and its tools, and runs its calls by its strategy setting [S2.67]", async () => {
    const started: number[] = [];
    for (const strategy of ["sequential", "parallel"] as const) {
      const { ran } = await runConversation({ strategy }, async (_handle, _store, begun) => {
        await new Promise(setImmediate);
        started.push(begun.length);
      });
      expect(ran).toEqual(["a", "b", "c"]);
    }
    expect(started).toEqual([1, 3]);
    const { model } = await runConversation({}, async () => undefined);
    expect(model.requests.map(({ instructions }) => instructions)).toEqual(["Be brief.", "Be brief."]);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["work"]);
  });

  test("a steered agent skips calls not yet started and continues with the steered message [S0.60, S2.60]", async () => {
    const { said, ran } = await runConversation({ strategy: "sequential" }, (handle) => handle.steer("stop"));
    expect(ran).toEqual(["a"]);
    expect(said.slice(2)).toEqual([
      "tool: a",
      "tool: Skipped: a message of the user is queued and comes first.",
      "tool: Skipped: a message of the user is queued and comes first.",
      "user: stop",
      "assistant: one",
    ]);
  });

  test("a steered agent with finish-batch finishes its calls and takes queued messages one by one", async () => {
    const { said } = await runConversation(
      { strategy: "sequential", steering: "finish-batch", inbox: "one" },
      async (handle) => {
        await handle.steer("first");
        await handle.steer("second");
        await handle.followUp("last");
      },
    );
    expect(said.slice(2)).toEqual([
      "tool: a",
      "tool: b",
      "tool: c",
      "user: first",
      "assistant: one",
      "user: second",
      "assistant: two",
      "user: last",
      "assistant: three",
    ]);
  });

  test("an agent is steered by another agent with the same store, and its maxToolCalls still applies", async () => {
    const { said } = await runConversation({ maxToolCalls: 2 }, async (_, store) => {
      await steer(createAgent({ name: "talker", model: scriptedModel([]) }), { store, thread: "t", input: "hurry" });
    });
    expect(said.slice(2)).toEqual([
      "tool: a",
      "tool: b",
      "tool: Not run: at most 2 calls of one message are run. Ask again for what is still needed.",
      "user: hurry",
      "assistant: one",
    ]);
  });

  test("a steered agent keeps its pending approvals, and an approval of any of them counts", async () => {
    const ran: string[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pay one of the bills.",
      input: z.object({ bill: z.string() }),
      safety: { access: "write", confirm: "always" },
      run: ({ bill }) => {
        ran.push(bill);
        return bill;
      },
    });
    const agent = createAgent({
      name: "payer",
      model: scriptedModel([["a", "b"].map((bill) => call("pay", { bill })), say("Paid.")]),
      tools: [pay],
      middleware: [confirmTools()],
      strategy: "sequential",
      store: memoryStore(),
    });
    await agent.run({ thread: "t", input: "go" }).result;
    await agent.steer({ thread: "t", input: "well?" });
    const waiting = await agent.resume({ thread: "t" }).result;
    const open = waiting.status === "waiting" ? waiting.interrupts.map(({ id }) => id) : [];
    expect(open).toEqual(["1:0:call_1", "1:0:call_2"]);
    const answers = Object.fromEntries(open.map((id) => [id, true]));
    expect((await agent.resume({ thread: "t", answers }).result).status).toBe("done");
    expect(ran).toEqual(["a", "b"]);
  });

  test("an agent without tools continues with a message queued during its reply", async () => {
    const model = scriptedModel([say("one"), say("two")]);
    const agent = createAgent({ name: "plain", model });
    const handle = agent.run({ input: "go" });
    let isAsked = false;
    handle.on(({ type }) => {
      if (type !== "model.started" || isAsked) return;
      isAsked = true;
      void handle.followUp("and then?");
    });
    const { state } = await handle.result;
    expect(state.messages.map(getMessageText)).toEqual(["go", "one", "and then?", "two"]);
  });
});
