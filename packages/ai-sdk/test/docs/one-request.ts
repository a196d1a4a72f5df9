import { anthropic } from "@ai-sdk/anthropic";
import { aiModel } from "@statewright/ai-sdk";

const model = aiModel(anthropic("claude-sonnet-4-5"));

const reply = await model.respond(
  {
    instructions: "Be brief.",
    messages: [{ role: "user", id: "u1", content: [{ type: "text", text: "Is it raining in Oslo?" }] }],
    tools: [],
  },
  { signal: AbortSignal.timeout(60_000), delta: (delta) => delta.type === "text" && process.stdout.write(delta.text) },
);
console.log(reply.finish, reply.usage);
