/** Golden files of the UI message stream: the gate `clients` writes them from runs that satisfied the unmodified client. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RunStatus } from "@statewright/core";
import type { ClosedInterrupt } from "@statewright/core/inspect";
import { expect, test } from "vitest";
import * as z from "zod";
import type { FrameSource } from "../../src/ai-sdk/read-frames.ts";
import { streamRun } from "../../src/ai-sdk/run-stream.ts";
import type { RunView, ThreadFrame } from "../../src/index.ts";

const folder = fileURLToPath(new URL("../golden/ai-sdk/", import.meta.url));

const event = z.custom<ThreadFrame>((value) => z.looseObject({ type: z.string() }).safeParse(value).success);
const answered = z.custom<ClosedInterrupt>((value) => z.looseObject({ id: z.string() }).safeParse(value).success);
const golden = z.array(
  z.object({
    tape: z.object({
      from: z.number(),
      run: z.string(),
      events: z.array(event),
      answered: z.record(z.string(), z.array(answered)),
      status: z.object({
        status: z.custom<RunStatus>((value) => typeof value === "string").optional(),
        error: z.object({ code: z.string(), title: z.string() }).optional(),
      }),
    }),
    lines: z.array(z.string()),
  }),
);

type Tape = z.infer<typeof golden>[number]["tape"];

/** Acts that read from a tape. */
function createSource({ events, answered, status }: Tape): FrameSource {
  return {
    streamEvents: async () =>
      (async function* stream() {
        yield* events;
      })(),
    getState: async (_thread, { at }) => ({ answered: answered[at] ?? [], values: {} }),
    getRun: async () => ({ status: status.status ?? "done", error: status.error }),
  };
}

const expected = [
  "cancel",
  "client-tool",
  "crash",
  "failure",
  "fork",
  "other-interrupt",
  "parallel-tools",
  "retraction",
  "sub-agent",
  "tool",
  "two-interrupts",
];

test("recorded tapes of the AI SDK stream give the recorded lines, byte for byte [V143]", async () => {
  const names = readdirSync(folder).map((file) => file.replace(".json", ""));
  expect(names.sort()).toEqual(expected);
  for (const name of names) {
    const streams = golden.parse(JSON.parse(readFileSync(`${folder}${name}.json`, "utf8")));
    for (const { tape, lines } of streams) {
      const run: RunView = {
        ...{ id: tape.run, thread: "t1", branch: findBranch(tape), graph: "chat", status: "running", attempt: 1 },
        ...{ metadata: {}, createdAt: 0 },
      };
      const { signal } = new AbortController();
      const options = { state: [], steering: false };
      const written: string[] = [];
      for await (const line of streamRun({
        service: createSource(tape),
        run,
        after: 0,
        from: tape.from,
        options,
        signal,
      }))
        written.push("text" in line ? line.text : "data" in line ? JSON.stringify(line.data) : "");
      expect([name, written]).toEqual([name, lines]);
    }
  }
});

/** Branch of the run of a tape. */
function findBranch({ run, events }: Tape): string {
  const started = events.find((frame) => frame.type === "run.started" && frame.run === run);
  return started !== undefined && "branch" in started ? started.branch : "main";
}
