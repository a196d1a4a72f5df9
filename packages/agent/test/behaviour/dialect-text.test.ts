/** Messages and updates of tools in the event dialects of other systems. */

import { createAgent } from "@statewright/agent";
import { bitopDialect, piDialect, yoagentDialect } from "@statewright/agent/dialects";
import { defineTool, type RunEvent, StatewrightError } from "@statewright/core";
import { call, failWith, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";
import * as z from "zod";

const cut = new StatewrightError("model_failed", { what: "cut", next: "Again", details: { retryable: true } });

async function recordRun(): Promise<RunEvent[]> {
  const model = scriptedModel([failWith(cut, { after: say("It is dry") }), say("It rains.")]);
  const agent = createAgent({ name: "chat", model, retry: { attempts: 2, initialMs: 0 } });
  const events: RunEvent[] = [];
  const handle = agent.run({ input: "Oslo?" });
  handle.on((event) => events.push(event));
  await handle.result;
  return events;
}

test("in every dialect a reader that collects text since the last message start gets the text of that message", async () => {
  const events = await recordRun();
  for (const dialect of [piDialect(), yoagentDialect(), bitopDialect()]) {
    const observed = events.flatMap((event): readonly object[] => dialect(event)).map((each) => JSON.stringify(each));
    const begins = observed
      .map((each, index) => (/message_?start/i.test(each) ? index : -1))
      .filter((index) => index >= 0);
    const last = observed.slice(begins.at(-1));
    expect(observed.join()).toContain("dry");
    expect(begins).toHaveLength(2);
    expect(last.join()).not.toContain("dry");
    expect(last.join()).toContain("rains.");
  }
});

test("updates have a list of blocks as content in every dialect, from text, blocks and progress [FX89]", async () => {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    input: z.object({}),
    run: (_args, { update, progress }) => {
      update?.({ content: "one", details: { nth: 1 } });
      update?.({ content: [{ type: "text", text: "two" }] });
      progress("three");
      return "done";
    },
  });
  const agent = createAgent({ name: "chat", model: scriptedModel([call("look", {}), say("ok")]), tools: [look] });
  const events: RunEvent[] = [];
  const handle = agent.run({ input: "go" });
  handle.on((event) => events.push(event));
  await handle.result;
  const text = (content: string) => ({ content: [{ type: "text", text: content }] });
  const updates = [{ ...text("one"), details: { nth: 1 } }, text("two")];
  const [pi, yoagent, bitop] = [piDialect(), yoagentDialect(), bitopDialect()];
  expect(
    events.flatMap(pi).flatMap((event) => (event.type === "tool_execution_update" ? [event.partialResult] : [])),
  ).toEqual([...updates, text("three")]);
  expect(
    events.flatMap(yoagent).flatMap((event) => (event.type === "ToolExecutionUpdate" ? [event.partialResult] : [])),
  ).toEqual(updates);
  expect(events.flatMap(bitop).flatMap((event) => (event.type === "tool_update" ? [event.partial] : []))).toEqual(
    updates,
  );
});
