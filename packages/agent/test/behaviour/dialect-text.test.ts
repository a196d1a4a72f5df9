/** A retracted and repeated message in the event dialects of other systems. */

import { createAgent } from "@statewright/agent";
import { bitopDialect, piDialect, yoagentDialect } from "@statewright/agent/dialects";
import { type RunEvent, StatewrightError } from "@statewright/core";
import { failWith, say, scriptedModel } from "@statewright/testing";
import { expect, test } from "vitest";

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
