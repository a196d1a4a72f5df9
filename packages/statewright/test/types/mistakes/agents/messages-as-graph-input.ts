/** The input of the graph of an agent is a list of messages. */

import { say, scriptedModel } from "@statewright/testing";
import { createAgent, run, userMessage } from "statewright";
import { search, store } from "../shop.ts";

const agent = createAgent({ name: "support", model: scriptedModel([say("Hello")]), tools: [search] });
run(agent, { store, input: agent.toInput("Do you have tea?") });
agent.run({ store, input: "Do you have tea?" });
// @ts-expect-error Type 'UserMessage[]' is not assignable to type 'Readonly<Record<never, never>> & MessagesInput<"pass agent.toInput(text), or call agent.run with the text">'.
export const handle = run(agent, { store, input: [userMessage("Do you have tea?")] });
