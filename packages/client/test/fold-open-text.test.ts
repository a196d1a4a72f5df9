import { expect, test } from "vitest";
import { foldOpenText, type ThreadEvent } from "../src/index.ts";

test("the text that a model is writing has no reasoning, neither while it streams nor when the message is complete", () => {
  const head = { at: "2026-01-01T00:00:00.000Z", branch: "main", seq: 1 } as const;
  const content = [
    { type: "reasoning", text: "Hm." },
    { type: "text", text: "It rains." },
  ];
  const events: readonly ThreadEvent[] = [
    { ...head, type: "message.delta", kind: "reasoning", text: "Hm." },
    { ...head, type: "message.delta", kind: "text", text: "It ra" },
    { ...head, type: "snapshot", messages: [{ text: "It ra", reasoning: "Hm." }] },
    { ...head, type: "message.completed", message: { role: "assistant", content } },
  ];
  let shown = "";
  const texts = events.map((event) => {
    shown = foldOpenText(shown, event);
    return shown;
  });
  expect(texts).toEqual(["", "It ra", "It ra", "It rains."]);
});
