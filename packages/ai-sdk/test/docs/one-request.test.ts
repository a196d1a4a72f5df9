import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { anthropicFrames as frames } from "../support/frames.ts";
import { events, startWireServer } from "../support/wire-server.ts";

test("the program of the README runs unchanged against a local server in place of the provider", async () => {
  await using server = await startWireServer(
    events([...frames.start(), ...frames.text(0, "It rains."), ...frames.end("end_turn")]),
  );
  const program = fileURLToPath(new URL("one-request.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program], {
    env: { PATH: process.env["PATH"], ANTHROPIC_BASE_URL: `${server.url}/v1`, ANTHROPIC_API_KEY: "not-a-key" },
  });
  expect(stdout).toMatch(/^It rains\.stop \{\s+inputTokens: \d+,\s+outputTokens: \d+/);
});
