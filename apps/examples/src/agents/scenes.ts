/** Offline scenes of the agents in this folder: scripted models, printed output. */
import { call, failWith, say, scriptedModel, think } from "@statewright/testing";
import { getMessageText, type ModelRequest, memoryStore, StatewrightError, type Store } from "statewright";
import type { Print } from "../print.ts";
import { createChatAgent, sendMessage } from "./chat.ts";
import { readInvoice } from "./extraction.ts";
import { createResearchAgent, type Library } from "./research.ts";
import { createReviewer, type ReviewOptions } from "./reviewer.ts";
import { createSupportDesk, type SupportServices } from "./support.ts";
import { createAssistant } from "./two-providers.ts";

/** Two conversations: a fact of the first conversation is available in the second. */
export async function runChatScene(print: Print, store: Store = memoryStore()): Promise<void> {
  const model = scriptedModel([
    call("remember", { topic: "diet", text: "Ann is a vegetarian." }),
    say("Noted: no meat for you."),
    ({ messages }: ModelRequest) => {
      const isKnown = messages.some((message) => getMessageText(message).includes("Ann is a vegetarian."));
      return say(isKnown ? "How about mushroom risotto?" : "How about roast chicken?");
    },
  ]);
  const summariser = scriptedModel([say("They talked about food.")]);
  const chatAgent = createChatAgent(model, { store, summariser });
  for (const [thread, words] of [
    ["monday", "I am a vegetarian, by the way."],
    ["friday", "What shall I cook tonight?"],
  ] as const) {
    print(`${thread}, Ann: ${words}\n`);
    print(`${thread}, assistant: ${await sendMessage(chatAgent, { userId: "ann", thread, words })}\n`);
  }
}

const sources = [
  { id: "s1", title: "Heat pumps in the north", text: "They work down to 25 degrees below zero." },
  { id: "s2", title: "What a heat pump costs", text: "Between 8,000 and 15,000 euros with its installation." },
];

/** Finds sources by a word of their title. */
export const smallLibrary: Library = {
  search: async (words) => sources.filter(({ title }) => words.split(" ").some((word) => title.includes(word))),
};

/** Runs two research agents in parallel. */
export async function runResearchScene(print: Print, store: Store = memoryStore()): Promise<void> {
  const lead = scriptedModel([
    [
      call("look_into", { task: "Do heat pumps work in the north?" }),
      call("look_into", { task: "What do they cost?" }),
    ],
    call("final_answer", {
      title: "Heat pumps",
      findings: [
        { claim: "They work in hard winters.", sources: ["s1"] },
        { claim: "They cost 8,000 to 15,000 euros.", sources: ["s2"] },
      ],
      open: ["How loud they are"],
    }),
  ]);
  const reader = scriptedModel(({ messages }) => {
    const task = getMessageText(messages[0] ?? { role: "system", id: "", content: "" });
    const searchResult = messages.findLast(({ role }) => role === "tool");
    if (searchResult !== undefined)
      return say(`${getMessageText(searchResult).split("\n")[1]} ${getMessageText(searchResult).slice(0, 4)}`);
    return call("search_library", { words: task.includes("cost") ? "costs" : "north" });
  });
  const agent = createResearchAgent({ lead, reader }, { library: smallLibrary, store });
  const run = agent.run({ thread: "heat", input: "Should I buy a heat pump in Oslo?" });
  run.on((event) => {
    if (event.type === "tool.started") print(`${event.within === undefined ? "" : "  "}${event.tool}\n`);
  });
  const { output } = await run.result;
  for (const { claim, sources } of output?.findings ?? []) print(`- ${claim} [${sources.join(", ")}]\n`);
  for (const question of output?.open ?? []) print(`? ${question}\n`);
}

