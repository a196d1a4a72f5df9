/** Open work of a run: what a snapshot shows between the first delta and the commit. */
import { expect, test } from "vitest";
import type { RunEvent } from "../../src/index.ts";
import { createOpenWork } from "../../src/run/events/open-work.ts";

const place = { seq: 1, at: 0, branch: "main", node: "ask", task: "0:0" } as const;
const inner = { ...place, within: "research", withinId: "research" } as const;

function fold(...events: readonly RunEvent[]) {
  const work = createOpenWork();
  for (const event of events) work.apply({ event });
  return work;
}

const say = (messageId: string, text: string, at: object = place): RunEvent => ({
  ...place,
  ...at,
  ...{ type: "message.delta", kind: "text", messageId, text },
});
const args = (argsText: string): RunEvent => ({
  ...place,
  ...{ type: "message.call_delta", messageId: "m", callId: "c", tool: "probe", argsText },
});

test("an open message has its text, its reasoning and the arguments of its calls so far [SE6]", () => {
  const thought: RunEvent = { ...place, type: "message.delta", kind: "reasoning", messageId: "m", text: "Hm" };
  const work = fold(thought, say("m", "In "), say("m", "Oslo"), args('{"city":'), args('"Oslo"'));
  const calls = [{ callId: "c", tool: "probe", argsText: '{"city":"Oslo"' }];
  const message = { id: "m", branch: "main", node: "ask", task: "0:0", text: "In Oslo", reasoning: "Hm", calls };
  expect(work.read()).toEqual({ messages: [{ ...message, complete: false }], tools: [] });
});

test("a retracted message is not open, and the next answer under its id begins anew [SE6]", () => {
  const retracted: RunEvent = { ...place, type: "message.retracted", messageId: "m", model: "x", kind: "broken_reply" };
  expect(fold(say("m", "It is dry"), retracted).read().messages).toEqual([]);
  expect(fold(say("m", "It is dry"), retracted, say("m", "It rains")).read().messages[0]?.text).toBe("It rains");
});

test("a message with failed requests has their number, with text and without, until its commit [SE6]", () => {
  const retracted: RunEvent = { ...place, type: "message.retracted", messageId: "m", model: "x", kind: "broken_reply" };
  const retried: RunEvent = {
    ...{ ...place, type: "model.retried", messageId: "m", model: "x", next: "x", attempt: 3, delayMs: 0 },
    ...{ kind: "broken_reply", error: { name: "Error", message: "no" } },
  };
  const failed = { id: "m", branch: "main", node: "ask", task: "0:0" };
  const first = fold(say("m", "It is dry"), retracted);
  expect([first.read().retried, first.isEmpty()]).toEqual([[{ ...failed, failedRequests: 1 }], false]);
  const work = fold(say("m", "It is dry"), retracted, retried, say("m", "It rains"));
  expect(work.read().retried).toEqual([{ ...failed, failedRequests: 3 }]);
  expect(createOpenWork(work.read()).read()).toEqual(work.read());
  work.apply({ committed: "" });
  expect(work.read()).not.toHaveProperty("retried");
});

test("a complete message replaces its deltas and stays open until its commit [SE6]", () => {
  const completed: RunEvent = {
    ...{ ...place, type: "message.completed" },
    message: {
      ...{ role: "assistant", id: "m", finish: "calls" },
      content: [
        { type: "reasoning", text: "Hm" },
        { type: "text", text: "In Oslo" },
        { type: "call", id: "c", name: "probe", args: { city: "Oslo" } },
      ],
    },
  };
  const work = fold(say("m", "In "), completed);
  expect(work.read().messages).toMatchObject([
    { text: "In Oslo", reasoning: "Hm", calls: [{ argsText: '{"city":"Oslo"}' }], complete: true },
  ]);
  work.apply({ committed: "" });
  expect(work.isEmpty()).toBe(true);
});

test("a commit ends the work of its own graph and of the graphs inside, and of no other [SE6]", () => {
  const deep = { ...place, within: "research.plan", withinId: "research/plan" };
  const near = { ...place, within: "research2", withinId: "research2" };
  const work = fold(say("m", "outer"), say("m", "inner", inner), say("m", "deep", deep), say("m", "near", near));
  work.apply({ committed: "research" });
  expect(work.read().messages.map(({ text }) => text)).toEqual(["outer", "near"]);
  work.apply({ committed: "" });
  expect(work.isEmpty()).toBe(true);
});

test("an open call passes from started to its end, with its newest progress and partial result [SE6]", () => {
  const call = { ...place, callId: "c", tool: "probe", label: "Probe" };
  const work = fold({ ...call, type: "tool.started", args: {} });
  expect(work.read().tools).toMatchObject([{ callId: "c", label: "Probe", status: "started", progress: [] }]);
  for (const event of [
    { ...call, type: "tool.body_started", args: {} },
    { ...call, type: "tool.progress", text: "half" },
    { ...call, type: "tool.update", partial: { content: "1" } },
    { ...call, type: "tool.update", partial: { content: "2" } },
  ] as const)
    work.apply({ event });
  const running = work.read();
  expect(running.tools).toMatchObject([{ status: "running", progress: ["half"], update: { content: "2" } }]);
  work.apply({ event: { ...call, type: "tool.failed", result: { content: "no", isError: true } as never } });
  expect(work.read().tools[0]?.status).toBe("failed");
  expect(running.tools[0]?.status).toBe("running");
});
