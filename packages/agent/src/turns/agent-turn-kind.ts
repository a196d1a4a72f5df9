/** Agent turn kind: a model node, which takes one turn of an agent in each task. */
import { functionKind, type NodeKind } from "@statewright/core/adapter";

/**
 * Kind of a node created by `modelNode`. Its body makes one model call, between the hooks at both ends of the agent's
 * run.
 */
export const agentTurnKind: NodeKind = Object.freeze({
  ...functionKind,
  shownAs: "turn",
  execute: (engine, task) => engine.runBody(task, task.node.body),
  findProblems: ({ name: node }, { state: { channels } }) =>
    Object.hasOwn(channels, "messages")
      ? []
      : [
          {
            code: "unknown_channel",
            node,
            message: `the model node "${node}" has no channel "messages" for its conversation`,
            hint: "add messages: messages() to the state",
          },
        ],
} satisfies NodeKind);