/** Refund with approval: the run waits at an interrupt and resumes with the answer. */
export async function runSupportScene(print: Print, parts: Partial<SupportServices> = {}): Promise<void> {
  const model = scriptedModel([
    call("my_orders", {}),
    call("refund", { orderId: "7", cents: 9_900 }),
    say("Your 99 euros are on their way."),
  ]);
  const desk = createSupportDesk(model, {
    store: memoryStore(),
    orders: { list: (customer) => (customer === "c1" ? [{ id: "7", cents: 9_900, item: "Headphones" }] : []) },
    bank: { refund: async ({ idempotencyKey }) => ({ receipt: idempotencyKey.slice(0, 8) }) },
    ...parts,
  });
  const secrets = { get: () => "the key of the bank" };
  const first = await desk.run({
    thread: "case-1",
    input: "My headphones broke. Card 4111 1111 1111 1111, please refund.",
    context: { customerId: "c1" },
    secrets,
  }).result;
  print(`${first.status}\n`);
  if (first.status !== "waiting") return;
  for (const { payload } of first.interrupts) print(`${JSON.stringify(payload)}\n`);
  const second = await desk.resume({
    thread: "case-1",
    context: { customerId: "c1" },
    answers: { approve: true },
    by: "Kim",
    secrets,
  }).result;
  const last = second.state.messages.at(-1);
  print(`${second.status}: ${last === undefined ? "" : getMessageText(last)}\n`);
}

/** Reviews the last change of a repository. */
export async function runReviewScene(print: Print, options: ReviewOptions): Promise<void> {
  const model = scriptedModel([
    call("changed_lines", {}),
    ({ messages }) => {
      const diff = messages.findLast(({ role }) => role === "tool");
      const file = /^\+\+\+ b\/(.+)$/m.exec(diff === undefined ? "" : getMessageText(diff))?.[1];
      return file === undefined ? say("There is nothing to review.") : call("read_file", { path: file });
    },
    ({ messages }) => {
      const diff = messages.find(({ role }) => role === "tool");
      const file = /^\+\+\+ b\/(.+)$/m.exec(diff === undefined ? "" : getMessageText(diff))?.[1] ?? "";
      const comments = [{ file, line: 1, severity: "risk", text: "A scripted reviewer has read it." }];
      return call("final_answer", { verdict: "request_changes", comments });
    },
  ]);
  const { output } = await createReviewer(model, options).run({ input: "Review the last commit." }).result;
  print(`${output?.verdict}\n`);
  for (const { file, line, severity, text } of output?.comments ?? []) print(`${file}:${line} ${severity}: ${text}\n`);
}

/** Reads an invoice with a wrong total in the first attempt. */
export async function runInvoiceScene(print: Print): Promise<void> {
  const parsed = { number: "2026-17", date: "2026-03-02", currency: "EUR", lines: [{ text: "Paper", cents: 1_250 }] };
  const model = scriptedModel([
    call("final_answer", { ...parsed, totalCents: 1_750 }),
    [
      think("The freight was missing."),
      call("final_answer", { ...parsed, lines: [...parsed.lines, { text: "Freight", cents: 500 }], totalCents: 1_750 }),
    ],
  ]);
  const invoice = await readInvoice(
    model,
    "Invoice 2026-17 of 2 March 2026\nPaper 12.50\nFreight 5.00\nTotal EUR 17.50",
  );
  for (const { text, cents } of invoice.lines) print(`${text} ${cents / 100}\n`);
  print(`${invoice.number}: ${invoice.totalCents / 100} ${invoice.currency}\n`);
}

/** The first provider is overloaded; the second provider answers. */
export async function runProvidersScene(print: Print): Promise<void> {
  const overloaded = new StatewrightError("model_failed", {
    what: "the model is overloaded",
    next: "Retry later",
    details: { retryable: true, status: 529 },
  });
  const first = scriptedModel([failWith(overloaded), failWith(overloaded)], { id: "first/model" });
  const second = scriptedModel([say("Good morning.")], { id: "second/model" });
  const run = createAssistant(first, second).run({ input: "Good morning!" });
  run.on((event) => {
    if (event.type === "model.retried") print(`${event.model}: ${event.kind}, then ${event.next}\n`);
  });
  for await (const text of run.text()) print(text);
  print("\n");
}
