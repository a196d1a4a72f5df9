/** Graphs of the recorded tapes: one conversation for each thing that a run can do, on scripted models. */
import { agentTool, createAgent } from "@statewright/agent";
import { confirmTools } from "@statewright/agent/middleware";
import { defineGraph, defineState, defineTool, END, type Graph, START } from "@statewright/core";
import { call, failWith, say, scriptedModel, stall, think } from "@statewright/testing";
import * as z from "zod";

/** Tools of the assistants: one that runs at once, and one that a person confirms. */
const tools = [
  defineTool({
    name: "look",
    description: "Looks up a word.",
    input: z.object({ word: z.string() }),
    effect: "pure",
    run: ({ word }) => `${word}: found`,
  }),
  defineTool({
    name: "pay",
    description: "Pays an amount.",
    input: z.object({ amount: z.number() }),
    safety: { confirm: "always" },
    run: ({ amount }) => `paid ${amount}`,
  }),
];

type Script = Parameters<typeof scriptedModel>[0];

function createAssistant(script: Script): Graph {
  const retry = { attempts: 2, initialMs: 0, jitter: 0 };
  const model = scriptedModel(script);
  return createAgent({ name: "assistant", model, tools, middleware: [confirmTools()], retry });
}

const twoApprovals = [call("pay", { amount: 1 }), call("pay", { amount: 2 })];

function createBoss(): Graph {
  const researcher = createAgent({ name: "researcher", model: scriptedModel([say("ants: found")]) });
  const model = scriptedModel([call("researcher", { task: "ants" }), say("Done.")]);
  return createAgent({ name: "boss", model, tools: [agentTool(researcher, { description: "Researches." })] });
}

function createFailing(): Graph {
  return defineGraph({ name: "assistant", state: defineState({ note: z.string().default("") }) })
    .nodes({
      work: () => {
        throw new Error("secret path /app/x");
      },
    })
    .edges({ [START]: "work", work: END });
}

const scenes: Readonly<Record<string, () => Graph>> = {
  text: () => createAssistant([[think("Greet first."), say("Hello there, friend.")]]),
  tool: () => createAssistant([[say("Let me look."), call("look", { word: "tea" })], say("Tea is found.")]),
  "parallel-tools": () =>
    createAssistant([[call("look", { word: "tea" }), call("look", { word: "milk" })], say("Both are found.")]),
  "sub-agent": createBoss,
  retraction: () =>
    createAssistant([failWith({ status: 503 }, { after: say("one two three") }), say("The right answer.")]),
  waiting: () => createAssistant([twoApprovals, say("Paid one of two.")]),
  fork: () => createAssistant([say("First answer."), say("Second answer.")]),
  crash: () => createAssistant([stall({ after: say("Half an answer") })]),
  "crash-again": () => createAssistant([say("The whole answer.")]),
  cancel: () => createAssistant([stall({ after: say("Never to") })]),
  failure: createFailing,
};

/** Creates the graph of a tape. `crash-again` is the graph of the process that follows the crash. */
export function createTapeGraph(name: string): Graph {
  const create = scenes[name];
  if (create === undefined)
    throw new Error(`createTapeGraph: expected the name of a tape, got ${JSON.stringify(name)}.`);
  return create();
}

/** Names of all tapes. */
export const tapeNames: readonly string[] = Object.keys(scenes).filter((name) => name !== "crash-again");
