/** The providers' clients with streams that are cut, stall, contain garbage, repeat ids or never end. */
import type { ServerResponse } from "node:http";
import { isStatewrightError, type ModelCallPolicy, type RunEvent } from "@statewright/core";
import { getModelFailureKind } from "@statewright/core/adapter";
import { virtualClock } from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { anthropicFrames, chat } from "../support/frames.ts";
import { recordedStreams, toBytes } from "../support/recorded-streams.ts";
import { createGate } from "../support/requests.ts";
import { createToolRuns, type Responder, type ToolRun } from "../support/tool-run.ts";
import { startWireServer } from "../support/wire-server.ts";

/** Bytes between two cuts; every byte with STATEWRIGHT_WHOLE=1. */
const stride = process.env["STATEWRIGHT_WHOLE"] === "1" ? 1 : 5;

const baseURL = "http://provider.example/v1";
const twice = { retry: { attempts: 2, initialMs: 0 } } as const;

/** Streams these bytes, then a regular end, a broken connection, or nothing. */
function stream(bytes: Uint8Array, then: "end" | "break" | "silence" = "end"): ReadableStream<Uint8Array> {
  let isSent = false;
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (!isSent && bytes.length > 0) controller.enqueue(bytes);
        else if (then === "end") controller.close();
        else if (then === "break") controller.error(new TypeError("terminated"));
        else return new Promise(() => undefined);
        isSent = true;
        return undefined;
      },
    },
    { highWaterMark: 0 },
  );
}

/** Creates the final reply after the tool answer. */
const hasResult = /tool_result|"role":"tool"|function_call_output|functionResponse/;

function getOnlyEvent<Type extends RunEvent["type"]>({ events }: ToolRun, type: Type) {
  return events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
}

/** Checks that the tool ran once, from a complete message, and that the conversation equals the expected one. */
function expectWhole(ended: ToolRun, where: string): void {
  expect(ended.status, `${where} ${ended.error}`).toBe("done");
  expect(ended.ran, where).toEqual([{ city: "Oslo" }]);
  expect(
    ended.messages.map(({ role }) => role),
    where,
  ).toEqual(["user", "assistant", "tool", "assistant"]);
  expect(ended.messages.at(-1)?.content, where).toMatchObject([{ text: "Rain." }]);
}

describe.each(recordedStreams)("$client", ({ model, calling, after, answering }) => {
  const bytes = toBytes(calling);
  const answer = toBytes(answering);
  const whole = toBytes(calling.slice(0, calling.length - after)).length;
  const runs = (policy: ModelCallPolicy) => createToolRuns((at) => model({ baseURL, ...at }), policy);

  /** Answers the first request with this stream, later ones with the recorded stream. */
  const first =
    (body: ReadableStream<Uint8Array>): Responder =>
    (nth, asked) =>
      nth === 1 ? body : stream(hasResult.test(asked) ? answer : bytes);

  test("a stream cut at any byte before its end yields no message, and no tool of it runs [F12]", async () => {
    const once = runs({});
    const wrong: unknown[] = [];
    for (let length = 0; length < whole; length += stride) {
      const { error, ran, log, events } = await once.run(first(stream(bytes.subarray(0, length))));
      const isObserved = isStatewrightError(error, "model_failed") && getModelFailureKind(error) === "broken_reply";
      const isCompleted = events.some(({ type }) => type === "message.completed");
      if (!isObserved || isCompleted || ran.length > 0 || log.length !== 1) wrong.push({ length, error, ran, log });
    }
    expect(wrong).toEqual([]);
    for (let length = whole; length <= bytes.length; length += stride)
      expectWhole(await once.run(first(stream(bytes.subarray(0, length)))), `cut at ${length}`);
  });

  test("a stream cut anywhere and retried runs its tool once, from the complete message [F12]", async () => {
    const retried = runs(twice);
    for (let length = 0; length < whole; length += 23) {
      for (const then of ["end", "break"] as const) {
        const ended = await retried.run(first(stream(bytes.subarray(0, length), then)));
        const where = `${then} at ${length}`;
        expectWhole(ended, where);
        expect(ended.log, where).toEqual(["request", "request", "tool", "request"]);
        expect(ended.messages[1], where).toMatchObject({ failedAttempts: [{ kind: "broken_reply" }] });
        const observed = ended.events.findIndex(
          ({ type }) => type === "message.delta" || type === "message.call_delta",
        );
        const again = ended.events.findIndex(({ type }) => type === "model.retried");
        expect(getOnlyEvent(ended, "message.retracted"), where).toHaveLength(observed >= 0 && observed < again ? 1 : 0);
      }
    }
  });

  test("a stream that stalls between any two frames times out and is retried [F12]", async () => {
    const timed = runs({ ...twice, timeouts: { firstTokenMs: 2_000, idleMs: 500 } });
    for (let frames = 0; frames < calling.length - after; frames++) {
      const world = virtualClock();
      const ended = await timed.run(first(stream(toBytes(calling.slice(0, frames)), "silence")), world);
      expectWhole(ended, `after ${frames} frames`);
      expect(ended.messages[1], `after ${frames} frames`).toMatchObject({ failedAttempts: [{ kind: "timeout" }] });
      expect(world.timers).toBe(0);
    }
  });

  test("a stream with garbage between any two frames runs its tool once, from a complete message [F12]", async () => {
    const retried = runs(twice);
    const garbage = [
      'data: {"type":\n\n',
      "data: null\n\n",
      "\u0000\ufffd}{\n\n",
      "event: odd\ndata: {}\n\n",
      ": hello\n\n",
    ];
    for (let at = 0; at <= calling.length - after; at++) {
      for (const junk of garbage) {
        const parts = [toBytes(calling.slice(0, at)), new TextEncoder().encode(junk), toBytes(calling.slice(at))];
        const ended = await retried.run(first(stream(Buffer.concat(parts))));
        expectWhole(ended, `${JSON.stringify(junk)} before frame ${at}`);
      }
    }
  });

  test("a stream that never ends is ended by the call timeout, and no tool of it runs [F12]", async () => {
    const world = virtualClock();
    const unended = toBytes(calling.slice(0, calling.length - after - 1));
    let parts = 0;
    const endless = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          await new Promise<void>((resolve) => void world.schedule.after(500, resolve));
          controller.enqueue(parts++ === 0 ? unended : new TextEncoder().encode(": still here\n\n"));
        },
      },
      { highWaterMark: 0 },
    );
    const ended = await runs({ ...twice, timeouts: { totalMs: 60_000 } }).run(first(endless), world);
    expect(ended.error).toMatchObject({ code: "model_failed", details: { kind: "timeout", limit: "totalMs" } });
    expect([ended.ran, ended.log]).toEqual([[], ["request"]]);
    expect(parts).toBeGreaterThan(50);
  });
});

