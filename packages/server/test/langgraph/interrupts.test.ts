/** Interrupts in the shapes of LangGraph, and values of `command.resume` as answers. */
import type { OpenInterrupt } from "@statewright/core";
import { describe, expect, test } from "vitest";
import { RequestProblem } from "../../src/http/problem.ts";
import { parseResume } from "../../src/langgraph/parse-resume.ts";
import { groupInterrupts, toWireInterrupt } from "../../src/langgraph/to-wire-interrupts.ts";

function createApproval(callId: string, amount: number): OpenInterrupt {
  const payload = { callId, tool: "pay", args: { amount }, reason: "Pay needs approval" };
  return { id: `1:0:${callId}`, key: "approve", node: "tools", payload, schema: undefined };
}

const pick: OpenInterrupt = {
  ...{ id: "1:0/client:c3", key: "pick_color", node: "tools", schema: {} },
  payload: { callId: "c3", tool: "pick_color", args: { among: ["red"] } },
};
const review: OpenInterrupt = {
  id: "2:0/review",
  key: "review",
  node: "ask",
  payload: { draft: "d" },
  schema: { type: "boolean" },
};
const two = [createApproval("c1", 1), createApproval("c2", 2)];

const group = (interrupts: readonly OpenInterrupt[], hitl = true) => groupInterrupts(interrupts, { hitl });

describe("interrupts on the wire", () => {
  test("the approvals of a step are a single interrupt with a request for each call [V45]", () => {
    const [only, ...others] = group(two).map(toWireInterrupt);
    expect(others).toEqual([]);
    expect(only).toEqual({
      id: "1:0:c1",
      value: {
        action_requests: [
          { name: "pay", args: { amount: 1 }, description: "Pay needs approval" },
          { name: "pay", args: { amount: 2 }, description: "Pay needs approval" },
        ],
        review_configs: [
          { action_name: "pay", allowed_decisions: ["approve", "edit", "reject", "respond"] },
          { action_name: "pay", allowed_decisions: ["approve", "edit", "reject", "respond"] },
        ],
      },
    });
  });

  test("a call of a client tool and a question of a graph are interrupts of their own [V45]", () => {
    expect(group([pick, review]).map(toWireInterrupt)).toEqual([
      { id: pick.id, value: { type: "tool", toolCall: { id: "c3", name: "pick_color", args: { among: ["red"] } } } },
      { id: review.id, value: { draft: "d" }, response_schema: { type: "boolean" } },
    ]);
  });

  test("approvals of a sub-agent have a key with its path, and are approvals [V45]", () => {
    const inner = { ...createApproval("c1", 1), key: "research.approve" };
    expect(group([inner]).map(({ kind }) => kind)).toEqual(["approvals"]);
  });

  test("with hitl false each interrupt is shown with its own payload [V45]", () => {
    expect(group(two, false).map(toWireInterrupt)).toEqual(two.map(({ id, payload }) => ({ id, value: payload })));
  });
});

describe("answers", () => {
  const answer = (value: unknown, interrupts: readonly OpenInterrupt[]) => parseResume(value, group(interrupts));

  test("decisions are answers in the order of the calls: approve, edit, reject with a reason, respond [V45]", () => {
    const four = [...two, createApproval("c3", 3), createApproval("c4", 4)];
    const decisions = [
      { type: "approve" },
      { type: "edit", edited_action: { name: "pay", args: { amount: 9 } } },
      { type: "reject", message: "too much" },
      { type: "respond", message: "paid by hand" },
    ];
    expect(answer({ decisions }, four)).toEqual({
      "1:0:c1": { approved: true },
      "1:0:c2": { approved: true, args: { amount: 9 } },
      "1:0:c3": { approved: false, reason: "too much" },
      "1:0:c4": { respond: "paid by hand" },
    });
  });

  test("decisions by the id of the approval or of its call may be given one by one [V45]", () => {
    expect(answer({ "1:0:c2": { type: "approve" } }, two)).toEqual({ "1:0:c2": { approved: true } });
    expect(answer({ c2: { type: "reject" } }, two)).toEqual({ "1:0:c2": { approved: false } });
    expect(answer({ decisions: { c1: { type: "approve" } } }, two)).toEqual({ "1:0:c1": { approved: true } });
    const batch = { decisions: [{ type: "approve" }, { type: "reject" }] };
    expect(answer({ "1:0:c1": batch }, two)).toEqual({ "1:0:c1": { approved: true }, "1:0:c2": { approved: false } });
  });

  test("the result of a client tool is given by the id of its call or of its interrupt, and an error is a failure [V45]", () => {
    expect(answer({ c3: { color: "red" } }, [pick])).toEqual({ [pick.id]: { color: "red" } });
    expect(answer({ [pick.id]: { c3: { color: "red" } } }, [pick, review])).toEqual({ [pick.id]: { color: "red" } });
    expect(answer({ c3: { error: "no screen" } }, [pick])).toEqual({
      [pick.id]: { isError: true, content: "no screen" },
    });
  });

  test("a value answers the only open interrupt, whatever its form [V30]", () => {
    expect(answer(true, [review])).toEqual({ [review.id]: true });
    expect(answer({ text: "yes" }, [review])).toEqual({ [review.id]: { text: "yes" } });
    expect(answer("yes", [createApproval("c1", 1)])).toEqual({ "1:0:c1": "yes" });
  });

  test.each<[string, unknown, readonly OpenInterrupt[], RegExp]>([
    ["a value for several interrupts", true, [review, pick], /values by the id of the interrupt/],
    ["too few decisions", { decisions: [{ type: "approve" }] }, two, /expected 2 decisions/],
    ["an unknown id beside a known one", { [review.id]: true, other: true }, [review, pick], /id of an open interrupt/],
    [
      "a decision of an unknown type",
      { decisions: [{ type: "maybe" }] },
      [createApproval("c1", 1)],
      /type of decision/,
    ],
    [
      "an edit that names another tool",
      { decisions: [{ type: "edit", edited_action: { name: "wipe", args: {} } }] },
      [createApproval("c1", 1)],
      /edited arguments for the tool "pay"/,
    ],
    ["an edit without arguments", { decisions: [{ type: "edit" }] }, [createApproval("c1", 1)], /edited_action/],
  ])("%s is refused with 422 [V30, V45]", (_, value, interrupts, message) => {
    expect(() => answer(value, interrupts)).toThrow(message);
    expect(() => answer(value, interrupts)).toThrow(
      expect.objectContaining({ problem: expect.objectContaining({ status: 422 }) }),
    );
  });

  test("an answer to a thread that waits for none is a conflict [V30]", () => {
    expect(() => answer({ decisions: [] }, [])).toThrow(RequestProblem);
    expect(() => answer(true, [])).toThrow(
      expect.objectContaining({ problem: expect.objectContaining({ status: 409, code: "already_answered" }) }),
    );
  });
});
