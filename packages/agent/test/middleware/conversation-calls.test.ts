import type { Message } from "@statewright/core";
import { expect, test } from "vitest";
import { listEarlierSiblings } from "../../src/middleware/conversation-calls.ts";

/** Conversation with numbered calls; the last call has the id of the first one, and the middle call is answered. */
function conversation(count: number, onLook: () => void): readonly Message[] {
  const content = Array.from({ length: count }, (_, nth) => ({
    type: "call" as const,
    id: `c${nth === count - 1 ? 0 : nth}`,
    name: "ping",
    args: {},
  }));
  const asking: Message = {
    role: "assistant",
    id: "asks",
    finish: "calls",
    get content() {
      onLook();
      return content;
    },
  };
  const answer: Message = { role: "tool", id: "a", callId: `c${count / 2}`, name: "ping", content: [], isError: false };
  return Object.freeze([{ role: "user", id: "u", content: [{ type: "text", text: "go" }] }, asking, answer]);
}

test("a message is scanned once for earlier sibling calls, however many of its calls need them", () => {
  let looks = 0;
  const messages = conversation(100, () => {
    looks += 1;
  });
  const lengths = Array.from({ length: 99 }, (_, nth) => listEarlierSiblings(messages, `c${nth}`).length);
  expect(looks).toBe(1);
  expect(lengths.slice(48, 53)).toEqual([48, 49, 98, 50, 51]);
  // The first position of a duplicate id counts; under its replacement id all other calls are earlier.
  expect([lengths[0], listEarlierSiblings(messages, "c0#2").length]).toEqual([0, 98]);
});
