/** Model nodes are of the kind of an agent turn, in graphs of every form. */
import { channel, defineGraph, defineState, END, START } from "@statewright/core";
import { nodeKind } from "@statewright/core/adapter";
import { describeGraph } from "@statewright/core/inspect";
import { say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";
import { createAgent, modelNode, team } from "../../src/index.ts";
import { agentTurnKind } from "../../src/turns/agent-turn-kind.ts";

const model = scriptedModel(() => say("Hello"));
const State = defineState({ messages: channel.messages() });

test("the model nodes of an agent, of a team and of a user-defined graph are shown as agent turns", () => {
  const agent = createAgent({ name: "clerk", model, tools: [] });
  const group = team({ name: "desk", agents: [agent], start: "clerk" });
  const graph = defineGraph({ name: "own", state: State })
    .nodes({ model: modelNode({ model }) })
    .edges({ [START]: "model", model: END });
  const kinds = [agent, createAgent({ name: "mute", model }), group, graph].map(
    (each) => describeGraph(each).nodes.find(({ kind }) => kind !== "start")?.kind,
  );
  expect(kinds).toEqual(["turn", "turn", "turn", "turn"]);
});

test("a model node declares the kind of an agent turn, and options next to it are a policy", () => {
  const node = modelNode({ model });
  expect(node[nodeKind]).toBe(agentTurnKind);
  const define = (options: object): unknown =>
    defineGraph({ name: "own", state: State })
      .nodes({ model: { ...node, ...options } })
      .edges({ [START]: "model", model: END })
      .nodes.get("model")?.policy;
  expect(define({ timeoutMs: 5 })).toEqual({ timeoutMs: 5 });
  expect(() => define({ timeout: 5 })).toThrow('the node "model" has no option "timeout"');
});

test("a model node in a graph without messages is a problem of the definition", () => {
  const define = (): unknown =>
    defineGraph({ name: "own", state: defineState({ text: z.string() }) })
      .nodes({ model: modelNode({ model }) as never })
      .edges({ [START]: "model", model: END } as never);
  expect(define).toThrow('the model node "model" has no channel "messages"');
});

test("a graph has the same fingerprint with an agent turn as with a function under the same name", () => {
  const body = (): undefined => undefined;
  const [turn, plain] = [modelNode({ model }), body].map(
    (node) =>
      defineGraph({ name: "own", state: State })
        .nodes({ model: node as never })
        .edges({ [START]: "model", model: END } as never)
        .nodes.get("model")?.logic.savedAs,
  );
  expect(turn).toBe(plain);
});
