/** The past of a thread for a client of the streaming events protocol. */
import { expect, test } from "vitest";
import { ReplayBuffer } from "../../src/langgraph/v2/replay-buffer.ts";

function fill(buffer: ReplayBuffer, frames: readonly string[]): void {
  for (const frame of frames) {
    if (frame.startsWith("checkpoint")) buffer.startCheckpoint();
    buffer.push({
      line: { comment: frame },
      isRoot: !frame.startsWith("inner"),
      isRunning: frame.startsWith("running"),
      bytes: frame.startsWith("values") ? 100 : 0,
    });
  }
}

function read(buffer: ReplayBuffer, isAtWork = false): readonly string[] {
  return buffer.read({ isAtWork }).map((line) => ("comment" in line ? line.comment : ""));
}

test("a past of at most the limit is replayed whole [V43]", () => {
  const buffer = new ReplayBuffer({ frames: 4 });
  fill(buffer, ["running", "checkpoint 1", "values 1", "completed"]);
  expect(read(buffer)).toEqual(["running", "checkpoint 1", "values 1", "completed"]);
});

test("a longer past is replayed from its newest checkpoint on, with the state there [V43]", () => {
  const buffer = new ReplayBuffer({ frames: 4 });
  fill(buffer, ["running", "checkpoint 1", "values 1", "message", "checkpoint 2", "values 2", "completed"]);
  expect(read(buffer)).toEqual(["checkpoint 2", "values 2", "completed"]);
});

test("a longer past of a run at work begins with the start of the run: clients show it as loading [V43]", () => {
  const buffer = new ReplayBuffer({ frames: 4 });
  fill(buffer, ["running 1", "completed", "running 2", "checkpoint 2", "values 2", "requested"]);
  expect(read(buffer, true)).toEqual(["running 2", "checkpoint 2", "values 2", "requested"]);
});

test("work of inner graphs after the newest checkpoint does not push the checkpoint out [V43]", () => {
  const buffer = new ReplayBuffer({ frames: 4 });
  fill(buffer, ["checkpoint 1", "values 1", ...Array.from({ length: 9 }, (_, index) => `inner ${index}`), "requested"]);
  expect(read(buffer).slice(0, 2)).toEqual(["checkpoint 1", "values 1"]);
  expect(read(buffer).at(-1)).toBe("requested");
});

test("a past whose states are too large is replayed from its newest checkpoint on [V43]", () => {
  const buffer = new ReplayBuffer({ bytes: 150 });
  fill(buffer, ["running", "checkpoint 1", "values 1", "checkpoint 2", "values 2", "completed"]);
  expect(read(buffer)).toEqual(["checkpoint 2", "values 2", "completed"]);
});
