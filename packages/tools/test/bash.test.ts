import { isToolError, type ToolError, type ToolOutput } from "@statewright/core";
import { describeTool } from "@statewright/core/inspect";
import { HostError } from "@statewright/host";
import { describe, expect, test } from "vitest";
import { bash, type ShellOptions } from "../src/index.ts";
import { toToolError } from "../src/to-tool-error.ts";
import { createManualWorld } from "./support/manual-world.ts";
import { createUniqueSeconds, listPids, waitUntilGone } from "./support/processes.ts";
import { createTestFolder } from "./support/test-folder.ts";
import { runCall, startCalls } from "./support/tool-calls.ts";

const folder = createTestFolder();
const shell = (options: Partial<ShellOptions> = {}) => bash({ root: folder.root, ...options });

/** Returns the error of a command that times out after it has written this text. */
async function getTimeoutError(command: string, text: string, options: Partial<ShellOptions> = {}): Promise<ToolError> {
  const { world, advance } = createManualWorld();
  let isOver = false;
  const continueRun = () => {
    advance(2_000);
    if (!isOver) setImmediate(continueRun);
  };
  const update = ({ content }: ToolOutput) => {
    if (String(content).includes(text)) continueRun();
  };
  const runtime = { signal: new AbortController().signal, update, injected: {} };
  const args = { command, timeout_ms: 1_000 };
  try {
    await shell({ world, ...options }).call({}, runtime as never, { id: "c", name: "bash", args });
  } catch (error) {
    if (isToolError(error)) return error;
    throw error;
  } finally {
    isOver = true;
  }
  throw new Error("it did not fail");
}

test("a non-zero exit code is a result with both outputs and the code, in text and details [S0.26, S2.26]", async () => {
  const { isError, text, result } = await runCall(shell(), { command: "echo o; echo e >&2; exit 3" });
  expect(isError).toBe(false);
  expect(text.split("\n").sort()).toEqual(["[exit code 3]", "e", "o"]);
  expect(result.details).toEqual({ exitCode: 3, signal: null, success: false });
});

test("an exit code is a result; a missing command, a timeout, a missing shell, and every code with nonZero error are errors [D3]", async () => {
  expect((await runCall(shell(), { command: "exit 0" })).result).toMatchObject({
    isError: false,
    details: { exitCode: 0, signal: null, success: true },
  });
  expect((await runCall(shell(), { command: "kill -9 $$" })).result).toMatchObject({
    isError: false,
    details: { exitCode: 137, signal: "SIGKILL", success: false },
  });
  const strict = await runCall(shell({ nonZero: "error" }), { command: "echo half; exit 4" });
  expect(strict.result).toMatchObject({ isError: true, error: { kind: "failed" }, details: { exitCode: 4 } });
  expect(strict.text).toContain("half");
  expect((await runCall(shell(), { command: "no-such-command-at-all" })).result.error?.kind).toBe("not_found");
  const late = await getTimeoutError("echo partly; sleep 60", "partly");
  expect(late).toMatchObject({ kind: "timeout", modelMessage: expect.stringContaining("partly") });
  expect((await runCall(shell({ shell: "no-such-shell" }), { command: "true" })).result.error?.kind).toBe("failed");
});

test("bash may be replaced by another POSIX shell", async () => {
  expect((await runCall(shell({ shell: "sh" }), { command: "echo here; exit 3" })).text).toBe("here\n[exit code 3]");
  expect((await runCall(shell({ shell: "/bin/sh" }), { command: "no-such-command-at-all" })).result.error?.kind).toBe(
    "not_found",
  );
});

