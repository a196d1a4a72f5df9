/** Redaction of events: what is not shown is not sent, and numbers stay. */
import { expect, test } from "vitest";
import { createTapes } from "../../src/tape/tapes.ts";
import { readTape } from "../support/read-tape.ts";
import { Talk } from "../support/talk.ts";

const thread = "t";

test("an event that redaction throws on is dropped, counted and logged, and never sent raw [V21]", async () => {
  const talk = new Talk();
  const { store, relay, world } = talk;
  const tapes = createTapes({ store, relay, world });
  await talk.answer(thread, "secret");
  await talk.ask(thread);
  const reading = await readTape(tapes, thread, {
    show: (event) => {
      if (JSON.stringify(event).includes("secret")) throw new Error("cannot redact");
      return event;
    },
  });
  await world.waitUntilIdle();
  talk.speaker.say("my secret");
  await talk.finish();
  await world.waitUntilIdle();
  expect(JSON.stringify(reading.frames)).not.toContain("secret");
  expect(reading.types.at(-1)).toBe("run.completed");
  expect(tapes.withheldEvents).toBeGreaterThan(3);
  const errors = world.lines.filter(({ level }) => level === "error");
  expect(errors.map(({ fields }) => fields?.["count"])).toEqual(errors.map((_, index) => index + 1));
  expect(errors).toHaveLength(tapes.withheldEvents);
  expect(JSON.stringify(errors)).not.toContain("my secret");
  await reading.stop();
});

test("a redacted event keeps the number of the original, and a hidden one leaves no frame [V21]", async () => {
  const talk = new Talk();
  const { store, relay, world } = talk;
  const tapes = createTapes({ store, relay, world });
  await talk.answer(thread);
  const plain = await readTape(tapes, thread, { end: "idle" });
  const redacted = await readTape(tapes, thread, {
    end: "idle",
    show: (event) => {
      if (event.type === "run.started") return undefined;
      return event.type === "step.committed" ? { ...event, changes: {}, seq: 99, branch: "forged" } : event;
    },
  });
  await world.waitUntilIdle();
  const expected = plain.frames.filter(({ type }) => type !== "run.started");
  expect(redacted.frames).toEqual(
    expected.map((frame) => (frame.type === "step.committed" ? { ...frame, changes: {} } : frame)),
  );
  expect([redacted.hasEnded, tapes.withheldEvents]).toEqual([true, 0]);
});
