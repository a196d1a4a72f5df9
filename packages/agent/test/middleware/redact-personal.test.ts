import { agentTool, createAgent } from "@statewright/agent";
import { type RedactPersonalOptions, redactPersonal } from "@statewright/agent/middleware";
import {
  defineTool,
  getMessageText,
  type Message,
  type ModelReply,
  memoryStore,
  type RunEvent,
} from "@statewright/core";
import { call, type ScriptedEntry, say, scriptedModel, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const person = "Ann, ann@example.com, card 4111 1111 1111 1111";

/** Runs an agent whose tool `look` returns `gives`; collects all emitted events. */
function createDesk(options: RedactPersonalOptions, script: readonly ScriptedEntry[], gives: unknown = person) {
  const model = scriptedModel(script);
  const events: RunEvent[] = [];
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: z.object({}),
    effect: "pure",
    run: (_args, { update }) => {
      update?.({ content: person });
      return gives;
    },
  });
  const agent = createAgent({
    name: "desk",
    model,
    tools: [look],
    middleware: [redactPersonal(options)],
    store: memoryStore(),
  });
  const ask = async (input: string | readonly Message[]) => {
    const handle = agent.run({ thread: "t", input });
    handle.on((event) => events.push(event));
    const { state } = await handle.result;
    return { state, last: state.messages.at(-1) as Message, text: getMessageText(state.messages.at(-1) as Message) };
  };
  const sent = (): string => JSON.stringify(model.requests.map(({ messages }) => messages));
  const streamed = (): string => events.map((event) => (event.type === "message.delta" ? event.text : "")).join("");
  return { model, agent, ask, events, sent, streamed };
}

test("user messages reach the model without personal data and stay unchanged in the state", async () => {
  const { ask, sent } = createDesk({}, [say("ok"), say("ok")]);
  await ask(`I am ${person}`);
  const { state } = await ask("and now?");
  expect(sent()).not.toMatch(/example\.com|4111/);
  expect(sent()).toContain("I am Ann, [email], card [card]");
  expect(getMessageText(state.messages[0] as Message)).toBe(`I am ${person}`);
});

test("tool results are redacted before they are saved, emitted or sent: text, data, updates and errors", async () => {
  const { ask, sent, events } = createDesk({}, [call("look", {}), say("ok")], {
    content: person,
    value: { mail: "ann@example.com" },
    details: [person],
  });
  const { state } = await ask("go");
  for (const text of [JSON.stringify(state), sent(), JSON.stringify(events)])
    expect(text).not.toMatch(/example\.com|4111.?1111/);
  expect(getMessageText(state.messages[2] as Message)).toBe("Ann, [email], card [card]");
});

test("answers are redacted before they are saved, and no part of personal data is streamed, in any chunks", async () => {
  const { random } = virtualClock({ seed: 4 });
  const whole = "Hello Ann, I wrote to ann@example.com and charged 4111 1111 1111 1111 today. Call +49 30 901820 now.";
  for (let round = 0; round < 100; round++) {
    const pieces: string[] = [];
    for (let from = 0; from < whole.length; ) {
      const size = 1 + Math.floor(random.next() * 9);
      pieces.push(whole.slice(from, from + size));
      from += size;
    }
    const reply: ModelReply = { content: [{ type: "text", text: whole }], finish: "stop" };
    const model = {
      id: "cut",
      respond: async (
        _request: unknown,
        { delta }: { readonly delta?: ((delta: { type: "text"; text: string }) => void) | undefined },
      ) => {
        for (const text of pieces) delta?.({ type: "text", text });
        return reply;
      },
    };
    const agent = createAgent({ name: "desk", model, middleware: [redactPersonal()] });
    const handle = agent.run({ input: "go" });
    const events: RunEvent[] = [];
    handle.on((event) => events.push(event));
    const read: string[] = [];
    const reading = (async () => {
      for await (const text of handle.text()) read.push(text);
    })();
    const { state } = await handle.result;
    await reading;
    const cleaned = "Hello Ann, I wrote to [email] and charged [card] today. Call [phone] now.";
    expect([getMessageText(state.messages[1] as Message), read.join("")]).toEqual([cleaned, cleaned]);
    const observed = events.map((event) => (event.type === "message.delta" ? event.text : "")).join("");
    expect(cleaned.startsWith(observed)).toBe(true);
    expect(observed.length).toBeGreaterThan(20);
    expect(events.some(({ type }) => type === "message.retracted")).toBe(false);
  }
});

