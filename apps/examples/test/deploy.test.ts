import { call, virtualClock } from "@statewright/testing";
import { expect, test } from "vitest";
import { createDeployConsole, deploy, deployApp } from "../src/deploy.ts";
import { getResultText, getSchema, runConversation, startConversation, wireText } from "./support/talk.ts";

const texts = [
  "[1/4] Building image...",
  "[2/4] Running tests...",
  "[3/4] Pushing to registry...",
  "[4/4] Rolling out...",
];
const phases = ["Building image", "Running tests", "Pushing to registry", "Rolling out"];

test("deploy emits each step with its place and name before its two seconds of work [S0.48, S2.48]", async () => {
  const live = startConversation([deployApp], [call(deployApp, { env: "production" })]);
  await live.world.waitUntilIdle();
  for (const [index] of texts.entries()) {
    expect(live.updates()).toEqual(
      texts.slice(0, index + 1).map((content, step) => ({
        content,
        details: { step: step + 1, total: 4, phase: phases[step] },
      })),
    );
    await live.world.advance(1_999);
    expect(live.updates()).toHaveLength(index + 1);
    await live.world.advance(1);
  }
  expect(await live.end()).toBe("done");
  expect(deployApp.spec).toMatchObject({
    label: "Deploy App",
    description: "Deploy the application to production.",
  });
});

test("deploy names its environment, which defaults to staging and is not required by the schema [S0.49, S2.49]", async () => {
  const { results, wires } = await runConversation(
    [deployApp],
    [call(deployApp, { env: "production" }), call(deployApp, {}), call("deploy", { env: 7 })],
  );
  const [production, staging, wrong] = results();
  expect(getResultText(production)).toBe("Successfully deployed to production");
  expect(production?.details).toEqual({ env: "production", status: "success" });
  expect(getResultText(staging)).toBe("Successfully deployed to staging");
  expect(wrong?.error?.kind).toBe("invalid_args");
  expect(getSchema(wires[0])).toEqual({
    type: "object",
    properties: { env: { type: "string", description: "Target environment", default: "staging" } },
  });
});

test("deploy stopped before a step is cancelled, with updates only for earlier steps [S0.50, S2.50]", async () => {
  for (const step of [1, 2, 3, 4]) {
    const live = startConversation([deployApp], [call(deployApp, { env: "production" })]);
    await live.world.advance((step - 1) * 2_000 + 1_000);
    expect(live.updates()).toHaveLength(step);
    live.handle.cancel("stop");
    expect(await live.end()).toBe("cancelled");
    expect(live.updates()).toHaveLength(step);
    expect(live.results()[0]?.error?.kind).toBe("cancelled");
  }
});

test("deploy prints the expected console output byte for byte [S0.51, S2.51, S0.48, S2.48]", async () => {
  let printed = "";
  const world = virtualClock();
  let ended = false;
  const program = deploy(
    (text) => {
      printed += text;
    },
    { world },
  ).then(() => {
    ended = true;
  });
  while (!ended) if (!(await world.next())) await new Promise((resolve) => setImmediate(resolve));
  await program;
  expect(printed).toBe(
    [
      "",
      "🚀 Starting deploy...",
      ...texts.map((text) => `  ${text}`),
      "  ✅ deploy complete",
      "Successfully deployed to production. The deployment completed all 4 stages.",
      "",
    ].join("\n"),
  );
});

test("the console shows a failed deployment and a progress line [S0.51, S2.51]", async () => {
  let printed = "";
  const live = startConversation([deployApp], [call("deploy", { env: 7 })]);
  const shown = createDeployConsole((text) => {
    printed += text;
  });
  await live.end();
  for (const event of live.events) shown(event);
  expect(printed).toBe("\n🚀 Starting deploy...\n  ❌ deploy failed\nDone.\n");
  printed = "";
  shown({
    type: "tool.progress",
    seq: 1,
    at: 0,
    branch: "main",
    node: "tools",
    task: "1:0",
    callId: "c",
    tool: "deploy",
    text: "Halfway",
  });
  expect(printed).toBe("  💬 Halfway\n");
});

test("the model reads the final text of deploy and none of the steps [S0.53, S2.53]", async () => {
  const { wires } = await runConversation([deployApp], [call(deployApp, { env: "production" })]);
  expect(wires).toHaveLength(2);
  expect(wireText(wires[1])).toContain("Successfully deployed to production");
  for (const text of texts) expect(wireText(wires[1])).not.toContain(text);
});
