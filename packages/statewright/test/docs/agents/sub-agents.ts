import { call, say, scriptedModel } from "@statewright/testing";
import {
  agentTool,
  createAgent,
  defineGraph,
  defineState,
  defineTool,
  END,
  getMessageText,
  graphTool,
  handoff,
  type ModelRequest,
  memoryStore,
  removeToolCalls,
  run,
  START,
  subgraph,
  type Team,
  team,
} from "statewright";
import * as z from "zod";

const store = memoryStore();
const lastWords = ({ messages }: ModelRequest): string => getMessageText(messages.at(-1));
const answers = ({ messages }: ModelRequest): string =>
  messages.flatMap((message) => (message.role === "tool" ? getMessageText(message) : [])).join(" ");

const search = defineTool({
  name: "search",
  description: "Search the archive.",
  input: z.object({ words: z.string() }),
  effect: "pure",
  run: ({ words }) => `three pages about ${words}`,
});

const small = scriptedModel((request) =>
  request.messages.length === 1 ? call(search, { words: lastWords(request) }) : say(`I read ${lastWords(request)}.`),
);
const large = scriptedModel((request) =>
  request.messages.length === 1
    ? [call(research, { topic: "bees" }), call(research, { topic: "ants" })]
    : say(answers(request)),
);

const researcher = createAgent({ name: "researcher", model: small, tools: [search] });

const research = agentTool(researcher, {
  name: "research",
  description: "Reads all that there is about one topic. Call it once for each topic.",
  input: z.object({ topic: z.string() }),
  prompt: ({ topic }) => topic,
});

const author = createAgent({ name: "author", model: large, tools: [research], store });

const writing = author.run({ thread: "t1", input: "Compare bees and ants." });
writing.on((event) => {
  if (event.type === "model.started")
    console.log(`request of ${event.within ?? "author"} ${event.withinId ?? ""}`.trim());
});
for await (const text of writing.text()) process.stdout.write(text);
const { state } = await writing.result;
console.log(`\n${state.messages.length} messages`);

// A graph as a tool.

const count = defineGraph({ name: "count", state: defineState({ text: z.string(), words: z.int().default(0) }) })
  .nodes({ count: ({ text }) => ({ words: text.split(" ").length }) })
  .edges({ [START]: "count", count: END });

const countWords = graphTool(count, {
  name: "count_words",
  description: "Counts the words of a text.",
  input: z.object({ text: z.string() }),
  toInput: ({ text }) => ({ text }),
  toResult: ({ words }) => words,
});
console.log(countWords.spec.effect);

// An agent as a node.

const report = defineGraph({
  name: "report",
  state: defineState({ topic: z.string(), notes: z.string().default("") }),
})
  .nodes({
    research: subgraph(researcher, {
      input: ({ topic }) => researcher.toInput(topic),
      output: ({ messages }) => ({ notes: getMessageText(messages.at(-1)) }),
    }),
  })
  .edges({ [START]: "research", research: END });

console.log((await run(report, { input: { topic: "wasps" } }).result).state.notes);

// A team.

const triage = createAgent({
  name: "triage",
  model: scriptedModel([call("transfer_to_billing", { reason: "an invoice" })]),
  instructions: "Find out who can help, and hand over.",
  tools: [
    handoff("billing", {
      description: "For invoices and refunds.",
      input: z.object({ reason: z.string() }),
      filter: removeToolCalls,
    }),
  ],
});
const billing = createAgent({
  name: "billing",
  model: scriptedModel([say("It was paid."), say("Last Monday.")]),
  instructions: "You answer what is asked about invoices.",
  tools: [handoff(triage)],
});

const desk: Team = team({ name: "desk", agents: [triage, billing], maxHandoffs: 4, store });

const first = await desk.run({ thread: "t2", input: "Is my invoice paid?" }).result;
const second = await desk.run({ thread: "t2", input: "When?" }).result;
for (const message of second.state.messages) console.log(`${message.role}: ${getMessageText(message) || "(calls)"}`);
console.log(first.state.activeAgent);