test("bash fails only when it cannot run or is cancelled: a missing command keeps its output, a missing shell says ENOENT [S0.27, S2.27, T43]", async () => {
  const missing = await runCall(shell(), { command: "echo before; echo aside >&2; no-such-command-at-all" });
  expect(missing.result).toMatchObject({ isError: true, error: { kind: "not_found" }, details: { exitCode: 127 } });
  expect(missing.text).toContain("before\n");
  expect(missing.text).toContain("aside\n");
  expect(missing.text).toContain("exit code 127");

  const shellless = await runCall(shell({ shell: "no-such-shell" }), { command: "true" });
  expect(shellless.result).toMatchObject({ isError: true, error: { kind: "failed" } });
  expect(shellless.text).toContain("spawn ENOENT");

  const seconds = createUniqueSeconds();
  const live = startCalls([shell()], [{ name: "bash", args: { command: `echo on; sleep ${seconds}` } }]);
  await live.shows("on");
  live.handle.cancel();
  expect((await live.results())[0]).toMatchObject({
    isError: true,
    error: { kind: "cancelled" },
    content: [{ type: "text", text: "Cancelled" }],
  });
  expect(listPids(seconds)).toEqual([]);

  const signalled = await runCall(shell(), { command: "kill -TERM $$" });
  expect(signalled).toMatchObject({
    isError: false,
    text: expect.stringContaining("[exit code 143: ended by SIGTERM]"),
  });
});

test("a bash command stopped while streaming emits its update first, then Cancelled, with its group ended [S0.54, S2.54]", async () => {
  const seconds = createUniqueSeconds();
  const live = startCalls([shell()], [{ name: "bash", args: { command: `echo 1; sleep ${seconds}; echo 2` } }]);
  await live.shows("1");
  expect(listPids(seconds)).not.toEqual([]);
  live.handle.cancel();
  const [answer] = await live.answers();
  expect(answer).toMatchObject({ isError: true, content: [{ type: "text", text: "Cancelled" }] });
  expect(live.updates().join("")).not.toContain("2");
  expect(listPids(seconds)).toEqual([]);
});

test("the label `Run Command` is in the start event and the tool description, and never in the request [S0.70, S2.76]", async () => {
  const live = startCalls([shell()], [{ name: "bash", args: { command: "true" } }]);
  await live.answers();
  expect(live.events.find(({ type }) => type === "tool.started")).toMatchObject({ label: "Run Command" });
  expect(describeTool(shell()).label).toBe("Run Command");
  const { name, description, input } = shell().spec;
  expect(JSON.stringify([name, description, input])).not.toContain("Run Command");
});

test("background processes of a bash command end with it and after a timeout, and none keeps the pipe [T42]", async () => {
  const seconds = createUniqueSeconds();
  const { text } = await runCall(shell(), { command: `sleep ${seconds} & echo started` });
  expect(text).toBe("started\n[exit code 0]");
  expect(listPids(seconds)).toEqual([]);

  const error = await getTimeoutError(`(echo begun; sleep ${seconds}; echo late) & sleep ${seconds}`, "begun");
  expect(error.kind).toBe("timeout");
  await waitUntilGone(seconds);
});

test("bash takes one command argument, an allowed environment, its own process group, and a deadline [R11]", async () => {
  process.env["STATEWRIGHT_TEST_TOKEN"] = "hidden";
  try {
    const seen = (await runCall(shell({ env: { GIVEN: "value" } }), { command: "env" })).text;
    expect(seen).toContain("GIVEN=value");
    expect(seen).not.toContain("STATEWRIGHT_TEST_TOKEN");
    const named = (await runCall(shell({ inherit: ["STATEWRIGHT_TEST_TOKEN"] }), { command: "env" })).text;
    expect(named).toContain("STATEWRIGHT_TEST_TOKEN=hidden");
  } finally {
    delete process.env["STATEWRIGHT_TEST_TOKEN"];
  }
  const quoted = await runCall(shell(), { command: `printf '%s|' "a b" '$HOME' "\`echo x\`"` });
  expect(quoted.text).toBe("a b|$HOME|x|\n[exit code 0]");
  const own = await runCall(shell(), { command: 'kill -0 -- "-$$" && echo own' });
  expect(own.text).toContain("own");
  expect((await getTimeoutError("echo begun; sleep 60", "begun")).kind).toBe("timeout");
});

