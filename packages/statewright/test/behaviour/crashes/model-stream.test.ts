/** SIGKILL of a process during a model stream, with the provider's client and a server that counts requests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CrashOutcome, killInSequence, runUntilDone } from "@statewright/testing";
import type { AssistantMessage, Message } from "statewright";
import { afterAll, expect, test } from "vitest";
import { startStreamingServer } from "../../support/streaming-server.ts";

const script = new URL("../../support/processes/streaming-process.ts", import.meta.url);
const homes: string[] = [];
afterAll(() => homes.forEach((home) => void rmSync(home, { recursive: true, force: true })));

const timeoutMs = 120_000;
const model = "anthropic/claude-sonnet-4-5";

function createFolder(): string {
  const home = mkdtempSync(join(tmpdir(), "statewright-stream-"));
  homes.push(home);
  return home;
}

interface ProcessOutput {
  readonly status: string;
  readonly messages: readonly Message[];
  readonly observed: readonly (readonly unknown[])[];
  readonly text: string;
}

function parseOutput({ stdout }: CrashOutcome): ProcessOutput {
  return JSON.parse(stdout) as ProcessOutput;
}

/** Conversation without ids and without notes about lost requests. */
function getLastContent({ messages }: ProcessOutput): unknown {
  return messages.map((message) => {
    const { id: _id, failedAttempts: _lost, provider: _provider, ...said } = message as AssistantMessage;
    return "callId" in said ? { ...said, callId: "its call" } : said;
  });
}

function listLost({ messages }: ProcessOutput): unknown {
  return messages.map((message) => (message.role === "assistant" ? (message.failedAttempts ?? []) : []));
}

const unrecorded = { model, kind: "unrecorded" };

/** Result of an uninterrupted process. */
async function runWithoutCrash(): Promise<ProcessOutput> {
  await using server = await startStreamingServer();
  const outcome = await runUntilDone({ script, folder: createFolder(), timeoutMs, args: [server.baseUrl] });
  expect(server.requests).toEqual([1, 3]);
  expect(listLost(parseOutput(outcome))).toEqual([[], [], [], []]);
  return parseOutput(outcome);
}

test("a kill inside a model stream retracts the partial reply, repeats the request, and reports both requests [C2]", async () => {
  const whole = await runWithoutCrash();
  // Crash points: in the text, in the arguments of the call, and in the answer after the tool.
  const deaths = [
    { part: "I ", request: 1, frames: 3, lost: [[], [unrecorded], [], []], requests: [1, 1, 3], voided: 1 },
    { part: '{"te', request: 1, frames: 7, lost: [[], [unrecorded], [], []], requests: [1, 1, 3], voided: 1 },
    { part: "All ", request: 2, frames: 3, lost: [[], [], [], [unrecorded]], requests: [1, 3, 3], voided: 3 },
  ];
  for (const { part, request, frames, lost, requests, voided } of deaths) {
    await using server = await startStreamingServer({ [request]: frames });
    const life = { script, folder: createFolder(), timeoutMs, args: [server.baseUrl, part] };
    const outcome = await killInSequence({ ...life, points: ["in the stream"] });
    const ended = parseOutput(outcome);
    expect(
      outcome.processes.map(({ signal }) => signal),
      part,
    ).toEqual(["SIGKILL", null]);
    expect(ended.status, part).toBe("done");
    expect(getLastContent(ended), part).toEqual(getLastContent(whole));
    expect(server.requests, part).toEqual(requests);
    expect(listLost(ended), part).toEqual(lost);
    // No tool of an incomplete message has run, and each tool of a complete message has run once.
    expect(outcome.effects, part).toEqual([{ note: "hi" }]);
    const [first] = ended.observed;
    expect(first, part).toEqual(["message.retracted", ended.messages[voided]?.id, "unrecorded", null]);
    expect(ended.text, part).toBe(voided === 1 ? "I note.\nAll done." : "All done.");
  }
});

test("kills inside the streams of two processes report all three requests [C2]", async () => {
  await using server = await startStreamingServer({ 1: 3, 2: 3 });
  const life = { script, folder: createFolder(), timeoutMs, args: [server.baseUrl, "I "] };
  const ended = parseOutput(await killInSequence({ ...life, points: ["in the stream", "in the stream"] }));
  expect(server.requests).toEqual([1, 1, 1, 3]);
  expect(listLost(ended)).toEqual([[], [unrecorded, unrecorded], [], []]);
});
