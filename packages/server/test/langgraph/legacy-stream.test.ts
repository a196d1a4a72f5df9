/** Readers that leave and come back: after every event of a tape, and while the run goes on. */
import type { RunEvent } from "@statewright/core";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { SseFrame } from "../../src/index.ts";
import { formatEventId, parseEventId } from "../../src/langgraph/legacy/legacy-event.ts";
import { type RunStream, streamRun } from "../../src/langgraph/legacy/stream-run.ts";
import { listTapeRuns, readTape } from "../support/golden-tapes.ts";
import { createTapeMemory, mapTape } from "../support/map-tape.ts";
import { createRunView, createTapeService } from "../support/tape-service.ts";

const modes: RunStream["modes"] = new Set(["values", "messages-tuple"]);

/** Reads a run of a tape when `now` events have happened, from the place of an event id. */
async function read(tape: string, now: number, lastEventId?: string): Promise<readonly SseFrame[]> {
  const { events } = readTape(tape, "legacy");
  const [run = ""] = listTapeRuns({ events });
  const frames: SseFrame[] = [];
  const stream = streamRun({
    service: createTapeService(events, now),
    run: createRunView(run),
    ...{ assistant: "a", after: 0, modes, subgraphs: false, hitl: true },
    place: lastEventId === undefined ? undefined : parseEventId(lastEventId),
    signal: new AbortController().signal,
  });
  for await (const line of stream) if ("data" in line) frames.push(line);
  return frames;
}

const chunk = z.tuple([
  z.object({
    id: z.string(),
    content: z.unknown(),
    tool_call_chunks: z.array(z.object({ index: z.number(), args: z.string() })).optional(),
  }),
  z.unknown(),
]);

/** What a client shows: text and arguments by message id, of all frames that it has read. */
function join(frames: readonly SseFrame[]): Readonly<Record<string, string>> {
  const shown: Record<string, string> = {};
  for (const { event, data } of frames) {
    if (event !== "messages") continue;
    const [{ id, content, tool_call_chunks: calls = [] }] = chunk.parse(data);
    const blocks = Array.isArray(content) ? z.array(z.looseObject({})).parse(content) : [{ text: content }];
    for (const { text, reasoning } of blocks) shown[id] = (shown[id] ?? "") + String(text ?? reasoning ?? "");
    for (const { index, args } of calls) shown[`${id} ${index}`] = (shown[`${id} ${index}`] ?? "") + args;
  }
  return shown;
}

describe.each(["text", "tool", "parallel-tools", "waiting", "retraction"])("the tape %s", (name) => {
  test("a client that leaves after any frame, and comes back whenever, shows each word once [V42]", async () => {
    const { events } = readTape(name, "legacy");
    const whole = await read(name, 0);
    const complete = join(whole);
    const places = listPlaces(events);
    for (const [index, { id = "" }] of whole.entries()) {
      const before = whole.slice(0, index + 1);
      const soonest = places.findIndex((place) => place >= toPlace(id)) + 1;
      for (let now = soonest; now <= events.length; now += 1) {
        const frames = [...before, ...(await read(name, now, id))];
        const shown = join(frames);
        const isBeginning = (text: string): boolean => Object.values(complete).some((whole) => whole.startsWith(text));
        expect(
          Object.values(shown).filter((text) => !isBeginning(text)),
          `after ${id}, back at ${now}`,
        ).toEqual([]);
        expect(getAnswers(shown)).toEqual(getAnswers(complete));
        expect(frames.at(-1)).toMatchObject({ event: "end" });
      }
    }
  });
});

/** The newest text of each message, whatever the number of its attempt is. */
function getAnswers(shown: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(shown).map(([key, text]) => [key.replace(/~\d+/, ""), text]));
}

function toPlace(id: string): number {
  const [seq = 0, n = 0] = id.split(".").map(Number);
  return seq * 10_000 + n;
}

/** The newest place after each event of a tape. */
function listPlaces(events: readonly RunEvent[]): readonly number[] {
  const memory = createTapeMemory(listTapeRuns({ events })[0] ?? "");
  return events.map((event) => {
    mapTape([event], memory);
    return memory.seq * 10_000 + memory.n;
  });
}

describe("event ids", () => {
  test("an id has the number of the durable event, the count after it, and what was sent of open messages [V42]", async () => {
    const ids = (await read("text", 0)).map(({ id }) => id ?? "");
    expect(ids.map((id) => id.split(".").slice(0, 2).join("."))).toEqual([
      "1.0",
      "2.0",
      "2.6",
      "2.9",
      "2.11",
      "2.13",
      "2.15",
      "2.18",
      "3.3",
      "4.0",
    ]);
    expect(ids.every((id) => /^[A-Za-z0-9_.:|~-]+$/.test(id))).toBe(true);
    for (const id of ids) {
      const place = parseEventId(id);
      expect(formatEventId(place?.seq ?? 0, place?.n ?? 0, id.split(".").slice(2))).toBe(id);
    }
  });

  test.each(["", "x", "1", "1.x", "-2", "1.2.<script>", "1.2.a-b", `1.${"9".repeat(40)}`])(
    "%o is no id of an event [V42]",
    (id) => {
      expect(parseEventId(id)).toBeUndefined();
    },
  );
});

test("text that was retracted while the client was away is taken back, and the new text has another id [V32]", async () => {
  const { events } = readTape("retraction", "legacy");
  const whole = await read("retraction", 0);
  const leaves = whole.findIndex(({ data }) => JSON.stringify(data).includes('"two "'));
  const comesBack = events.findIndex((event) => event.type === "message.delta" && event.text === "right ") + 1;
  const after = await read("retraction", comesBack, whole[leaves]?.id);
  const shown = join([...whole.slice(0, leaves + 1), ...after]);
  expect(shown).toMatchObject({ "0:0:model": "one two ", "0:0:model~2": "The right answer." });
  expect(after[0]?.event).toBe("values");
});