describe("bash commands", () => {
  test("a bash command that ignores SIGTERM is killed after the grace time", async () => {
    const seconds = createUniqueSeconds();
    const error = await getTimeoutError(`trap "" TERM; echo deaf; while :; do sleep ${seconds}; done`, "deaf");
    expect(error.kind).toBe("timeout");
    expect(error.modelMessage).toContain("deaf");
    expect(error.modelMessage).toContain("did not end within 1000 ms");
    await waitUntilGone(seconds);
  });

  test("a bash command that starts a daemon in a new session is answered, though the daemon holds the pipe", async () => {
    const seconds = createUniqueSeconds();
    try {
      const { text } = await runCall(shell(), {
        command: `setsid sh -c 'echo > up; exec sleep ${seconds}' & until [ -e up ]; do :; done; echo away`,
      });
      expect(text).toBe("away\n[exit code 0]");
    } finally {
      for (const pid of listPids(seconds)) process.kill(pid, "SIGKILL");
    }
  });

  test("a bash command with a large output shows its end and stores the complete output as an artifact", async () => {
    const live = startCalls([shell()], [{ name: "bash", args: { command: "seq 1 20000" } }]);
    const [answer] = await live.answers();
    const text = answer?.content.map((block) => (block.type === "text" ? block.text : "")).join("") ?? "";
    expect(text).toMatch(/^\[The first \d+ of 108894 bytes are not shown\.\]\n\d+\n/);
    expect(text).toContain("\n19999\n20000\n[exit code 0]");
    expect(answer?.content).toContainEqual(
      expect.objectContaining({ type: "artifact", ref: expect.objectContaining({ name: "bash.log", bytes: 108_894 }) }),
    );
    expect(Buffer.byteLength(text)).toBeLessThan(7_000);
    const [row] = await live.store.artifacts.list("t");
    const body = await live.store.artifacts.read("t", row?.key ?? "");
    expect(Buffer.from(body ?? []).toString()).toBe(Array.from({ length: 20_000 }, (_, at) => `${at + 1}\n`).join(""));
  });

  test("a bash command with output above the log limit loses the middle, in bounded memory", async () => {
    const live = startCalls(
      [shell({ logBytes: 256 * 1024 })],
      [{ name: "bash", args: { command: "head -c 60000000 /dev/zero | tr '\\0' x; echo end" } }],
    );
    const [answer] = await live.answers();
    expect(JSON.stringify(answer?.content)).toContain("of 60000004 bytes are not shown");
    const [row] = await live.store.artifacts.list("t");
    expect(row?.bytes).toBeLessThan(400_000);
  });

  test("a bash command with binary output is reported as such, and the bytes are stored", async () => {
    const live = startCalls([shell()], [{ name: "bash", args: { command: "printf 'a\\000\\377b'" } }]);
    const [answer] = await live.answers();
    expect(JSON.stringify(answer?.content)).toContain("[The output is binary: 4 bytes.]");
    const [row] = await live.store.artifacts.list("t");
    expect(row).toMatchObject({ mimeType: "application/octet-stream", bytes: 4 });
    expect([...((await live.store.artifacts.read("t", row?.key ?? "")) ?? [])]).toEqual([97, 0, 255, 98]);
  });

  test("a bash command runs in the folder given by the call, which must be inside the workspace", async () => {
    folder.put("deep/file.txt", "");
    expect((await runCall(shell(), { command: "ls", cwd: "deep" })).text).toContain("file.txt");
    const file = await runCall(shell(), { command: "ls", cwd: "deep/file.txt" });
    expect(file).toMatchObject({ isError: true, text: expect.stringContaining("is not a folder") });
    const outside = await runCall(shell(), { command: "ls", cwd: ".." });
    expect(outside.result.error?.kind).toBe("denied");
    for (const { text } of [file, outside]) expect(text).not.toContain(folder.root);
  });

  test("a bash command that no system can start fails with the reason, and one too large is not started", async () => {
    const zero = await runCall(shell(), { command: "echo \0" });
    expect(zero).toMatchObject({ isError: true, text: expect.stringContaining("zero byte") });
    const huge = await runCall(shell(), { command: `: ${"x".repeat(500_000)}` });
    expect(huge).toMatchObject({ isError: true, text: expect.stringContaining("too large") });
    for (const systemCode of ["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]) {
      const failure = toToolError(new HostError("spawn_failed", "Cannot start bash", { systemCode }));
      expect(failure).toMatchObject({ kind: "unavailable", message: "Cannot start bash" });
    }
  });

  test("a bash command in a deleted workspace fails without naming the path", async () => {
    const { result, text } = await runCall(bash({ root: folder.path("gone") }), { command: "ls" });
    expect(result.error?.kind).toBe("failed");
    expect(text).not.toContain(folder.root);
  });
});
