/** The agents of the examples with the providers' own clients, against a server that speaks their wire formats and misbehaves. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { LLMock } from "@copilotkit/aimock";
import { virtualClock } from "@statewright/testing";
import { getMessageText, type LanguageModel, memoryStore, type RunEvent } from "statewright";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createChatAgent } from "../../src/agents/chat.ts";
import { createInvoiceReader } from "../../src/agents/extraction.ts";
import { createResearchAgent } from "../../src/agents/research.ts";
import { createReviewer } from "../../src/agents/reviewer.ts";
import { smallLibrary } from "../../src/agents/scenes.ts";
import { createSupportDesk } from "../../src/agents/support.ts";
import { createAssistant } from "../../src/agents/two-providers.ts";

const mock = new LLMock({ port: 0 });
beforeAll(() => mock.start());
afterAll(() => mock.stop());
beforeEach(() => {
  mock.clearFixtures();
  mock.resetMatchCounts();
});

const apiKey = "not-a-key";
const anthropic = () => createAnthropic({ baseURL: `${mock.url}/v1`, apiKey })("claude-sonnet-4-5");
const openai = () => createOpenAI({ baseURL: `${mock.url}/v1`, apiKey }).chat("gpt-4o");

type Answer = Parameters<typeof mock.on>[1];
type Match = Parameters<typeof mock.on>[0];

/** Ways in which the first answer goes wrong. The next one is whole. */
const troubles: readonly (readonly [string, Answer, Parameters<typeof mock.on>[2]])[] = [
  ["is overloaded", { error: { message: "Overloaded" }, status: 529 }, undefined],
  ["wants a pause", { error: { message: "Slow down" }, status: 429, retryAfter: 2 }, undefined],
  [
    "breaks off in its stream",
    { content: "It was all going so well until the line was cut." },
    { truncateAfterChunks: 2 },
  ],
];
const clients: readonly (readonly [string, () => LanguageModel])[] = [
  ["Anthropic", anthropic],
  ["OpenAI", openai],
];
const cases = clients.flatMap(([client, model]) =>
  troubles.map(([what, answer, options]) => ({ client, model, what, answer, options })),
);

const input = "Please help me.";
const calling = (name: string, args: object): Answer => ({ toolCalls: [{ name, arguments: JSON.stringify(args) }] });

describe.each(cases)("when $client $what", ({ model, answer, options }) => {
  /** The first request meets the trouble; then the answers come one after the other. */
  function answering(match: Match, ...answers: readonly Answer[]): void {
    mock.on({ ...match, sequenceIndex: 0 }, answer, options);
    answers.forEach((each, index) => {
      mock.on({ ...match, sequenceIndex: index + 1 }, each);
    });
  }

  /** Let time go by until the run is over. */
  async function ended<Result>(start: (world: ReturnType<typeof virtualClock>) => Promise<Result>): Promise<Result> {
    const world = virtualClock({ waitsForWork: false });
    let isOver = false;
    const result = start(world).finally(() => {
      isOver = true;
    });
    while (!isOver) if (!(await world.next())) await new Promise((resolve) => setImmediate(resolve));
    return result;
  }

  test("the chat example answers despite the faulty reply", async () => {
    answering({ userMessage: /help/ }, { content: "Gladly." });
    const talk = createChatAgent(model(), {
      store: memoryStore(),
      summariser: { id: "none", respond: throwUnexpectedCall },
    });
    const { status, state } = await ended(
      (world) => talk.run({ thread: "t", input, context: { userId: "ann" }, world }).result,
    );
    expect([status, ...state.messages.map(getMessageText)]).toEqual(["done", input, "Gladly."]);
  });

  test("the invoice example reads an invoice despite the faulty reply", async () => {
    const invoice = {
      number: "1",
      date: "2026-03-02",
      currency: "EUR",
      lines: [{ text: "Paper", cents: 5 }],
      totalCents: 5,
    };
    mock.on({ userMessage: /help/, sequenceIndex: 0 }, answer, options);
    mock.on({ userMessage: /help/ }, { content: JSON.stringify(invoice) });
    const { output } = await ended((world) => createInvoiceReader(model()).run({ input, world }).result);
    expect(output).toEqual(invoice);
  });

  test("the support example looks up each order once and asks before it pays, despite the faulty reply", async () => {
    answering({ userMessage: /help/ }, calling("my_orders", {}), calling("refund", { orderId: "7", cents: 9_900 }));
    let lookups = 0;
    const orders = {
      list: () => {
        lookups += 1;
        return [{ id: "7", cents: 9_900, item: "Headphones" }];
      },
    };
    const desk = createSupportDesk(model(), { store: memoryStore(), orders, bank: { refund: throwUnexpectedCall } });
    const { status } = await ended(
      (world) =>
        desk.run({ thread: "t", input, context: { customerId: "c1" }, secrets: { get: () => "bank-key" }, world })
          .result,
    );
    expect({ status, lookups }).toEqual({ status: "waiting", lookups: 1 });
  });

  test("the research and review examples finish despite the faulty reply", async () => {
    const report = { title: "None", findings: [], open: ["All of it"] };
    mock.on({ userMessage: /help/, sequenceIndex: 0 }, answer, options);
    mock.on({ userMessage: /help/ }, { content: JSON.stringify(report) });
    const lead = createResearchAgent(
      { lead: model(), reader: model() },
      { library: smallLibrary, store: memoryStore() },
    );
    expect((await ended((world) => lead.run({ thread: "t", input, world }).result)).output).toEqual(report);

    const review = { verdict: "approve", comments: [] };
    mock.clearFixtures();
    mock.resetMatchCounts();
    mock.on({ userMessage: /help/, sequenceIndex: 0 }, answer, options);
    mock.on({ userMessage: /help/ }, { content: JSON.stringify(review) });
    const root = import.meta.dirname;
    expect((await ended((world) => createReviewer(model(), { root }).run({ input, world }).result)).output).toEqual(
      review,
    );
  });
});

test("the chat example answers with its second provider when the first is down", async () => {
  mock.on({ userMessage: /help/, model: "claude-sonnet-4-5" }, { error: { message: "Down" }, status: 503 });
  mock.on({ userMessage: /help/, model: "gpt-4o" }, { content: "Gladly." });
  const world = virtualClock({ waitsForWork: false });
  const run = createAssistant(anthropic(), openai()).run({ input, world });
  const asked: RunEvent[] = [];
  run.on((event) => event.type === "model.retried" && asked.push(event));
  let isOver = false;
  const result = run.result.finally(() => {
    isOver = true;
  });
  while (!isOver) if (!(await world.next())) await new Promise((resolve) => setImmediate(resolve));
  const { state } = await result;
  expect(state.messages.map(getMessageText)).toEqual([input, "Gladly."]);
  expect(asked).toMatchObject([{ next: "anthropic/claude-sonnet-4-5" }, { next: "openai/gpt-4o" }]);
});

function throwUnexpectedCall(): never {
  throw new Error("This must not be called.");
}