describe("repeated ids", () => {
  const recorded = (client: string) => {
    const found = recordedStreams.find((each) => each.client === client);
    if (found === undefined) throw new Error(`no ${client}`);
    return found;
  };

  test("two calls of one message with one id each run once and are each answered [F12]", async () => {
    const both = {
      anthropic: [
        ...anthropicFrames.start(),
        ...anthropicFrames.call(0, "same", "get_weather", '{"city":"Oslo"}'),
        ...anthropicFrames.call(1, "same", "get_weather", '{"city":"Rome"}'),
        ...anthropicFrames.end("tool_use"),
      ],
      "openai chat": [
        ...chat.call("same", "get_weather", '{"city":"Oslo"}'),
        {
          ...(chat.text("x")[1] as object),
          choices: [
            {
              index: 0,
              delta: {
                tool_calls: [
                  {
                    index: 1,
                    id: "same",
                    type: "function",
                    function: { name: "get_weather", arguments: '{"city":"Rome"}' },
                  },
                ],
              },
              finish_reason: null,
            },
          ],
        },
        ...chat.end("tool_calls"),
      ],
    };
    for (const [client, frames] of Object.entries(both)) {
      const { model, answering } = recorded(client);
      const ended = await createToolRuns((at) => model({ baseURL, ...at }), {}).run((nth) =>
        stream(toBytes(nth === 1 ? frames : answering)),
      );
      expect(ended.status, client).toBe("done");
      expect(ended.ran, client).toEqual([{ city: "Oslo" }, { city: "Rome" }]);
      const answered = ended.messages.flatMap((message) => (message.role === "tool" ? [message.callId] : []));
      expect(new Set(answered).size, client).toBe(2);
    }
  });

  test("a call id that an earlier message used is a separate call and runs once [F12]", async () => {
    for (const { client, model, calling, answering } of recordedStreams) {
      const ended = await createToolRuns((at) => model({ baseURL, ...at }), {}).run((nth) =>
        stream(toBytes(nth <= 2 ? calling : answering)),
      );
      expect(ended.status, client).toBe("done");
      expect(ended.ran, client).toEqual([{ city: "Oslo" }, { city: "Oslo" }]);
      expect(ended.log, client).toEqual(["request", "tool", "request", "tool", "request"]);
    }
  });
});

describe("real connections", () => {
  const sending =
    (bytes: Uint8Array, end: (response: ServerResponse) => void) =>
    (response: ServerResponse): void => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(bytes, () => end(response));
    };
  const ends = (response: ServerResponse): void => void response.end();
  const returnNothing = (): string => "";

  test.each(recordedStreams)(
    "$client: a run completes after a connection that breaks in the middle [F12]",
    async (recorded) => {
      const bytes = toBytes(recorded.calling);
      for (const share of [0.3, 0.9]) {
        const cut = bytes.slice(0, Math.floor(bytes.length * share));
        await using server = await startWireServer(
          sending(cut, (response) => response.destroy()),
          sending(bytes, ends),
          sending(toBytes(recorded.answering), ends),
        );
        const ended = await createToolRuns(() => recorded.model({ baseURL: `${server.url}/v1` }), twice).run(
          returnNothing,
        );
        expectWhole(ended, `${recorded.client} at ${share}`);
        expect(server.requests).toHaveLength(3);
      }
    },
  );

  test("a silent server is abandoned, its connection is closed, and the next request is answered [F12]", async () => {
    for (const recorded of recordedStreams) {
      const bytes = toBytes(recorded.calling);
      const gone = createGate();
      const silent = createGate();
      await using server = await startWireServer(
        sending(bytes.slice(0, bytes.length >> 1), (response) => {
          response.on("close", gone.open);
          silent.open();
        }),
        sending(bytes, ends),
        sending(toBytes(recorded.answering), ends),
      );
      const world = virtualClock({ waitsForWork: false });
      const timeouts = { firstTokenMs: 60_000, idleMs: 60_000 };
      const runs = createToolRuns(() => recorded.model({ baseURL: `${server.url}/v1` }), { ...twice, timeouts });
      const ending = runs.run(returnNothing, { ...world, runAll: () => silent.passed });
      await silent.passed;
      while (server.requests.length < 2) await world.advance(60_000);
      await gone.passed;
      expectWhole(await ending, recorded.client);
    }
  });
});
