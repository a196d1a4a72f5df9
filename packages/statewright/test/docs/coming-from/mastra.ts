import { call, say, scriptedModel } from "@statewright/testing";
import {
  createAgent,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  memoryTools,
  resume,
  run,
  START,
  sqliteStore,
} from "statewright";
import { recallMemories } from "statewright/middleware";
import * as z from "zod";

const store = sqliteStore("mastra.db");

const weather = defineTool({
  name: "get_weather",
  description: "Current weather for a city.",
  input: z.object({ city: z.string() }),
  effect: "pure",
  run: ({ city }) => `${city}: rain`,
});

const User = defineContext({ userId: z.string() });
const mine = ({ context }: { readonly context: { readonly userId: string } }) => ["users", context.userId];

const agent = createAgent({
  name: "weather",
  model: scriptedModel([call(weather, { city: "Oslo" }), say("It rains in Oslo.")]),
  instructions: "You tell the weather.",
  context: User,
  tools: [weather, ...memoryTools({ namespace: mine })],
  middleware: [recallMemories({ namespace: mine })],
  store,
});
const { text } = await agent.run({ thread: "t1", input: "Does it rain?", context: { userId: "ada" } }).result;
console.log(text);

const Order = defineState({ item: z.string(), approved: z.boolean().default(false) });
const order = defineGraph({ name: "order", state: Order, interrupts: { approve: z.boolean() } })
  .nodes({
    check: async ({ item }, { interrupt }) => ({ approved: await interrupt("approve", { payload: { item } }) }),
    ship: ({ item }) => console.log(`shipping ${item}`),
  })
  .edges({ [START]: "check", check: "ship", ship: END });

const first = await run(order, { store, thread: "o1", input: { item: "lamp" } }).result;
console.log(first.status);
const second = await resume(order, { store, thread: "o1", answers: { approve: true } }).result;
console.log(second.status, second.state.approved);
await store.close();
