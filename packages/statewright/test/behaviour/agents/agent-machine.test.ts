/** The transition records of an agent run are a path through the XState machine of its graph. */
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, type RunEvent, type RunHandle, type TransitionRecord } from "statewright";
import { expect, test } from "vitest";
import { type AnyStateMachine, initialTransition, transition } from "xstate";
import * as z from "zod";

function turn() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const tool = (name: string, run: () => Promise<string>) =>
    defineTool({ name, description: `Is ${name}.`, input: z.object({}), run });
  const agent = createAgent({
    name: "assistant",
    model: scriptedModel([[call("slow", {}), call("quick", {})], say("Both have answered.")]),
    tools: [tool("slow", () => opened.then(() => "at last")), tool("quick", async () => "at once")],
  });
  return { agent, open };
}

function listEvents(handle: RunHandle<unknown>): readonly RunEvent[] {
  const events: RunEvent[] = [];
  handle.on((event) => events.push(event));
  return events;
}

function listRecords(events: readonly RunEvent[]): readonly TransitionRecord[] {
  return events.filter((event): event is TransitionRecord => event.type === "transition.taken");
}

/** Replays the events of the records in XState on the compiled machine; returns each state. */
function walkMachine(machine: AnyStateMachine, records: readonly TransitionRecord[]): readonly unknown[] {
  let [snapshot] = initialTransition(machine);
  return records.map(({ event, guards }) => {
    const to = guards.flatMap(({ params, result }) =>
      result && typeof params === "object" && params !== null && "target" in params ? [params.target] : [],
    );
    [snapshot] = transition(machine, snapshot, { type: event, ...(event === "step.commit" ? { to } : {}) });
    return snapshot.value;
  });
}

test("a message with tool calls enters the tools state of the agent's machine, and the last answer leaves the state [K1]", async () => {
  const { agent, open } = turn();
  expect(Object.keys(agent.machine.states)).toEqual(expect.arrayContaining(["model", "tools"]));
  const handle = agent.run({ input: "Ask both." });
  const events = listEvents(handle);
  await new Promise<void>((resolve) => {
    handle.on((event) => event.type === "tool.completed" && event.tool === "quick" && resolve());
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(listRecords(events).at(-1)?.to).toEqual({ tools: "executing" });
  open();
  const { state } = await handle.result;
  const records = listRecords(events);
  expect(records.map(({ to }) => to)).toEqual([
    ...[{ model: "executing" }, { model: "committing" }],
    ...[{ tools: "executing" }, { tools: "committing" }],
    ...[{ model: "executing" }, { model: "committing" }, "done"],
  ]);
  expect(walkMachine(agent.machine, records)).toEqual(records.map(({ to }) => to));
  const leaves = events.findIndex((event) => event.type === "transition.taken" && event.event.includes("actor.tools"));
  const answered = events.slice(0, leaves).filter(({ type }) => type === "tool.completed");
  expect(answered).toHaveLength(2);
  expect(state.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "tool", "assistant"]);
});

test("an answer without tool calls does not enter the tools state [K1]", async () => {
  const agent = createAgent({
    name: "assistant",
    model: scriptedModel([say("Hello.")]),
    tools: [defineTool({ name: "quick", description: "Is quick.", input: z.object({}), run: () => "at once" })],
  });
  const handle = agent.run({ input: "Hello?" });
  const events = listEvents(handle);
  await handle.result;
  const records = listRecords(events);
  expect(records.map(({ to }) => to)).toEqual([{ model: "executing" }, { model: "committing" }, "done"]);
  expect(walkMachine(agent.machine, records)).toEqual(records.map(({ to }) => to));
});