test("structured output is redacted and streams no personal data, for native output and for a final call", async () => {
  const given = { note: "line\n4111 1111 1111 1111", mails: ["ann@example.com"], count: 2 };
  for (const structuredOutput of [true, false]) {
    const reply = structuredOutput ? say(JSON.stringify(given)) : call("final_answer", given);
    const model = { ...scriptedModel([reply]), structuredOutput };
    const output = z.object({ note: z.string(), mails: z.array(z.string()), count: z.int() });
    const agent = createAgent({ name: "desk", model, output, middleware: [redactPersonal()], store: memoryStore() });
    const events: RunEvent[] = [];
    const handle = agent.run({ thread: "t", input: "go" });
    handle.on((event) => events.push(event));
    const result = await handle.result;
    expect(result.output).toEqual({ note: "line\n[card]", mails: ["[email]"], count: 2 });
    expect(JSON.stringify([result.state, events])).not.toMatch(/4111|example\.com/);
  }
});

test("redactPersonal with mask keeps the end of a value", async () => {
  const { ask } = createDesk({ strategy: "mask" }, [
    say("ann@example.com 4111 1111 1111 1111 192.168.0.17 DE89 3704 0044 0532 0130 00"),
  ]);
  expect((await ask("go")).text).toBe("a***@example.com ***1111 *** ***3000");
});

test("redactPersonal with hash gives a value one hash in every spelling, and another hash under another key", async () => {
  const answer = say("card 4111 1111 1111 1111 or 4111111111111111, mail a@example.com");
  const hashed = async (hashKey: string) =>
    (await createDesk({ strategy: { card: "hash" }, hashKey }, [answer]).ask("go")).text;
  const one = await hashed("a key of sixteen characters");
  const [, first, second] = /^card (\[card:[0-9a-f]{12}\]) or (\[card:[0-9a-f]{12}\]), mail \[email\]$/.exec(one) ?? [];
  expect(first).toBe(second);
  expect(await hashed("another key of such a length")).not.toBe(one);
});

test("redactPersonal with hash stops streaming after a match and retracts nothing", async () => {
  const { ask, events, streamed } = createDesk({ strategy: "hash", hashKey: "a key of sixteen characters" }, [
    say("see ann@example.com for more"),
  ]);
  const { text } = await ask("go");
  expect(text.startsWith(streamed())).toBe(true);
  expect(events.some(({ type }) => type === "message.retracted")).toBe(false);
});

test("redactPersonal with block ends the agent for an input, drops an answer, and withholds a result", async () => {
  const input = createDesk({ strategy: { card: "block" } }, []);
  const refused = await input.ask(person);
  expect(refused.text).toBe("Your message contains personal data (card). Please rephrase it without them.");
  expect([input.model.requests.length, refused.last]).toMatchObject([
    0,
    { ended: { by: "guardrail", reason: "personal data: card" } },
  ]);
  const output = createDesk({ strategy: { card: "block" } }, [say(`You are ${person} indeed`)]);
  const dropped = await output.ask("go");
  expect(dropped.text).toBe("The answer was withheld: it contains personal data (card).");
  expect(JSON.stringify([dropped.state, output.events])).not.toContain("4111");
  const tool = createDesk({ strategy: { card: "block" } }, [call("look", {}), say("ok")]);
  const { state } = await tool.ask("go");
  expect(state.messages[2]).toMatchObject({
    isError: true,
    content: [{ text: "The result was withheld: it contains personal data (card)." }],
  });
  expect(JSON.stringify([state, tool.events, tool.sent()])).not.toContain("4111");
});

