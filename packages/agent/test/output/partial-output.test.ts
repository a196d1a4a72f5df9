/** Partial output: read while it is streamed, at a cost proportional to its length. */
import type { RunEvent } from "@statewright/core";
import { expect, test } from "vitest";
import { streamPartialOutputs } from "../../src/output/partial-output.ts";

const inTask = { seq: 1, at: 0, branch: "main", node: "model", task: "1:0" };

/** Events of one message, one character per delta. */
async function* written(text: string): AsyncGenerator<RunEvent> {
  for (const letter of text) yield { ...inTask, type: "message.delta", kind: "text", messageId: "m", text: letter };
  const content = [{ type: "text", text }] as const;
  yield { ...inTask, type: "message.completed", message: { role: "assistant", id: "m", content, finish: "length" } };
}

async function listReadings(text: string): Promise<readonly (readonly number[])[]> {
  const readings: (readonly number[])[] = [];
  for await (const partial of streamPartialOutputs(written(text), { isWrapped: false }))
    readings.push(partial as readonly number[]);
  return readings;
}

test("all partial output reads together copy a linear amount of text, and the last one is complete", async () => {
  const numbers = Array.from({ length: 4_000 }, (_, n) => 10_000 + n);
  const whole = JSON.stringify(numbers);
  for (const text of [whole, whole.slice(0, -1)]) {
    const readings = await listReadings(text);
    const copied = readings.reduce((sum, { length }) => sum + length, 0);
    expect(copied).toBeLessThan(40 * text.length);
    expect(readings.at(-1)).toEqual(text === whole ? numbers : numbers.slice(0, -1));
    // A small output is reported after each member.
    expect(readings.slice(0, 100).map(({ length }) => length)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  }
});
