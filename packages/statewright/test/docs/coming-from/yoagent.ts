import { call, say, scriptedModel, virtualClock } from "@statewright/testing";
import {
  createAgent,
  defineContext,
  defineTool,
  env,
  getMessageText,
  inject,
  type JsonObject,
  ToolError,
} from "statewright";
import { getBlockText, yoagentDialect } from "statewright/adapter";
import * as z from "zod";

// Arguments that the types of the tools refuse: this script shows how the engine answers invalid calls.
const withoutText: JsonObject = {};
const hiddenReader: JsonObject = { title: "Emma", reader: "somebody else" };
const shelf = new Map([["Emma", "A long novel about a matchmaker"]]);
const lending = { seen: [] as string[] };

// a tool
const countWords = defineTool({
  name: "count_words",
  label: "Word Count",
  description: "Count the words of a text.",
  input: z.object({
    text: z.string({ error: "missing text" }).describe("The text"),
  }),
  effect: "pure",
  run: ({ text }) => `${text.trim().split(/\s+/).length} words`,
});

// updates, progress, cancellation
const indexBooks = defineTool({
  name: "index_books",
  description: "Put books into the index, one after the other.",
  input: z.object({
    titles: z.array(z.string()).describe("Titles, in order"),
  }),
  effect: "idempotent",
  run: async ({ titles }, { signal, progress, update, wait }) => {
    progress("Opening the index");
    for (const [done, title] of titles.entries()) {
      if (signal.aborted) throw ToolError.cancelled();
      update?.({
        content: `Indexing ${title}`,
        details: { done, total: titles.length },
      });
      await wait(5);
    }
    return `Indexed ${titles.length} books`;
  },
});

// errors
const readBook = defineTool({
  name: "read_book",
  description: "Read what a book is about.",
  input: z.object({ title: z.string().describe("Its title") }),
  effect: "pure",
  run: ({ title }) => {
    const text = shelf.get(title);
    if (text === undefined) throw ToolError.notFound(`There is no book "${title}".`);
    return { content: text, details: { letters: text.length } };
  },
});

// hidden arguments
const Reader = defineContext({ reader: z.string() });

const lendBook = defineTool({
  name: "lend_book",
  description: "Lend a book to the reader who asks.",
  input: z.object({ title: z.string().describe("Its title") }),
  inject: {
    reader: Reader.from(({ reader }) => reader),
    key: inject.secret("LIBRARY_KEY"),
  },
  run: ({ title }, { injected, idempotencyKey }) => {
    const { reader, key } = injected;
    lending.seen.push(`${key.reveal().length} ${reader} ${title} …${idempotencyKey.slice(-11)}`);
    return `Lent ${title}`;
  },
});

const model = scriptedModel([
  [
    call(indexBooks, { titles: ["Emma", "Ulysses"] }),
    call(countWords, { text: "one two three" }),
    call(readBook, { title: "Emma" }),
  ],
  [call("count_words", withoutText), call(readBook, { title: "Dubliners" }), call("lend_book", hiddenReader)],
  say("Emma is lent."),
]);

// an agent
const library = createAgent({
  name: "library",
  model,
  instructions: "You run a library.",
  context: Reader,
  tools: [countWords, indexBooks, readBook, lendBook],
  strategy: { batch: 2 },
});

const world = virtualClock();
const run = library.run({
  thread: "t1",
  world,
  input: "Index the shelf, then lend me Emma.",
  context: { reader: "r7" },
  secrets: env(["LIBRARY_KEY"]),
});

// steering
run.on((event) => {
  if (event.type === "tool.progress") void run.steer("Never mind the index.");
});

// events
const translate = yoagentDialect();
run.on((event) => {
  for (const moment of translate(event)) {
    if (moment.type === "ToolExecutionStart") console.log(`start ${moment.toolName}`);
    else if (moment.type === "ToolExecutionUpdate")
      console.log(`  ${moment.partialResult.content.map(getBlockText).join("")}`);
    else if (moment.type === "ProgressMessage") console.log(`  (${moment.text})`);
    else if (moment.type === "ToolExecutionEnd")
      console.log(`${moment.isError ? "failed" : "done"} ${moment.toolName}`);
    else if (moment.type === "AgentEnd") console.log("over");
  }
});

await world.advance(1_000);
const { state } = await run.result;
for (const message of state.messages)
  if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);
console.log(lending.seen.join());
