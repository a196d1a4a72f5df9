import { call } from "@statewright/testing";
import { defineTool } from "statewright";
import { expect, test } from "vitest";
import * as z from "zod";
import { processRows } from "../src/rows.ts";
import { getResultText, runConversation, startConversation, wireText } from "./support/talk.ts";

test("process_rows emits an update at every hundredth row, and its final text counts all rows [S0.43, S2.43]", async () => {
  const { results, updates, wires } = await runConversation([processRows], [call(processRows, { total: 250 })]);
  expect(updates()).toEqual(
    [0, 100, 200].map((row) => ({ content: `Processed ${row}/250 rows`, details: { progress: row / 250 } })),
  );
  expect(getResultText(results()[0])).toBe("Processed all 250 rows");
  expect(wireText(wires[1])).not.toContain("Processed 100/250");
});

test("process_rows stopped at a row is cancelled and processes no later row [S0.43, S2.43]", async () => {
  const live = startConversation([processRows], [call(processRows, { total: 1_000 })]);
  await live.world.advance(250);
  live.handle.cancel("enough");
  expect(await live.end()).toBe("cancelled");
  expect(live.updates()).toHaveLength(3);
  expect(live.results()[0]?.error?.kind).toBe("cancelled");
  expect(live.world.timers).toBe(0);
  expect(live.wires).toHaveLength(1);
});

test("a partial result is not built when there is no listener [S0.45, S2.45]", async () => {
  let built = 0;
  const tool = defineTool({
    name: "count",
    description: "Counts the partial results that it builds.",
    input: z.object({}),
    run: (_args, { update }) => {
      update?.({ content: `partial ${++built}` });
      return "done";
    },
  });
  const { createAgent } = await import("statewright");
  const { say, scriptedModel } = await import("@statewright/testing");
  const agent = createAgent({ name: "quiet", model: scriptedModel([call("count", {}), say("Done.")]), tools: [tool] });
  expect((await agent.run({ input: "Go." }).result).status).toBe("done");
  expect(built).toBe(0);
});
