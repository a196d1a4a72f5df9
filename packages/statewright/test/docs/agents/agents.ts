import { call, failWith, say, scriptedModel } from "@statewright/testing";
import {
  agentRoutes,
  channel,
  createAgent,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  hasToolCall,
  memoryStore,
  modelNode,
  route,
  run,
  START,
  subgraph,
  toolNode,
  toolRegistry,
  turnCountIs,
} from "statewright";
import * as z from "zod";

const euros = new Map([
  ["lamp", 40],
  ["sofa", 900],
]);

const price = defineTool({
  name: "get_price",
  description: "The price of an item, in euros.",
  input: z.object({ item: z.string() }),
  effect: "pure",
  run: ({ item }) => `${euros.get(item)} euros`,
});

const model = scriptedModel([
  call(price, { item: "lamp" }),
  call("final_answer", { item: "lamp", count: 0, euros: 80 }),
  call("final_answer", { item: "lamp", count: 2, euros: 80 }),
  call(price, { item: "sofa" }),
  call("final_answer", { item: "sofa", count: 1, euros: 900 }),
  call("final_answer", { item: "lamp", count: 1, euros: 40 }),
  call(price, { item: "lamp" }),
  say("A lamp is 40 euros."),
]);

const Desk = defineContext({ customer: z.string() });
const Order = z.object({ item: z.string(), count: z.int().positive(), euros: z.number() });

const clerk = createAgent({
  name: "clerk",
  model,
  instructions: (_state, { customer }) => `You take orders. The customer is ${customer}.`,
  context: Desk,
  tools: [price],
  output: Order,
  settings: { temperature: 0, maxOutputTokens: 500 },
  prepareStep: ({ turn }) => (turn === 1 ? { toolChoice: { tool: "get_price" } } : undefined),
  stopWhen: [turnCountIs(8), hasToolCall("call_a_person")],
  onFinish: ({ run: { thread }, ended, messages: all }) => {
    console.log(`(${thread}: ended by its ${ended.by}, ${all.length} messages)`);
  },
  store: memoryStore(),
});

const context = { customer: "Ada" };
const result = await clerk.run({ thread: "t1", input: "Two lamps, please.", context }).result;
if (result.output !== undefined) console.log(`${result.output.count} of ${result.output.item}`);
for (const message of result.state.messages)
  if (message.role === "tool") console.log(`${message.name}: ${JSON.stringify(message.content[0])}`);

const stream = clerk.stream({ thread: "t2", input: "A sofa.", context });
for await (const event of stream) {
  if (event.type === "tool.completed") console.log(`${event.tool} has answered`);
  if (event.type === "message.call_delta" && event.tool === "final_answer") console.log(event.argsText);
}
console.log((await stream.result).status);

const photo = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const seen = await clerk.run({
  thread: "t3",
  input: { text: "One of these.", files: [photo, "https://shop.example/lamp.jpg"] },
  context,
}).result;
console.log(seen.state.messages[0]?.content);

const chat = createAgent({
  name: "chat",
  model: scriptedModel([failWith(new Error("the line is dead")), say("Now I can hear you.")]),
  retry: { attempts: 1 },
  store: memoryStore(),
});
const failed = await chat.run({ thread: "t4", input: "Hello?" }).result.catch(() => "failed");
const answered = await chat.run({ thread: "t4", input: "Still there?", onBusy: "cancel" }).result;
console.log(failed, answered.text);

const spinning = createAgent({
  name: "spinning",
  model: scriptedModel(() => call(price, { item: "lamp" })),
  tools: [price],
  maxTurns: 3,
});
const stopped = await spinning.run({ input: "Two lamps, please." }).result;
console.log(stopped.text);
console.log(stopped.ended);

const tools = toolRegistry([price]);
const byHand = defineGraph({ name: "clerk", state: defineState({ messages: channel.messages() }) })
  .nodes({
    model: modelNode({ model, tools, instructions: "You tell prices." }),
    tools: toolNode({ tools }),
  })
  .edges({
    [START]: "model",
    model: route(["tools", "model", END], agentRoutes.afterModel),
    tools: route(["model", END], agentRoutes.afterTools()),
  });
const observed = await run(byHand, { input: clerk.toInput("What is a lamp?") }).result;
console.log(observed.state.messages.length, "messages by hand");

const inside = defineGraph({
  name: "shop",
  state: defineState({ words: z.string(), total: z.number().default(0) }),
  context: Desk,
})
  .nodes({
    clerk: subgraph(clerk, {
      input: (state) => clerk.toInput(state.words),
      output: (order) => ({ total: order?.euros ?? 0 }),
    }),
  })
  .edges({ [START]: "clerk", clerk: END });
console.log(`${inside.name} has the nodes ${[...inside.nodes.keys()].join()}`);
