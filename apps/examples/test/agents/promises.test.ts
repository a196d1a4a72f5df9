/** Guarantees of the example agents that their scenes do not show. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call, say, scriptedModel } from "@statewright/testing";
import { getMessageText, isStatewrightError, memoryStore, sqliteStore } from "statewright";
import { expect, onTestFinished, test } from "vitest";
import { createChatAgent, sendMessage } from "../../src/agents/chat.ts";
import { createInvoiceReader } from "../../src/agents/extraction.ts";
import { createResearchAgent, type Library } from "../../src/agents/research.ts";
import { smallLibrary } from "../../src/agents/scenes.ts";
import { type Bank, createSupportDesk } from "../../src/agents/support.ts";

function createFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "agents-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("memories of the chat example survive the process and belong to one user", async () => {
  const file = join(createFolder(), "chat.db");
  const summariser = scriptedModel([say("A summary.")]);
  const first = sqliteStore(file);
  const model = scriptedModel([call("remember", { topic: "diet", text: "Ann is a vegetarian." }), say("Noted.")]);
  await sendMessage(createChatAgent(model, { store: first, summariser }), {
    userId: "ann",
    thread: "a1",
    words: "I eat no meat.",
  });
  await first.close();

  const second = sqliteStore(file);
  const known = scriptedModel(({ messages }) =>
    say(messages.some((message) => getMessageText(message).includes("vegetarian")) ? "known" : "unknown"),
  );
  const later = createChatAgent(known, { store: second, summariser });
  expect(await sendMessage(later, { userId: "ann", thread: "a2", words: "What do I eat?" })).toBe("known");
  expect(await sendMessage(later, { userId: "bob", thread: "b1", words: "What do I eat?" })).toBe("unknown");
  await second.close();
});

const orders = { list: () => [{ id: "7", cents: 9_900, item: "Headphones" }] };
const secrets = { get: () => "bank-key-1234567" };
const context = { customerId: "c1" };

test("a refused refund keeps the money, and the model reads the reason", async () => {
  const paid: string[] = [];
  const bank: Bank = {
    refund: async ({ orderId }) => {
      paid.push(orderId);
      return { receipt: "r1" };
    },
  };
  const model = scriptedModel([call("refund", { orderId: "7", cents: 9_900 }), say("I cannot do that.")]);
  const desk = createSupportDesk(model, { store: memoryStore(), orders, bank });
  await desk.run({ thread: "t", input: "My money, please.", context, secrets }).result;
  const answers = { approve: { approved: false, reason: "they were returned broken" } };
  const { state } = await desk.resume({ thread: "t", context, secrets, answers }).result;
  expect(paid).toEqual([]);
  expect(state.messages.map(getMessageText)).toEqual([
    "My money, please.",
    "",
    expect.stringContaining("they were returned broken"),
    "I cannot do that.",
  ]);
});

test("the refund example pays once after a restart, no model sees the card, and the bank key is not in the file", async () => {
  const file = join(createFolder(), "support.db");
  const paid: string[] = [];
  const bank: Bank = {
    refund: async ({ key, idempotencyKey }) => {
      expect(key).toBe("bank-key-1234567");
      paid.push(idempotencyKey);
      return { receipt: "r1" };
    },
  };
  const script = [call("refund", { orderId: "7", cents: 9_900 }), say("Done.")];
  const first = sqliteStore(file);
  const model = scriptedModel(script);
  const input = "Please refund to my card 4111 1111 1111 1111.";
  const { status } = await createSupportDesk(model, { store: first, orders, bank }).run({
    thread: "t",
    input,
    context,
    secrets,
  }).result;
  expect(status).toBe("waiting");
  expect(JSON.stringify(model.requests)).not.toContain("4111 1111 1111 1111");
  await first.close();

  const second = sqliteStore(file);
  const desk = createSupportDesk(scriptedModel(script), { store: second, orders, bank });
  const resumed = await desk.resume({ thread: "t", context, secrets, answers: { approve: true } }).result;
  expect(resumed.status).toBe("done");
  await expect(desk.resume({ thread: "t", context, secrets, answers: { approve: true } }).result).rejects.toThrow();
  expect(paid).toHaveLength(1);
  await second.close();
  expect(readFileSync(file).includes("bank-key-1234567")).toBe(false);
});

test("a stopped researcher is an error, and the lead reads its partial findings", async () => {
  const lead = scriptedModel([
    call("look_into", { task: "Do they work in the north?" }),
    ({ messages }) => {
      const last = messages.at(-1);
      const isRefused = last?.role === "tool" && last.isError;
      return call("final_answer", { title: "Heat pumps", findings: [], open: [isRefused ? "stopped" : "answered"] });
    },
  ]);
  const reader = scriptedModel(({ messages }) => call("search_library", { words: `north ${messages.length}` }));
  const { output } = await createResearchAgent({ lead, reader }, { library: smallLibrary, store: memoryStore() }).run({
    thread: "t",
    input: "Should I buy one?",
  }).result;
  expect(output?.open).toEqual(["stopped"]);
  expect(reader.requests).toHaveLength(8);
});

test("the lead and its researchers spend from one budget", async () => {
  const lead = scriptedModel(() => call("look_into", { task: "Do they work in the north?" }));
  const reader = scriptedModel(({ messages }) => {
    const found = messages.some(({ role }) => role === "tool");
    return found ? say("They do [s1].") : call("search_library", { words: "north" });
  });
  const library: Library = smallLibrary;
  const { ended, output } = await createResearchAgent({ lead, reader }, { library, store: memoryStore() }).run({
    thread: "t",
    input: "Should I buy one?",
  }).result;
  expect({ ended, output }).toMatchObject({ ended: { by: "budget" }, output: undefined });
  expect(lead.requests.length + reader.requests.length).toBe(60);
});

test("an invoice that never adds up fails with all errors and loses no message", async () => {
  const wrong = {
    number: "1",
    date: "2026-03-02",
    currency: "EUR",
    lines: [{ text: "Paper", cents: 1 }],
    totalCents: 2,
  };
  const model = scriptedModel(() => call("final_answer", wrong));
  const error: unknown = await createInvoiceReader(model)
    .run({ input: "Invoice 1" })
    .result.catch((thrown: unknown) => thrown);
  expect(isStatewrightError(error, "invalid_output") && error.details).toMatchObject({
    wrong: Array.from({ length: 3 }, () => expect.stringContaining("must equal the sum of the lines")),
  });
  expect(model.requests).toHaveLength(3);
});