test("a user may continue after a blocked input, and the blocked message is sent redacted", async () => {
  const { ask, sent } = createDesk({ strategy: "block" }, [say("ok")]);
  await ask(person);
  expect((await ask("without it then")).text).toBe("ok");
  expect(sent()).not.toMatch(/4111|example\.com/);
});

test("redactPersonal can be disabled separately for input, results and answers", async () => {
  const { ask, sent } = createDesk({ input: false, toolResults: false }, [call("look", {}), say(person)]);
  const { state, text } = await ask(person);
  expect(sent()).toContain("4111 1111 1111 1111");
  expect(getMessageText(state.messages[2] as Message)).toBe(person);
  expect(text).toBe("Ann, [email], card [card]");
  expect((await createDesk({ output: false }, [say(person)]).ask("go")).text).toBe(person);
});

test("redactPersonal accepts custom detectors, and then streams nothing before the answer is complete", async () => {
  const detectors = [
    {
      kind: "customer",
      find: (text: string) =>
        [...text.matchAll(/C-\d+/g)].map(({ index, 0: id }) => ({ start: index, end: index + id.length })),
    },
  ];
  const { ask, streamed } = createDesk({ kinds: ["email"], detectors }, [
    say("C-12 is ann@example.com, C-13 is 4111 1111 1111 1111"),
  ]);
  expect((await ask("go")).text).toBe("[customer] is [email], [customer] is 4111 1111 1111 1111");
  expect(streamed()).toBe("");
});

test("redactPersonal drops a signed reasoning block with personal data and redacts an unsigned one", async () => {
  const content: ModelReply["content"] = [
    { type: "reasoning", text: "ask ann@example.com" },
    { type: "reasoning", text: "ask ann@example.com", provider: { anthropic: { signature: "x" } } },
    { type: "reasoning", text: "think", provider: { anthropic: { signature: "y" } } },
    { type: "text", text: "done" },
  ];
  const model = { id: "m", respond: async (): Promise<ModelReply> => ({ content, finish: "stop" }) };
  const { state } = await createAgent({ name: "desk", model, middleware: [redactPersonal()] }).run({ input: "go" })
    .result;
  expect(state.messages[1]).toMatchObject({ content: [{ text: "ask [email]" }, { text: "think" }, { text: "done" }] });
});

test("redactPersonal covers the tasks, answers and tool results of sub-agents", async () => {
  const inner = createDesk({ kinds: [] }, [call("look", {}), say(`Found: ${person}`)]);
  const helper = agentTool(inner.agent, { name: "helper", description: "Helps." });
  const model = scriptedModel([call("helper", { task: `Find ${person}` }), say("ok")]);
  const agent = createAgent({
    name: "boss",
    model,
    tools: [helper],
    middleware: [redactPersonal()],
    store: memoryStore(),
  });
  const events: RunEvent[] = [];
  const handle = agent.run({ thread: "t", input: "go" });
  handle.on((event) => events.push(event));
  const { state } = await handle.result;
  expect(getMessageText(state.messages[2] as Message)).toContain("Found: Ann, [email], card [card]");
  expect(inner.sent()).not.toMatch(/example\.com|4111/);
  const observed = events.filter(({ type }) => type === "message.delta" || type === "tool.completed");
  expect(observed.length).toBeGreaterThan(3);
  expect(JSON.stringify(observed)).not.toMatch(/example\.com|4111/);
});

test("redactPersonal refuses invalid options", () => {
  for (const options of [
    { kinds: ["name"] },
    { strategy: "hide" },
    { strategy: { card: "hide" } },
    { strategy: { name: "mask" } },
    { strategy: "hash" },
    { strategy: "hash", hashKey: "short" },
    { detectors: [{ kind: "x" }] },
    { input: 1 },
    { on: "input" },
  ])
    expect(() => redactPersonal(options as never), JSON.stringify(options)).toThrow(/invalid_option/);
});
