/** Agent of the gate `servers`: it pays once with a tool that is not idempotent, and then says words one by one. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createAgent, defineTool, type Graph, getMessageText, type Model } from "statewright";
import * as z from "zod";

/** Words of the answer. */
const wordCount = 30;

/** Milliseconds between two words. */
const wordMs = 4;

/** Milliseconds of a payment: some kills come in its middle. */
const paymentMs = 40;

/** Returns the whole answer to a text. */
export function createAnswer(text: string): string {
  return `${text}: ${Array.from({ length: wordCount }, (_, index) => `w${index + 1}`).join(" ")}.`;
}

/** Creates the graph `chat`. Each payment is a line of the file. */
export function createServedChat(payments: string): Graph {
  const pay = defineTool({
    name: "pay",
    description: "Pays an order.",
    input: z.object({ order: z.string() }),
    effect: "once",
    run: async ({ order }) => {
      appendFileSync(payments, `${order}\n`);
      await wait(paymentMs, new AbortController().signal);
      return "Paid.";
    },
    reconcile: ({ order }) => (listPayments(payments).includes(order) ? "Paid before the crash." : "Not paid."),
  });
  return createAgent({ name: "chat", model: createModel(), tools: [pay] });
}

/** Returns the orders that were paid, in order. */
export function listPayments(file: string): readonly string[] {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
}

function createModel(): Model {
  return {
    id: "words",
    respond: async ({ messages }, { delta, signal }) => {
      const order = getMessageText(messages.findLast(({ role }) => role === "user"));
      if (messages.at(-1)?.role !== "tool")
        return { content: [{ type: "call", id: `pay-${order}`, name: "pay", args: { order } }], finish: "calls" };
      const answer = createAnswer(order);
      for (const text of answer.split(/(?<= )/)) {
        await wait(wordMs, signal);
        delta?.({ type: "text", text });
      }
      return { content: [{ type: "text", text: answer }], finish: "stop" };
    },
  };
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    setTimeout(resolve, ms);
  });
}
