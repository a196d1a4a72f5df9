/** Agents of the tests of the UI message stream. */
import { agentTool, createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import { defineTool, type Model, type Store } from "@statewright/core";
import * as z from "zod";

export const pay = defineTool({
  name: "pay",
  description: "Pays money to a person.",
  input: z.object({ to: z.string() }),
  safety: { access: "write", confirm: "always" },
  run: ({ to }) => ({ paid: to }),
});

export const look = defineTool({
  name: "look",
  description: "Looks something up, with progress.",
  input: z.object({ at: z.string() }),
  run: ({ at }, { progress, update, emit }) => {
    progress("looking");
    update?.({ content: `half of ${at}` });
    emit("place", { at });
    if (at === "nothing") throw new Error("there is nothing");
    return `seen ${at}`;
  },
});

export const pickColor = defineTool({
  name: "pick_color",
  description: "Asks the page for a color.",
  input: z.object({ question: z.string() }),
  output: z.object({ color: z.string() }),
});

/** Creates the agent of the tests, with a sub-agent `helper` when it has a model. */
export function createChat({ model, helper, store }: { model: Model; helper?: Model; store: Store }) {
  const middleware = [confirmTools()];
  const inner = helper && createAgent({ name: "helper", model: helper, tools: [pay], middleware });
  const help = inner && agentTool(inner, { description: "Delegates a task to the helper." });
  return createAgent({
    name: "chat",
    model,
    tools: help === undefined ? [pay, look, pickColor] : [pay, look, pickColor, help],
    middleware,
    store,
    retry: { attempts: 3, initialMs: 0 },
  });
}
