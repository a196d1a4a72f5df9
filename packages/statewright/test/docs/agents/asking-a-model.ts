import {
  assistantMessage,
  channel,
  defineGraph,
  defineState,
  defineTool,
  END,
  getMessageText,
  modelRoute,
  run,
  START,
  sqliteStore,
  toolNode,
  userMessage,
} from "statewright";
import * as z from "zod";

const model = "openai/gpt-5-mini";
const letters = defineGraph({
  name: "letters",
  state: defineState({ letter: z.string(), stars: z.number().default(0), answer: z.string().default("") }),
})
  .nodes({
    rate: async ({ letter }, { generate }) => {
      const output = z.object({ stars: z.number().int() });
      const { object } = await generate({ model, system: "You rate letters.", prompt: `Rate: ${letter}`, output });
      return { stars: object.stars };
    },
    thank: () => ({ answer: "Thank you!" }),
    apologise: async ({ letter }, { generate }) => {
      const { text } = await generate({ model, prompt: `Apologise in one sentence: ${letter}` });
      return { answer: text };
    },
  })
  .edges({
    [START]: "rate",
    rate: modelRoute(["thank", "apologise"], {
      model,
      prompt: ({ letter }) => `Who answers? ${letter}`,
      describe: { thank: "a happy customer", apologise: "something went wrong" },
      otherwise: "apologise",
    }),
    thank: END,
    apologise: END,
  });

const store = sqliteStore(":memory:");
const { state } = await run(letters, { store, thread: "letter-1", input: { letter: "The lamp is broken." } }).result;
console.log(`${state.stars} of 5: ${state.answer}`);

// a question inside of a tool
const translate = defineTool({
  name: "translate",
  description: "Translates a text into Norwegian.",
  input: z.object({ text: z.string() }),
  effect: "idempotent",
  run: async ({ text }, { generate }) => (await generate({ model, prompt: `Norwegian for: ${text}` })).text,
});
const desk = defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
  .nodes({ tools: toolNode({ tools: [translate] }) })
  .edges({ [START]: "tools", tools: END });
const call = { type: "call", id: "call_1", name: "translate", args: { text: "lamp" } } as const;
const input = { messages: [userMessage("What is a lamp?"), assistantMessage([call])] };
const { messages } = (await run(desk, { input }).result).state;
console.log(getMessageText(messages.at(-1)));

// images and messages
const seeing = defineGraph({ name: "seeing", state: defineState({ seen: z.string().default("") }) })
  .nodes({
    look: async (_state, { generate }) => {
      const example = [userMessage("A photo of rain"), assistantMessage("Rain.")];
      const prompt = { text: "What do you see?", files: [new URL("https://pictures.example/oslo.png")] };
      return { seen: (await generate({ model, messages: example, prompt })).text };
    },
  })
  .edges({ [START]: "look", look: END });
console.log((await run(seeing, { input: {} }).result).state.seen);

// models by name
const byName = await run(letters, {
  input: { letter: "The lamp is broken." },
  models: {
    "openai/gpt-5-mini": {
      id: "house/parrot",
      structuredOutput: true,
      respond: async ({ output }) => ({
        content: [{ type: "text", text: output === undefined ? "Sorry." : '{"stars":2,"value":"apologise"}' }],
        finish: "stop",
      }),
    },
  },
}).result;
console.log(`${byName.state.stars} of 5: ${byName.state.answer}`);
