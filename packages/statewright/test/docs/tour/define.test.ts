import { isStatewrightError, memoryStore, resume, run } from "statewright";
import { expect, test } from "vitest";
import { article } from "./define.ts";

const context = { editor: "ann" };

test("the tour article is planned, written in parallel, checked, revised, approved and published", async () => {
  const store = memoryStore();
  const handle = run(article, { store, thread: "t", input: { topic: " bees " }, context });
  const steps: string[] = [];
  handle.on((event) => {
    if (event.type === "step.committed") steps.push(event.nodes.join("+"));
  });
  const first = await handle.result;
  expect(steps.slice(1).join(" ")).toBe("plan write spell+facts judge revise write spell+facts judge");
  expect(first).toMatchObject({
    status: "waiting",
    interrupts: [{ key: "publish", node: "ask", payload: { to: "ann", parts: 3 } }],
  });
  const answers = { publish: "yes" } as const;
  const second = await resume(article, { store, thread: "t", context, answers }).result;
  const parts = { What: "bees, draft 1", Why: "bees, draft 1", How: "bees, draft 2" };
  expect(second).toMatchObject({ status: "done", output: { topic: "bees", parts } });
  expect(second.state).toEqual({ topic: "bees", outline: ["What", "Why", "How"], parts, published: true });
});

test("the tour article works without headings and starts again when its editor says so", async () => {
  const none = await run(article, { input: { topic: "bees" }, context: { editor: "ann", headings: [] } }).result;
  expect(none).toMatchObject({ status: "done", output: { parts: {} } });
  const store = memoryStore();
  await run(article, { store, thread: "t", input: { topic: "bees" }, context }).result;
  const again = await resume(article, { store, thread: "t", context, answers: { publish: "again" } }).result;
  expect(again).toMatchObject({ status: "waiting", state: { parts: { What: "bees, draft 3", How: "bees, draft 3" } } });
});

test("the tour article refuses a private channel as input", async () => {
  const input = { topic: "bees", round: 7 };
  const refusal = await run(article, { input, context }).result.catch((error: unknown) => error);
  expect(isStatewrightError(refusal, "invalid_input")).toBe(true);
});
